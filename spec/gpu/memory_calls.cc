#include "spec/gpu/memory_calls.h"

namespace ashlar::spec {

Status MemoryCalls::check_virtual_memory(const char* call) {
  ASHLAR_REQUIRE(state_.options.virtual_memory, Code::kUnsupported,
                 "no virtual memory on this device");
  return state_.check_safe(call);
}

// The detector names the kernel and whose fault it is where it can; the queues show the rest.
void MemoryCalls::about_to_unmap(Address at, Bytes size) {
  state_.registrations.on_unmap(at, size);
  const std::size_t before = state_.faults.count();
  state_.detector.on_unmap(at, size, state_.threads.current(), true);
  if (state_.faults.count() != before || !state_.scheduler.in_flight(at, size)) return;
  state_.faults.misuse(FaultKind::kInFlight, "D4: memory at ", at.value(), " + ", size.count(),
                       " returned or unmapped under a kernel");
}

Result<Address> MemoryCalls::segment_alloc(std::uint32_t device, Bytes size, HeldKind kind) {
  const Status safe =
      state_.check_safe(kind == HeldKind::kSegment ? "cudaMalloc" : "cudaMallocHost");
  if (!safe.is_ok()) return safe;
  return kind == HeldKind::kSegment ? state_.memory.segment_alloc(device, size)
                                    : state_.memory.pinned_alloc(device, size);
}

Status MemoryCalls::segment_free(std::uint32_t device, Address base, HeldKind kind) {
  const Status safe = state_.check_safe(kind == HeldKind::kSegment ? "cudaFree" : "cudaFreeHost");
  if (!safe.is_ok()) return safe;
  const std::optional<Bytes> size = state_.memory.size_to_free(device, base, kind);
  ASHLAR_REQUIRE(size.has_value(), Code::kInvalidArgument, "not an address this device handed out");
  about_to_unmap(base, *size);
  state_.memory.free(device, base, kind);
  return Status::ok();
}

Status MemoryCalls::host_register(std::uint32_t device, Address base, Bytes size) {
  const Status safe = state_.check_safe("cudaHostRegister");
  return safe.is_ok() ? state_.memory.register_range(device, base, size) : safe;
}

Result<Address> MemoryCalls::address_reserve(std::uint32_t device, Bytes size, Bytes alignment) {
  const Status able = check_virtual_memory("cuMemAddressReserve");
  if (!able.is_ok()) return able;
  return state_.memory.reserve(device, size, alignment);
}

Status MemoryCalls::address_release(std::uint32_t device, Address base, Bytes size) {
  const Status able = check_virtual_memory("cuMemAddressFree");
  return able.is_ok() ? state_.memory.release_reservation(device, base, size) : able;
}

Result<PageHandle> MemoryCalls::page_create(std::uint32_t device, Bytes size,
                                            device::ShareKind kind) {
  const Status able = check_virtual_memory("cuMemCreate");
  if (!able.is_ok()) return able;
  return state_.memory.create_page(device, size, kind);
}

Status MemoryCalls::page_release(std::uint32_t device, PageHandle page) {
  const Status able = check_virtual_memory("cuMemRelease");
  return able.is_ok() ? state_.memory.release_page(device, page) : able;
}

Status MemoryCalls::page_map(std::uint32_t device, Address at, Bytes size, PageHandle page) {
  const Status able = check_virtual_memory("cuMemMap");
  return able.is_ok() ? state_.memory.map(device, at, size, page) : able;
}

Status MemoryCalls::segment_close(std::uint32_t device, Address base) {
  const Status safe = state_.check_safe("cudaIpcCloseMemHandle");
  if (!safe.is_ok()) return safe;
  const Result<Bytes> size = state_.sharing.size_to_close(device, base);
  if (!size.is_ok()) return size.status();
  if (size.value() > Bytes{}) about_to_unmap(base, size.value());
  state_.sharing.close_segment(base);
  return Status::ok();
}

Status MemoryCalls::page_access(std::uint32_t device, Address at, Bytes size) {
  const Status able = check_virtual_memory("cuMemSetAccess");
  return able.is_ok() ? state_.memory.set_access(device, at, size, state_.options) : able;
}

Status MemoryCalls::page_unmap(std::uint32_t device, Address at, Bytes size) {
  Status status = check_virtual_memory("cuMemUnmap");
  if (status.is_ok()) status = state_.memory.can_unmap(device, at, size);
  if (!status.is_ok()) return status;
  about_to_unmap(at, size);
  state_.memory.unmap(at, size);
  return Status::ok();
}

}  // namespace ashlar::spec
