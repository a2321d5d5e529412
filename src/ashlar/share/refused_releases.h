// RefusedReleases: segments of other processes that the driver did not close, and handles of pages that it did not release.
//
// Purpose: what is refused once is asked for again, so that nothing stays open for as long as the process lives. Releasing needs no
// memory: the place of a segment's entry is made when the segment is opened.
// Thread safety: none; the owner's lock.
#pragma once

#include <cstddef>
#include <vector>

#include <ashlar/device/device.h>
#include <ashlar/device/relaxed_capture.h>
#include <ashlar/device/sharing.h>

namespace ashlar::inline v0::share {

class RefusedReleases {
 public:
  /// Makes place for the release of so many pages, and of one more segment than are open. Throws std::bad_alloc.
  void reserve(std::size_t pages) {
    const std::size_t wanted = releases_.size() + segments_ + 1 + pages;
    if (releases_.capacity() < wanted) releases_.reserve(2 * wanted);
  }
  /// A segment was opened. REQUIRES: reserve() since the last.
  void note_segment() noexcept { ++segments_; }

  /// Closes the segment now, or in a later retry(). REQUIRES: note_segment() for it.
  void close(device::Device& device, Address segment) noexcept {
    --segments_;
    release({&device, segment, PageHandle{}});
  }
  /// Releases the handle now, or in a later retry(). REQUIRES: reserve() for it.
  void release(device::Device& device, PageHandle page) noexcept {
    release({&device, Address{}, page});
  }
  /// Asks for each once more. Cost: a call for each, and two for the thread's capture mode.
  void retry() noexcept {
    std::erase_if(releases_, [](const Release& each) {
      const device::RelaxedCapture relaxed(*each.device);
      return is_done(each);
    });
  }

 private:
  struct Release {
    device::Device* device = nullptr;
    Address segment;  ///< 0: the page
    PageHandle page;
  };

  static bool is_done(const Release& each) noexcept {
    return each.segment == Address{} ? each.device->page_release(each.page).is_ok()
                                     : each.device->sharing()->segment_close(each.segment).is_ok();
  }
  void release(const Release& release) noexcept {
    if (!is_done(release)) releases_.push_back(release);
  }

  std::size_t segments_ = 0;  ///< open
  std::vector<Release> releases_;
};

}  // namespace ashlar::inline v0::share
