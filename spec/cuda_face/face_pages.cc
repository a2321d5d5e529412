// Virtual memory.
#include <ashlar/device/sharing.h>

#include "spec/cuda_face/page_bytes.h"
#include "spec/cuda_face/shared_bytes.h"

namespace ashlar::spec::cuda_face {
namespace {

/// Can there be such pages?
bool is_possible(const MemoryProperties& properties) {
  const int types = properties.handle_types;
  return properties.type == 1 && properties.location.type == 1 &&
         (types == 0 || types == kHandleDescriptor || types == kHandleFabric) &&
         properties.has_direct_rdma == (attribute(kAttributeDirectRdma) == 1 ? 1 : 0);
}

CallResult mem_get_granularity(std::size_t* granularity, const MemoryProperties* properties,
                               int option) {
  if (!is_possible(*properties) || option != kGranularityMinimum) return kErrorInvalidValue;
  return on_current([&](device::Device& on) {
    *granularity = on.traits().page_granularity.count();
    return kSuccess;
  });
}

CallResult mem_address_reserve(DevicePointer* base, std::size_t size, std::size_t alignment,
                               DevicePointer at, unsigned long long flags) {
  if (at != 0 || flags != 0) return kErrorInvalidValue;
  return on_current([&](device::Device& on) {
    return store(base, on.address_reserve(Bytes{size}, Bytes{alignment}));
  });
}

CallResult mem_address_free(DevicePointer base, std::size_t size) {
  return on_current([&](device::Device& on) {
    return result_of(on.address_release(Address{base}, Bytes{size}));
  });
}

/// The device that memory is wanted on; null if it is not one of the machine's.
device::Device* device_at(const MemoryLocation& location) {
  const bool is_one = machine() != nullptr && location.type == 1 && location.id >= 0 &&
                      static_cast<std::uint32_t>(location.id) < machine()->device_count();
  return is_one ? &machine()->device(location.id) : nullptr;
}

/// A page of the device, which may leave the process that way.
Result<PageHandle> create_page(device::Device& on, Bytes size, int handle_types) {
  if (handle_types == 0) return on.page_create(size);
  return on.sharing()->page_create(size, handle_types == kHandleFabric
                                             ? device::ShareKind::kFabric
                                             : device::ShareKind::kDescriptor);
}

CallResult mem_create(MemoryHandle* handle, std::size_t size, const MemoryProperties* properties,
                      unsigned long long flags) {
  if (!is_possible(*properties) || flags != 0) return kErrorInvalidValue;
  const int types = properties->handle_types;
  return on_current([&](device::Device&) {
    device::Device* const on = device_at(properties->location);
    if (on == nullptr) return CallResult{kErrorInvalidDevice};
    const CallResult created = store(handle, create_page(*on, Bytes{size}, types));
    if (created == kSuccess) create_page_bytes(*handle, Bytes{size});
    return created;
  });
}

CallResult mem_release(MemoryHandle handle) {
  return on_current([&](device::Device& on) {
    const CallResult released = result_of(on.page_release(PageHandle{handle}));
    if (released == kSuccess) release_page_bytes(handle);
    return released;
  });
}

CallResult mem_map(DevicePointer at, std::size_t size, std::size_t offset, MemoryHandle handle,
                   unsigned long long flags) {
  if (offset != 0 || flags != 0) return kErrorInvalidValue;
  return on_current([&](device::Device& on) {
    const Status mapped = on.page_map(Address{at}, Bytes{size}, PageHandle{handle});
    if (!mapped.is_ok()) return result_of(mapped);
    map_page_bytes(Address{at}, Bytes{size}, handle);
    return map_file(Address{at}, Bytes{size});  // those of a page that is shared
  });
}

CallResult mem_unmap(DevicePointer at, std::size_t size) {
  return on_current([&](device::Device& on) {
    const CallResult unmapped = result_of(on.page_unmap(Address{at}, Bytes{size}));
    if (unmapped == kSuccess) unmap_page_bytes(Address{at}, Bytes{size});
    return unmapped;
  });
}

CallResult mem_set_access(DevicePointer at, std::size_t size, const MemoryAccess* access,
                          std::size_t count) {
  if (count != 1 || access->flags != 3) return kErrorInvalidValue;
  return on_current([&](device::Device&) {
    device::Device* const on = device_at(access->location);
    if (on == nullptr) return CallResult{kErrorInvalidDevice};
    const Status given = on->page_access(Address{at}, Bytes{size});
    return given.code() == Code::kUnsupported ? CallResult{kErrorInvalidDevice} : result_of(given);
  });
}

}  // namespace

std::span<const FaceFunction> page_functions() {
  static const FaceFunction kFunctions[] = {
      {"cuMemGetAllocationGranularity", 10020, pointer_of(mem_get_granularity)},
      {"cuMemAddressReserve", 10020, pointer_of(mem_address_reserve)},
      {"cuMemAddressFree", 10020, pointer_of(mem_address_free)},
      {"cuMemCreate", 10020, pointer_of(mem_create)},
      {"cuMemRelease", 10020, pointer_of(mem_release)},
      {"cuMemMap", 10020, pointer_of(mem_map)},
      {"cuMemUnmap", 10020, pointer_of(mem_unmap)},
      {"cuMemSetAccess", 10020, pointer_of(mem_set_access)},
  };
  return kFunctions;
}

}  // namespace ashlar::spec::cuda_face
