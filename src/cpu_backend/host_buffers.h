// The buffers that processor backends share: host memory that is theirs, or the caller's.
//
// Thread safety: any thread.
#pragma once

#include <ashlar/base/status.h>
#include <ashlar/base/types.h>
#include <ashlar/sched/backend.h>
#include <ashlar/sched/buffer_map.h>

namespace ashlar::cpu {

class HostBuffers {
 public:
  /// Buffers aligned to `alignment`, a power of two, of at most `buffer_max` bytes each.
  explicit HostBuffers(Bytes alignment = Bytes{64}, Bytes buffer_max = Bytes::max())
      : id_(sched::new_memory_id()), alignment_(alignment), buffer_max_(buffer_max) {}
  ~HostBuffers();
  HostBuffers(const HostBuffers&) = delete;
  HostBuffers& operator=(const HostBuffers&) = delete;

  sched::MemoryId id() const noexcept { return id_; }
  Bytes alignment() const noexcept { return alignment_; }
  Bytes buffer_max() const noexcept { return buffer_max_; }

  /// As Backend's functions of these names.
  Result<Address> make(Bytes size) noexcept;
  Result<Address> adopt(void* pointer, Bytes size) noexcept;
  Status release(Address base) noexcept;
  Result<sched::BufferRange> at(Address byte) const noexcept { return buffers_.at(byte); }
  /// Whether the bytes lie in one of the buffers.
  bool holds(Address begin, Bytes size) const noexcept { return buffers_.holds(begin, size); }

 private:
  const sched::MemoryId id_;
  const Bytes alignment_;
  const Bytes buffer_max_;
  sched::BufferMap buffers_;
};

}  // namespace ashlar::cpu
