// stream_trace SEED OPS: runs random operations on the caching allocator, in lockstep with its C++
// model. Prints each as steps of the Dafny worlds, and a hash of each world (stream_steps.h).
// stream_tie.cs runs the steps on the compiled Dafny model (spec/proof/tie), which must take every
// step, refuse every step marked `!`, and have the same hashes.
//
// The worlds have a few streams and some dozen blocks, on a device so small that memory is lent,
// adopted, given back and waited for. They are short, since the Dafny world keeps its whole
// history.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "props/proof/stream_steps.h"
#include "spec/ops/opcode_table.h"

namespace ashlar::props {
namespace {

using spec::Op;
using spec::Random;
namespace slot = spec::slot;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::size_t kLiveMax = 24;
constexpr std::uint64_t kUserEventsMax = 3;
constexpr std::uint64_t kWorldOps = 200;

enum class Pools : std::uint8_t { kSmall, kLarge, kBoth };

StreamSteps make_steps(Random& random, Pools pools) {
  constexpr const char* kReuse[] = {"reuse:own", "reuse:completed", "reuse:ordered"};
  std::string conf = kReuse[random.below(3)];
  conf += ",backing:segments";  // the model of streams has no pages (page_model.dfy has)
  if (random.one_in(3)) conf += ",wait_ms:never";
  const std::uint64_t capacity =
      pools == Pools::kSmall ? 6 + random.below(8) : 40 + random.below(60);
  // The adversary's pace is the seed modulo 4; it is 0 in half of the worlds.
  const std::uint64_t seed = random.below(1u << 20) * 4 + (random.one_in(2) ? 0 : random.below(4));
  return {conf, capacity * kMiB, seed, static_cast<std::uint32_t>(2 + random.below(3))};
}

class StreamTrace {
 public:
  explicit StreamTrace(Random& random)
      : random_(random),
        pools_(static_cast<Pools>(random.below(3))),
        steps_(make_steps(random, pools_)) {}

  void live(std::uint64_t ops) {
    for (ops_left_ = ops; ops_left_ > 0;) {
      if (!steps_.live().empty() && random_.one_in(8)) use_elsewhere();
      else any();
    }
    steps_.finish();
  }

 private:
  using Arguments = std::array<std::uint64_t, spec::kArgsMax>;

  void run(std::uint8_t what, Arguments arg) {
    Op op;
    op.slot = what;
    op.arg = arg;
    steps_.run(op, random_);
    --ops_left_;
  }

  std::uint32_t any_stream() { return static_cast<std::uint32_t>(random_.below(steps_.streams())); }
  const StreamSteps::Pointer& any_pointer() {
    return steps_.live()[random_.below(steps_.live().size())];
  }

  /// Draws mostly from a few sizes, so that free blocks fit later requests.
  std::uint64_t any_size() {
    const bool is_small = pools_ == Pools::kSmall || (pools_ == Pools::kBoth && random_.one_in(2));
    const std::uint64_t step = is_small ? 128u << 10 : kMiB;
    const std::uint64_t steps =
        is_small ? 1 + random_.below(8) : 2 + random_.below(random_.one_in(6) ? 24 : 9);
    return random_.one_in(2) ? steps * step : steps * step - random_.below(step / 2);
  }

  /// One of the caller's events; a bound one, if any is bound.
  std::uint64_t any_event() { return random_.below(std::max<std::uint64_t>(events_, 1)); }

  void record(std::uint32_t stream) {
    const std::uint64_t event = events_ < kUserEventsMax ? events_++ : any_event();
    run(slot::kRecord, {event, stream});
  }

  void any() {
    const std::uint64_t r = random_.below(100);
    const std::uint32_t stream = any_stream();
    if (steps_.live().empty() || (r < 36 && steps_.live().size() < kLiveMax)) {
      return run(slot::kAlloc, {next_name_++, any_size(), stream});
    }
    const std::uint64_t name = any_pointer().name;
    if (r < 54) return run(slot::kFree, {name});
    if (r < 60) return run(slot::kFreeOn, {name, stream});
    if (r < 64) return run(slot::kUse, {name, stream});
    if (r < 82) return run(slot::kStep, {stream, 1 + random_.below(4)});
    if (r < 84) return run(slot::kDrain, {0});
    if (r < 88 || events_ == 0) return record(stream);
    if (r < 94) return run(slot::kWait, {stream, any_event()});
    if (r < 96) return run(slot::kSync, {any_event()});
    if (r < 98) return run(slot::kTrim, {0});
    run(slot::kLimit, {0, random_.one_in(2) ? ~std::uint64_t{0} : (4 + random_.below(96)) * kMiB});
  }

  /// Runs a kernel on any stream. Where that is not lawful yet, lets the stream wait first (C6, the
  /// caller's side).
  void use_elsewhere() {
    const StreamSteps::Pointer used = any_pointer();
    const std::uint32_t stream = any_stream();
    if (steps_.may_use(used, stream))
      return run(slot::kKernel, {stream, used.name, random_.below(3)});
    if (events_ == 0) return record(used.stream);
    const std::uint64_t event = any_event();
    run(slot::kRecord, {event, used.stream});
    if (ops_left_ > 0) run(slot::kWait, {stream, event});
    if (ops_left_ > 0) run(slot::kKernel, {stream, used.name, random_.below(3)});
  }

  Random& random_;
  Pools pools_;
  StreamSteps steps_;
  std::uint64_t ops_left_ = 0;
  std::uint64_t events_ = 0;  ///< the caller's bound events
  std::uint64_t next_name_ = 0;
};

}  // namespace
}  // namespace ashlar::props

int main(int argc, char** argv) {
  if (argc != 3) return std::fputs("usage: stream_trace SEED OPS\n", stderr), 2;
  ashlar::spec::Random random(std::strtoull(argv[1], nullptr, 10));
  for (std::uint64_t left = std::strtoull(argv[2], nullptr, 10); left > 0;) {
    const std::uint64_t ops = std::min(left, ashlar::props::kWorldOps);
    ashlar::props::StreamTrace(random).live(ops);
    left -= ops;
  }
  std::puts(".");  // the trace is complete
  return 0;
}
