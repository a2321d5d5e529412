// Pages of a GPU's memory as the driver makes them, and the library's handles as the driver's pointers.
//
// Thread safety: any thread.
#pragma once

#include <ashlar/base/types.h>
#include <ashlar/cuda/driver_abi.h>
#include <ashlar/cuda/primary_context.h>

namespace ashlar::inline v0::cuda {

inline StreamPointer pointer_of(StreamHandle stream) noexcept {
  return reinterpret_cast<StreamPointer>(stream.value());
}

/// What pages of that GPU are made as: network cards can reach them where it has that. `handle_types`: how they may leave the process.
inline MemoryProperties page_properties(const PrimaryContext& gpu, bool has_direct_rdma,
                                        int handle_types = 0) noexcept {
  MemoryProperties properties;
  properties.handle_types = handle_types;
  properties.location.id = gpu.device();
  properties.has_direct_rdma = has_direct_rdma ? 1 : 0;
  return properties;
}

/// A page made so. Errors: the driver's. REQUIRES: the driver has virtual memory.
inline Result<PageHandle> create_page(PrimaryContext& gpu, Bytes size,
                                      const MemoryProperties& properties) noexcept {
  MemoryHandle handle = 0;
  const Status made =
      gpu.call([&] { return gpu.driver().pages.create(&handle, size.count(), &properties, 0); });
  if (!made.is_ok()) return made;
  return PageHandle{handle};
}

}  // namespace ashlar::inline v0::cuda
