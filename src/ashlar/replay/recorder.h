// Listens to a run and writes down what it asked for.
//
// Purpose: row REC-1. Hands every call on to its upstream, and notes the allocations on one stream,
// their frees, and whether other streams used them. Frees of what it did not see allocated are
// handed on and not noted; so is what is allocated on other streams.
// Thread safety: any thread. Of calls that run at the same time, the order noted is one they can
// have had.
//
// Invariant: noting never fails a call. Where the host has no memory for a note, the recording is
// spoilt, and take() says so. A free allocates nothing.
#pragma once

#include <cstdint>
#include <mutex>
#include <unordered_map>

#include <ashlar/replay/recording.h>
#include <ashlar/replay/router.h>

namespace ashlar::inline v0::replay {

class ASHLAR_API Recorder final : public Route {
 public:
  /// `upstream` outlives this.
  Recorder(Upstream& upstream, const Stream& stream) noexcept
      : upstream_(upstream), stream_(stream) {}

  Result<Address> allocate(Bytes size, const Stream& stream) noexcept override;
  Status free(Address address) noexcept override;
  Status record_use(Address address, const Stream& stream) noexcept override;
  /// Is it a live allocation that this noted?
  bool owns(Address address) const noexcept override;

  /// The run so far, what is live in it as never freed; from now on a new one is noted, to which
  /// that is not known. kOutOfMemory: there was no room for a note. kSizeOverflow: sizes that no
  /// plan can have (check_recording).
  Result<Recording> take() noexcept;

 private:
  using Live = std::unordered_map<Address, std::uint32_t>;  // allocation by address

  void note(Address address, Bytes size) noexcept;

  Upstream& upstream_;
  const Stream stream_;
  // of what follows; not held while upstream is called, which may call back
  mutable std::mutex mutex_;
  Recording recording_;
  Live live_;
  std::uint64_t run_ = 0;  // how often it was taken
  bool is_spoilt_ = false;
};

}  // namespace ashlar::inline v0::replay
