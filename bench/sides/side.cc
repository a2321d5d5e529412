#include "bench/sides/side.h"

#include <vector>

#include "bench/cases/steady_mix.h"
#include ASHLAR_SIDE_ADAPTER  // the checkout's own; bench/paired knows its name

namespace ashlar::bench {

struct SideCase {
  virtual ~SideCase() = default;
  virtual void run(std::uint64_t turns) = 0;
};

namespace {

class PairCase final : public SideCase {
 public:
  explicit PairCase(std::uint64_t bytes) : bytes_(bytes) { run(1); }
  void run(std::uint64_t turns) override {
    for (; turns > 0; --turns) adapter_.free(adapter_.allocate(bytes_, 0));
  }

 private:
  AshlarAdapter adapter_;
  std::uint64_t bytes_;
};

class MixCase final : public SideCase {
 public:
  explicit MixCase(std::size_t live) : mix_(adapter_, live, 0, kSeed) {}
  void run(std::uint64_t turns) override {
    for (; turns > 0; --turns) mix_.turn();
  }

 private:
  static constexpr std::uint64_t kSeed = 1;
  AshlarAdapter adapter_;
  Mix<AshlarAdapter> mix_;
};

class ReplayCase final : public SideCase {
 public:
  explicit ReplayCase(const Program& program) : program_(program), blocks_(program.slots) {
    run(1);
  }
  void run(std::uint64_t turns) override {
    for (; turns > 0; --turns) pass(adapter_, program_, blocks_);
  }

 private:
  AshlarAdapter adapter_;
  const Program& program_;
  std::vector<AshlarAdapter::Handle> blocks_;
};

}  // namespace
}  // namespace ashlar::bench

extern "C" __attribute__((visibility("default"))) const ashlar::bench::Side ashlar_bench_side;
const ashlar::bench::Side ashlar_bench_side = {
    [](std::uint64_t bytes) -> ashlar::bench::SideCase* {
      return new ashlar::bench::PairCase(bytes);
    },
    [](std::size_t live) -> ashlar::bench::SideCase* { return new ashlar::bench::MixCase(live); },
    [](const ashlar::bench::Program* program) -> ashlar::bench::SideCase* {
      return new ashlar::bench::ReplayCase(*program);
    },
    [](ashlar::bench::SideCase* of, std::uint64_t turns) { of->run(turns); },
    [](ashlar::bench::SideCase* of) { delete of; },
};
