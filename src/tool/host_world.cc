// The world of an account pass over this computer's memory.
#include <fmt/format.h>
#include <sys/prctl.h>

#include <cstring>
#include <vector>

#include <ashlar/device/host_device.h>

#include "src/tool/metered_device.h"
#include "src/tool/world.h"

namespace ashlar::tool {
namespace {

class HostWorld final : public World {
 public:
  explicit HostWorld(Bytes capacity) : host_(DeviceId{0}, capacity), metered_(host_) {
    // Stamps touch two pages of each block. With huge pages that would commit memory for most of a
    // trace that is as large as a device.
    ::prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
  }

  device::Device& device() override { return metered_; }

  Result<Stream> stream(std::uint32_t index) override {
    while (streams_.size() <= index) {
      const Result<Stream> made = host_.create_stream();
      if (!made.is_ok()) return made;
      streams_.push_back(made.value());
    }
    return streams_[index];
  }

  void write(std::uint32_t slot, Address at, Bytes size, const Stream&) override {
    if (size < kStampBytes) return;
    const std::uint64_t stamp = stamp_of(slot);
    std::memcpy(at.pointer(), &stamp, sizeof stamp);
    std::memcpy((at + (size - kStampBytes)).pointer(), &stamp, sizeof stamp);
  }

  void read(std::uint32_t slot, Address at, Bytes size, const Stream&) override {
    if (size < kStampBytes) return;
    std::uint64_t first = 0;
    std::uint64_t last = 0;
    std::memcpy(&first, at.pointer(), sizeof first);
    std::memcpy(&last, (at + (size - kStampBytes)).pointer(), sizeof last);
    const std::uint64_t stamp = stamp_of(slot);
    if (first == stamp && last == stamp) return;
    if (faults_++ == 0)
      first_fault_ = fmt::format("allocation {} was overwritten while it was live", slot);
  }

  void tick() override {}

  DriverFigures figures() const override {
    DriverFigures figures;
    const spec::CallAccount& account = metered_.account();
    for (unsigned kind = 0; kind < device::kCallKinds; ++kind)
      figures.calls[kind] = account.by_kind[kind].calls;
    figures.ns = account.ns;
    figures.ns_max = account.ns_max;
    return figures;
  }

  std::uint64_t faults() override { return faults_; }
  std::string first_fault() override { return first_fault_; }

 private:
  static constexpr Bytes kStampBytes{sizeof(std::uint64_t)};
  static std::uint64_t stamp_of(std::uint32_t slot) {
    return 0x6173686c61720000u ^ (std::uint64_t{slot} * 0x9e3779b97f4a7c15u);
  }

  device::HostDevice host_;
  MeteredDevice metered_;
  std::vector<Stream> streams_;
  std::uint64_t faults_ = 0;
  std::string first_fault_;
};

}  // namespace

std::unique_ptr<World> make_host_world(Bytes capacity) {
  return std::make_unique<HostWorld>(capacity);
}

}  // namespace ashlar::tool
