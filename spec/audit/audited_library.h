// The functions of an allocator that somebody else wrote, as an audit calls them.
//
// Purpose: the functions of PyTorch's CUDAPluggableAllocator, so that what is written for it can be audited as it is.
// Thread safety: the library's.
// Source: PyTorch, torch/csrc/cuda/CUDAPluggableAllocator.h.
#pragma once

#include <cstddef>

namespace ashlar::spec {

/// `stream`: a cudaStream_t of that device.
struct AuditedLibrary {
  /// At least `size` bytes for work on that stream, or null.
  void* (*allocate)(std::size_t size, int device, void* stream) = nullptr;
  /// The block, its size and its stream as they were allocated. The caller has ordered all work of other streams before
  /// what that stream does next, or announced it.
  void (*free)(void* block, std::size_t size, int device, void* stream) = nullptr;
  /// May be null. Announces work on another stream, which the library has to wait for after the free.
  void (*record_use)(void* block, void* stream) = nullptr;
  /// May be null. Gives unused memory back to the driver.
  void (*empty_cache)() = nullptr;
};

}  // namespace ashlar::spec
