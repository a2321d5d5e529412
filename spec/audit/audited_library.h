// The functions of an allocator that somebody else wrote, as an audit calls them.
//
// Purpose: the functions of PyTorch's CUDAPluggableAllocator, so that what is written for it can be audited as it is.
// Thread safety: the library's.
// Source: PyTorch, torch/csrc/cuda/CUDAPluggableAllocator.h.
#pragma once

#include <cstddef>
#include <functional>
#include <stdexcept>

namespace ashlar::spec {

/// Which function of the library threw, and what.
struct LibraryThrew : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// `stream`: a cudaStream_t of that device. Each may throw LibraryThrew.
struct AuditedLibrary {
  /// At least `size` bytes for work on that stream, or null.
  std::function<void*(std::size_t size, int device, void* stream)> allocate;
  /// The block, its size and its stream as they were allocated. The caller has ordered all work of other streams before
  /// what that stream does next, or announced it.
  std::function<void(void* block, std::size_t size, int device, void* stream)> free;
  /// May be null. Announces work on another stream, which the library has to wait for after the free.
  std::function<void(void* block, void* stream)> record_use;
  /// May be null. Gives unused memory back to the driver.
  std::function<void()> empty_cache;
};

}  // namespace ashlar::spec
