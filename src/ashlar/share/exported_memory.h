// MemoryExporter: allocations of a caching allocator for other processes.
//
// Purpose: an allocation becomes a header (share_header.h) and, where its pages travel so, file descriptors. Its memory is pinned
// meanwhile (C21): no page of it moves, and its segment is not given back.
// Thread safety: a MemoryExporter from any thread; an ExportedMemory is one thread's at a time.
//
//   share::MemoryExporter exporter(*allocator);
//   share::ExportedMemory memory = exporter.export_memory(address).value();
//   share::send_memory(socket, memory);       // descriptor_passing.h; or memory.header() by any channel
//   ...                                       // until the other process has closed it
//
// The order of work is the processes' own: the importer uses the memory after the work that fills it is known complete, or is
// ordered behind it by an event that is shared too.
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include <ashlar/base/export.h>
#include <ashlar/cache/caching_allocator.h>
#include <ashlar/share/descriptors.h>
#include <ashlar/share/share_header.h>

namespace ashlar::inline v0::share {

/// An exported allocation. While it lives its memory stays under its addresses, and the descriptors are open. Its end does not change
/// what other processes have mapped.
class ASHLAR_API ExportedMemory {
 public:
  /// Exports nothing.
  ExportedMemory() = default;
  /// `from` exports nothing afterwards.
  ExportedMemory(ExportedMemory&& from) noexcept { swap(from); }
  /// Ends what this exports so far, as the destructor does. `from` exports nothing afterwards.
  ExportedMemory& operator=(ExportedMemory&& from) noexcept {
    ExportedMemory taken(std::move(from));
    swap(taken);
    return *this;
  }
  /// Unpins the memory and closes the descriptors. REQUIRES: where is_whole_segment(), no process has it open any more (D9).
  ~ExportedMemory();

  /// What the other process takes. Where descriptors() are not sent beside it, the other process fetches them from this one,
  /// which must still have them open, and must permit it (pidfd_getfd: the same user, and ptrace is not restricted; under Yama's
  /// ptrace_scope=1 the exporter names a process that is not its ancestor with prctl(PR_SET_PTRACER)).
  std::span<const std::byte> header() const noexcept { return header_; }
  /// The file descriptors, in the order of the header's parts.
  std::span<const int> descriptors() const noexcept { return descriptors_.all(); }
  /// Is it a whole segment of the driver's, which must outlive every use in other processes?
  bool is_whole_segment() const noexcept { return is_whole_segment_; }
  /// The memory.
  const cache::PinnedRange& range() const noexcept { return range_; }

 private:
  friend class MemoryExporter;
  void swap(ExportedMemory& other) noexcept;

  cache::CachingAllocator* allocator_ = nullptr;
  cache::PinnedRange range_;
  std::vector<std::byte> header_;
  Descriptors descriptors_;
  bool is_whole_segment_ = false;
};

/// Exports allocations of one allocator.
class ASHLAR_API MemoryExporter {
 public:
  /// The allocator must outlive this and whatever it exports.
  explicit MemoryExporter(cache::CachingAllocator& allocator) noexcept;

  /// Exports the live allocation at `address`. REQUIRES: it is freed only when no other process uses it: the pin keeps its pages,
  /// not its bytes, which the next allocation of this process may get. Errors as CachingAllocator::pin(); kUnsupported if its device shares nothing, or
  /// its pages were made without handles (ShareableDevice makes them with one); kDriverError if the process has no
  /// descriptor left; kHostOutOfMemory. After an error nothing is pinned or open.
  /// Cost: a device call for each page. REQUIRES: as pin().
  Result<ExportedMemory> export_memory(Address address) noexcept;

 private:
  Status fill(const std::vector<cache::PhysicalRange>& ranges, ExportedMemory* out) const;

  cache::CachingAllocator& allocator_;
  std::uint64_t number_ = 0;
};

}  // namespace ashlar::inline v0::share
