// SimStreams: the streams of a simulated machine: their identities, handles and defaults.
//
// Thread safety: none (the machine's lock).
// Invariants:
//   (1) A lane index is a stream's identity minus 1; it is never reused.
//   (2) A device's legacy and per-thread default streams are made when they are first named.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "spec/gpu/handle_table.h"
#include "spec/gpu/machine_state.h"

namespace ashlar::spec {

inline std::uint32_t index_of(DeviceId id) { return static_cast<std::uint32_t>(id.value()); }
inline std::uint32_t lane_of(const Stream& stream) {
  return static_cast<std::uint32_t>(stream.id.value() - 1);
}

class SimStreams {
 public:
  /// `state` must outlive this.
  explicit SimStreams(MachineState& state);

  Stream create(std::uint32_t device, StreamKind kind);
  Status destroy(const Stream& stream);
  Stream default_stream(std::uint32_t device, StreamHandle which) {
    return stream_of(default_lane(device, which));
  }
  /// The lane that the handle means on that device; an error and a fault for a dead or foreign
  /// handle.
  Result<std::uint32_t> resolve(std::uint32_t device, StreamHandle handle);
  Result<std::uint32_t> resolve(const Stream& stream) {
    return resolve(index_of(stream.device), stream.handle);
  }
  /// The whole Stream that the handle means.
  Result<Stream> identify(std::uint32_t device, StreamHandle handle);
  /// Is that a stream's identity here, alive or dead?
  bool knows(const Stream& stream) const {
    return stream.id.value() > 0 && stream.id.value() <= lanes_.size();
  }

  std::uint32_t device_of(std::uint32_t lane) const { return lanes_[lane].device; }
  /// Is the lane ordered with the legacy default stream?
  bool is_blocking(std::uint32_t lane) const { return lanes_[lane].blocking; }
  /// The device's legacy default stream; nothing if it was never named.
  std::optional<std::uint32_t> legacy_lane(std::uint32_t device) const {
    return defaults_[device].legacy;
  }
  /// The device's living blocking streams, the legacy stream not among them.
  std::span<const std::uint32_t> blocking_lanes(std::uint32_t device) const {
    return defaults_[device].blocking;
  }
  /// visit(handle value, device) for every stream that create made and destroy did not end.
  template <class Visit>
  void for_each(Visit visit) const {
    handles_.for_each(
        [&](std::uint64_t value, std::uint32_t lane) { visit(value, device_of(lane)); });
  }

 private:
  struct Lane {
    std::uint32_t device = 0;
    StreamHandle handle;
    bool blocking = false;
    bool thread_bound = false;
  };
  struct Defaults {
    std::optional<std::uint32_t> legacy;
    std::vector<std::optional<std::uint32_t>> per_thread;  // by thread
    std::vector<std::uint32_t> blocking;
  };

  std::uint32_t add_lane(const Lane& lane);
  std::uint32_t default_lane(std::uint32_t device, StreamHandle which);
  Stream stream_of(std::uint32_t lane) const;

  MachineState& state_;
  std::vector<Lane> lanes_;
  std::vector<Defaults> defaults_;      // by device
  HandleTable<std::uint32_t> handles_;  // lane
};

}  // namespace ashlar::spec
