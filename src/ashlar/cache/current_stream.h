// The calling thread's current stream of each device, and allocation on it (row DEV-20).
//
// Purpose: code that is written against "the current stream", as most tensor code is, allocates without naming one. A
// scope makes a stream current; scopes nest, and the innermost one of a device counts.
// Thread safety: each thread has current streams of its own. A scope ends on the thread that it began on.
//
// Invariants:
//   (1) the scopes of a thread end in the reverse order of their beginnings.
#pragma once

#include <ashlar/base/export.h>
#include <ashlar/cache/caching_allocator.h>

namespace ashlar::inline v0::cache {

/// The stream of the innermost scope of that device on this thread; kNotFound if there is none. Cost: O(scopes that
/// the thread is in).
ASHLAR_API Result<Stream> current_stream(DeviceId device) noexcept;

/// Makes a stream the calling thread's current one of its device, until the scope ends. The caller ends it before
/// the stream is destroyed. Cost: none that grows; makes no device call and takes no lock.
class ASHLAR_API StreamScope {
 public:
  /// The scope of the stream begins; a copy of `stream` is kept.
  explicit StreamScope(const Stream& stream) noexcept;
  ~StreamScope();
  StreamScope(const StreamScope&) = delete;
  StreamScope& operator=(const StreamScope&) = delete;

 private:
  friend Result<Stream> current_stream(DeviceId device) noexcept;
  const Stream stream_;
  const StreamScope* const outer_;
};

/// allocator.allocate() on the current stream of the device; kNotFound if there is none. Null `account`: none is
/// written.
inline Result<Address> allocate_on_current(CachingAllocator& allocator, Bytes size, DeviceId device,
                                           OutOfMemory* account = nullptr) noexcept {
  const Result<Stream> stream = current_stream(device);
  if (!stream.is_ok()) return stream.status();
  return allocator.allocate(size, stream.value(), account);
}

}  // namespace ashlar::inline v0::cache
