// OpenedRanges: what is open of other processes' memory, and how often (opened_memory.h).
//
// Thread safety: any thread; one lock, under which the driver is called.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

#include <ashlar/base/fork_check.h>
#include <ashlar/base/mutex.h>
#include <ashlar/device/device.h>
#include <ashlar/share/refused_releases.h>
#include <ashlar/share/share_header.h>

namespace ashlar::inline v0::share {

class OpenedRanges {
 public:
  /// Throws std::bad_alloc.
  explicit OpenedRanges(std::span<device::Device* const> devices)
      : devices_(devices.begin(), devices.end()) {}
  ~OpenedRanges();
  OpenedRanges(const OpenedRanges&) = delete;
  OpenedRanges& operator=(const OpenedRanges&) = delete;

  struct Mirror;
  /// One opened allocation.
  struct Range {
    device::Device* device = nullptr;
    Mirror* mirror = nullptr;  ///< null: a segment, which begins at `base`
    Address base;              ///< of the mirror, or of the segment
    Bytes first;               ///< its parts, in the mirror
    Bytes end;
  };

  /// Opens the parts, with their descriptors here. Errors as MemoryOpener::open(). Throws std::bad_alloc: then nothing is open.
  Result<Range> open(const ShareHeader& header, std::span<const int> descriptors)
      ASHLAR_EXCLUDES(lock_);
  /// In a forked child it does nothing: the memory is the parent's (C25).
  void close(const Range& range) noexcept ASHLAR_EXCLUDES(lock_);

  struct Page {
    Bytes size;
    std::uint64_t generation = 0;
    std::uint64_t uses = 0;
    bool is_barred =
        false;  ///< the driver did not unmap it: it stays mapped, and nobody may be given it
  };
  using Pages = std::map<Bytes, Page>;  ///< by their offset in the segment
  /// The addresses of an exporter's segment, here.
  struct Mirror {
    std::uint64_t exporter = 0;
    Address segment;  ///< the exporter's
    device::Device* device = nullptr;
    Address base;
    Bytes size;
    Pages pages;
  };

 private:
  /// The device that has that name; null, or why it cannot be known.
  Result<device::Device*> find_device(const device::DeviceUuid& uuid) noexcept;
  Result<Range> open_segment(device::Device& device, const ShareHeader& header)
      ASHLAR_REQUIRES(lock_);
  Result<Range> open_pages(device::Device& device, const ShareHeader& header,
                           std::span<const int> descriptors) ASHLAR_REQUIRES(lock_);
  /// Of the mirrors of the header's segment in which every part's place is free, or has that part, the one that has most of them; a
  /// new one if there is none. Cost: the mirrors.
  Result<Mirror*> find_mirror(device::Device& device, const ShareHeader& header)
      ASHLAR_REQUIRES(lock_);
  /// Maps the part there. After a failure `record` is barred if the part is mapped all the same. REQUIRES: its release has a place.
  Status map(device::Device& device, Address at, const SharedPart& part, int descriptor,
             Page* record) noexcept ASHLAR_REQUIRES(lock_);
  /// Asks the driver again for what it refused to unmap, to close or to release. Cost: a comparison if there is nothing; else the
  /// mirrors and their pages.
  void retry_refused() noexcept ASHLAR_REQUIRES(lock_);
  /// Gives back the addresses of a mirror without pages; if the driver refuses, the mirror stays, for the next opening or retry.
  void release(Mirror* mirror) noexcept ASHLAR_REQUIRES(lock_);
  /// One use less of the pages from `first` to `end`; the mirror goes with its last page.
  void drop(Mirror* mirror, Bytes first, Bytes end) noexcept ASHLAR_REQUIRES(lock_);

  const ForkCheck birth_;
  const std::vector<device::Device*> devices_;
  Mutex lock_;
  /// Is a page barred, or a mirror empty? True for a while after the last is gone.
  bool has_refused_mirrors_ ASHLAR_GUARDED_BY(lock_) = false;
  RefusedReleases refused_ ASHLAR_GUARDED_BY(lock_);
  std::vector<std::unique_ptr<Mirror>> mirrors_ ASHLAR_GUARDED_BY(lock_);
};

}  // namespace ashlar::inline v0::share
