// Records what a run allocates and frees.
//
// Purpose: row REC-1. A recorder passes every call on to its upstream, and records the allocations
// on one stream, their frees, and whether other streams used them. It does not record what is
// allocated on other streams, nor frees of memory that it did not see allocated.
// Thread safety: any thread. Calls that run at the same time are recorded in an order that they can
// have had.
//
// Invariant: recording never makes a call fail. If host memory for a record cannot be allocated, the
// recording is spoilt, and take() says so. A free allocates nothing.
#pragma once

#include <cstdint>
#include <mutex>
#include <unordered_map>

#include <ashlar/replay/recording.h>
#include <ashlar/replay/router.h>

namespace ashlar::inline v0::replay {

/// Stands before an upstream and records one stream's run.
class ASHLAR_API Recorder final : public Route {
 public:
  /// Records the run on `stream`. `upstream` outlives the recorder. Never throws.
  Recorder(Upstream& upstream, const Stream& stream) noexcept
      : upstream_(upstream), stream_(stream) {}

  /// As upstream's; the allocation is recorded if it is on the recorder's stream. Cost: upstream's,
  /// and O(1) amortised. Never throws. Thread safety: any thread.
  Result<Address> allocate(Bytes size, const Stream& stream) noexcept override;
  /// As upstream's; recorded if the allocation was. Cost: upstream's, and O(1). Never throws.
  /// Thread safety: any thread.
  Status free(Address address) noexcept override;
  /// As upstream's; recorded if the allocation was, and `stream` is another one. Cost: upstream's,
  /// and O(1). Never throws. Thread safety: any thread.
  Status record_use(Address address, const Stream& stream) noexcept override;
  /// Whether a recorded allocation that is live begins at the address. Cost: O(1). Never throws.
  /// Thread safety: any thread.
  bool owns(Address address) const noexcept override;

  /// The run so far; allocations that are still live count as never freed. Begins a new run, to
  /// which they do not belong. kHostOutOfMemory: host memory ran out while the run was recorded, or
  /// does now. kSizeOverflow: the sizes are too large to be planned (check_recording). Cost: linear.
  /// Never throws. Thread safety: any thread.
  Result<Recording> take() noexcept;

 private:
  using Live = std::unordered_map<Address, std::uint32_t>;  // allocation by address

  void note(Address address, Bytes size) noexcept;

  Upstream& upstream_;
  const Stream stream_;
  // Guards the members below. Not held while upstream is called, which may call back.
  mutable std::mutex mutex_;
  Recording recording_;
  Live live_;
  std::uint64_t run_ = 0;  // how many runs were taken
  bool is_spoilt_ = false;
};

}  // namespace ashlar::inline v0::replay
