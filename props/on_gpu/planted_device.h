// PlantedDevice: a device that breaks its word in one way, so that the allocator above it hands out memory too early.
//
// Purpose: a suite that finds nothing has to be seen to find these, on the machine that it runs on.
// Thread safety: one thread maps pages; that of the device otherwise.
#pragma once

#include <cstdint>
#include <set>
#include <string_view>
#include <vector>

#include <ashlar/device/forwarding_device.h>

namespace ashlar::props {

/// What is broken. The last two are the caller's own faults, which the canary world plants.
enum class Planted : std::uint8_t {
  kNothing,
  kEarlyDone,    ///< an event whose work runs is said to be done
  kDroppedWait,  ///< a stream does not wait for the event that it was told to wait for
  kEarlyRemap,  ///< now and then a page that is in use is mapped in place of the one that was asked for
  kForgottenUse,  ///< the allocator is not told of uses by other streams
  kLostPool,      ///< a memory pool is released, and its graphs are launched all the same
};

struct PlantedName {
  Planted planted;
  std::string_view name;
};
inline constexpr PlantedName kPlantedNames[] = {{Planted::kEarlyDone, "early-done"},
                                                {Planted::kDroppedWait, "dropped-wait"},
                                                {Planted::kEarlyRemap, "early-remap"},
                                                {Planted::kForgottenUse, "forgotten-use"},
                                                {Planted::kLostPool, "lost-pool"}};

class PlantedDevice final : public device::ForwardingDevice {
 public:
  PlantedDevice(device::Device& inner, Planted planted)
      : ForwardingDevice(inner), planted_(planted) {}

  Status event_query(EventHandle event) noexcept override {
    return early(ForwardingDevice::event_query(event));
  }
  Status event_synchronize(EventHandle event, std::uint32_t timeout_ms) noexcept override {
    if (planted_ == Planted::kEarlyDone) return event_query(event);
    return ForwardingDevice::event_synchronize(event, timeout_ms);
  }
  Status stream_wait(StreamHandle stream, EventHandle event) noexcept override {
    if (planted_ == Planted::kDroppedWait) return Status::ok();
    return ForwardingDevice::stream_wait(stream, event);
  }
  Status page_map(Address at, Bytes size, PageHandle page) noexcept override;
  Status page_unmap(Address at, Bytes size) noexcept override;
  Status page_release(PageHandle page) noexcept override;

  /// How often a page was mapped that had been mapped before.
  std::uint64_t moves() const { return moves_; }

 private:
  struct Mapping {
    Address at;
    Bytes size;
    PageHandle page;
  };
  Status early(Status asked) const {
    return planted_ == Planted::kEarlyDone && asked.code() == Code::kNotReady ? Status::ok()
                                                                              : asked;
  }

  const Planted planted_;
  std::vector<Mapping> mappings_;  ///< the oldest first
  std::uint32_t maps_ = 0;
  std::set<std::uint64_t> known_;  ///< handles of pages that were mapped
  std::uint64_t moves_ = 0;
};

}  // namespace ashlar::props
