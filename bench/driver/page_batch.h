// PageBatch: pages of one size and a range of addresses that holds all of them, in whatever state.
//
// Purpose: the timed calls and the facts start from "pages that are mapped, with access" and the like,
// and leave nothing behind.
// Thread safety: none.
#pragma once

#include <cstddef>
#include <vector>

#include "bench/driver/driver_session.h"

namespace ashlar::bench {

class PageBatch {
 public:
  PageBatch(const DriverSession& session, std::size_t count, std::size_t page_size);
  ~PageBatch();
  PageBatch(const PageBatch&) = delete;
  PageBatch& operator=(const PageBatch&) = delete;

  std::size_t count() const { return pages_.size(); }
  CUdeviceptr at(std::size_t i) const { return base_ + i * page_size_; }
  CUmemGenericAllocationHandle handle(std::size_t i) const { return pages_[i].handle; }

  // One page. The state follows what the driver answers.
  CUresult create(std::size_t i);
  CUresult map(std::size_t i);
  CUresult release(std::size_t i);
  // A run of pages in one call.
  CUresult access(std::size_t first, std::size_t pages);
  CUresult unmap(std::size_t first, std::size_t pages);

  // All of them; what is in that state already stays. False if the driver refuses one.
  bool create_all();
  bool map_all();  ///< creates what is missing; with access
  void unmap_all();
  void release_all();  ///< unmaps too

 private:
  struct Page {
    CUmemGenericAllocationHandle handle = 0;
    bool is_held = false;
    bool is_mapped = false;
  };

  const DriverSession& session_;
  std::size_t page_size_;
  CUdeviceptr base_ = 0;
  std::vector<Page> pages_;
};

}  // namespace ashlar::bench
