#include "bench/driver/page_batch.h"

namespace ashlar::bench {

PageBatch::PageBatch(const DriverSession& session, std::size_t count, std::size_t page_size)
    : session_(session), page_size_(page_size), pages_(count) {
  session_.cu.mem_address_reserve(&base_, count * page_size, 0, 0, 0);
}

PageBatch::~PageBatch() {
  release_all();
  session_.cu.mem_address_free(base_, count() * page_size_);
}

CUresult PageBatch::create(std::size_t i) {
  const CUresult result = create_page(session_, page_size_, &pages_[i].handle);
  if (result == CUDA_SUCCESS) pages_[i].is_held = true;
  return result;
}

CUresult PageBatch::map(std::size_t i) {
  const CUresult result = session_.cu.mem_map(at(i), page_size_, 0, pages_[i].handle, 0);
  if (result == CUDA_SUCCESS) pages_[i].is_mapped = true;
  return result;
}

CUresult PageBatch::release(std::size_t i) {
  const CUresult result = session_.cu.mem_release(pages_[i].handle);
  if (result == CUDA_SUCCESS) pages_[i].is_held = false;
  return result;
}

CUresult PageBatch::access(std::size_t first, std::size_t pages) {
  return give_access(session_, at(first), pages * page_size_);
}

CUresult PageBatch::unmap(std::size_t first, std::size_t pages) {
  const CUresult result = session_.cu.mem_unmap(at(first), pages * page_size_);
  if (result == CUDA_SUCCESS) {
    for (std::size_t i = first; i < first + pages; ++i) pages_[i].is_mapped = false;
  }
  return result;
}

bool PageBatch::create_all() {
  for (std::size_t i = 0; i < count(); ++i) {
    if (!pages_[i].is_held && create(i) != CUDA_SUCCESS) return false;
  }
  return true;
}

bool PageBatch::map_all() {
  if (!create_all()) return false;
  for (std::size_t i = 0; i < count(); ++i) {
    if (!pages_[i].is_mapped && map(i) != CUDA_SUCCESS) return false;
  }
  return access(0, count()) == CUDA_SUCCESS;
}

void PageBatch::unmap_all() {
  for (std::size_t i = 0; i < count(); ++i) {
    if (pages_[i].is_mapped) unmap(i, 1);
  }
}

void PageBatch::release_all() {
  unmap_all();
  for (std::size_t i = 0; i < count(); ++i) {
    if (pages_[i].is_held) release(i);
  }
}

}  // namespace ashlar::bench
