// The world of an account pass over the simulated GPU.
#include <fmt/format.h>

#include <vector>

#include "spec/gpu/sim_gpu.h"
#include "src/tool/world.h"

namespace ashlar::tool {
namespace {

class SimWorld final : public World {
 public:
  SimWorld(Bytes capacity, std::uint32_t lag) : gpu_(options_of(capacity)), lag_(lag) {
    if (lag_ > 0) gpu_.set_lag(lag_);
  }

  device::Device& device() override { return gpu_.device(); }

  Result<Stream> stream(std::uint32_t index) override {
    while (streams_.size() <= index) {
      const Result<Stream> made = gpu_.create_stream(DeviceId{0});
      if (!made.is_ok()) return made;
      streams_.push_back(made.value());
    }
    return streams_[index];
  }

  void write(std::uint32_t, Address at, Bytes size, const Stream& stream) override {
    launch(stream, {at, size, spec::Access::kWrite, spec::kNoTag});
  }
  void read(std::uint32_t, Address at, Bytes size, const Stream& stream) override {
    launch(stream, {at, size, spec::Access::kRead, spec::kNoTag});
  }

  void tick() override {
    if (lag_ > 0) {
      gpu_.tick();
    } else {
      for (const Stream& stream : streams_) gpu_.step(stream, spec::SimGpu::kNoLag);
    }
  }

  DriverFigures figures() const override {
    DriverFigures figures;
    const spec::CallAccount account = gpu_.account();
    for (unsigned kind = 0; kind < device::kCallKinds; ++kind)
      figures.calls[kind] = account.by_kind[kind].calls;
    figures.ns = account.ns;
    figures.ns_max = account.ns_max;
    return figures;
  }

  std::uint64_t faults() override {
    collect();
    return faults_;
  }
  std::string first_fault() override {
    collect();
    return first_fault_;
  }

 private:
  static spec::SimGpuOptions options_of(Bytes capacity) {
    spec::SimGpuOptions options;
    options.capacities = {capacity == Bytes::max() ? 0_B : capacity};
    options.adversarial = false;
    return options;
  }

  void launch(const Stream& stream, const spec::Touch& touch) {
    if (const Status status = gpu_.launch(stream, touch); !status.is_ok()) note(status.why());
  }

  void note(std::string text) {
    if (faults_++ == 0) first_fault_ = std::move(text);
  }

  void collect() {
    const std::size_t count = gpu_.fault_count();
    if (count == 0) return;
    if (faults_ == 0) first_fault_ = gpu_.take_faults().front().text;
    faults_ += count;
  }

  spec::SimGpu gpu_;
  const std::uint32_t lag_;
  std::vector<Stream> streams_;
  std::uint64_t faults_ = 0;
  std::string first_fault_;
};

}  // namespace

std::unique_ptr<World> make_sim_world(Bytes capacity, std::uint32_t lag) {
  return std::make_unique<SimWorld>(capacity, lag);
}

}  // namespace ashlar::tool
