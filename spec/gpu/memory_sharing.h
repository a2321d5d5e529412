// MemorySharing: memory of this machine for others, and theirs here (D9, D10).
//
// Purpose: the part of Memory that several processes have to do with.
// Thread safety: none (the machine's lock).
// Invariants:
//   (1) a page imported from another machine, and each opened segment, holds a descriptor of its file of its own;
//   (2) of one file there is one page, and one opened segment.
#pragma once

#include <cstdint>
#include <vector>

#include "spec/gpu/memory.h"

namespace ashlar::spec {

class MemorySharing {
 public:
  /// `memory` must outlive this.
  MemorySharing(Memory& memory, FaultLog& faults) : memory_(memory), faults_(faults) {}
  ~MemorySharing();
  MemorySharing(const MemorySharing&) = delete;
  MemorySharing& operator=(const MemorySharing&) = delete;

  Result<device::ShareKind> page_kind(std::uint32_t device, PageHandle handle);
  Result<device::ShareHandle> export_page(std::uint32_t device, PageHandle handle);
  Result<PageHandle> import_page(std::uint32_t device, const device::ShareHandle& handle,
                                 Bytes size);
  Result<device::ShareHandle> export_segment(std::uint32_t device, Address base);
  Result<Address> open_segment(std::uint32_t device, const device::ShareHandle& handle);
  /// What close_segment() would unmap: nothing if it was opened more than once. An error, and a fault, if none is open there.
  Result<Bytes> size_to_close(std::uint32_t device, Address base);
  /// REQUIRES: size_to_close gave its answer.
  void close_segment(Address base);
  SharedBytes shared_bytes(Address at) const;
  /// The size of the segment that begins there, of this machine or opened; 0 if none does.
  Bytes segment_size(Address base) const;
  /// The file of an exported page, or of a page of another machine; -1 for any other.
  int file_of(PageHandle handle);
  /// Where the page is mapped; empty for a dead handle.
  std::vector<MemoryPlace> places_of(PageHandle handle);

 private:
  struct OpenedSegment {
    std::uint64_t base = 0;
    std::uint64_t file = 0;  // its number
    std::uint32_t times = 0;
    int descriptor = -1;
  };
  OpenedSegment* opened_at(std::uint64_t base);

  Memory& memory_;
  FaultLog& faults_;
  std::vector<OpenedSegment> opened_;
};

}  // namespace ashlar::spec
