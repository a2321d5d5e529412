// BufferMap: the buffers of a backend's memory, by address.
//
// Purpose: what a backend needs to tell its own bytes from others (Backend::holds, release_buffer).
// Thread safety: any thread; `mutex_` guards the map.
// Invariant: (1) no buffer is empty, reaches beyond the last address, or shares a byte with another.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include <ashlar/base/mutex.h>
#include <ashlar/base/status.h>
#include <ashlar/base/types.h>
#include <ashlar/sched/backend.h>

namespace ashlar::inline v0::sched {

/// What is known of a buffer.
struct BufferEntry {
  Bytes size;
  bool is_own = false;  ///< the backend's, to be freed; else the caller's
};

class BufferMap {
 public:
  /// Adds a buffer. kHostOutOfMemory; kInvalidArgument if (1) would not hold. Then nothing is added. O(log n).
  Status add(Address base, BufferEntry buffer) noexcept;
  /// Adds memory of the caller's. Errors as add(); kInvalidArgument: null, or not aligned to `alignment`. O(log n).
  Result<Address> adopt(void* pointer, Bytes size, Bytes alignment) noexcept;
  /// Takes out the buffer that begins there; nullopt: there is none. O(log n).
  std::optional<BufferEntry> remove(Address base) noexcept;
  /// The buffer in which that byte lies. kUnknownPointer: there is none. O(log n).
  Result<BufferRange> at(Address byte) const noexcept;
  /// Whether the bytes lie in one buffer. O(log n).
  bool holds(Address begin, Bytes size) const noexcept;
  /// visit(base, BufferEntry) for each, by ascending address. REQUIRES: it calls nothing of the map.
  template <class Visit>
  void for_each(Visit&& visit) const {
    const MutexGuard guard(mutex_);
    for (const auto& [base, buffer] : buffers_) visit(base, buffer);
  }

 private:
  mutable Mutex mutex_;
  std::map<Address, BufferEntry> buffers_ ASHLAR_GUARDED_BY(mutex_);
};

}  // namespace ashlar::inline v0::sched
