// MemoryCalls: the Device calls of segments, pinned and registered ranges and virtual memory.
//
// Purpose: Memory (memory.h) keeps CUDA's rules of memory; here are the rules that need the rest of
// the machine: unsafe calls while capturing (D6), memory returned under running work (D4).
// Thread safety: none (the machine's lock).
#pragma once

#include <cstdint>

#include "spec/gpu/machine_state.h"

namespace ashlar::spec {

class MemoryCalls {
 public:
  /// `state` must outlive this.
  explicit MemoryCalls(MachineState& state) : state_(state) {}

  /// `kind`: kSegment or kPinned.
  Result<Address> segment_alloc(std::uint32_t device, Bytes size, HeldKind kind);
  /// `kind`: kSegment, kPinned or kRegistered.
  Status segment_free(std::uint32_t device, Address base, HeldKind kind);
  Status host_register(std::uint32_t device, Address base, Bytes size);
  Result<Address> address_reserve(std::uint32_t device, Bytes size, Bytes alignment);
  Status address_release(std::uint32_t device, Address base, Bytes size);
  Result<PageHandle> page_create(std::uint32_t device, Bytes size,
                                 device::ShareKind kind = device::ShareKind::kNone);
  Status page_release(std::uint32_t device, PageHandle page);
  Status page_map(std::uint32_t device, Address at, Bytes size, PageHandle page);
  Status page_access(std::uint32_t device, Address at, Bytes size);
  Status page_unmap(std::uint32_t device, Address at, Bytes size);
  Status segment_close(std::uint32_t device, Address base);

 private:
  /// ok if the device has virtual memory and no capture forbids the call.
  Status check_virtual_memory(const char* call);
  void about_to_unmap(Address at, Bytes size);

  MachineState& state_;
};

}  // namespace ashlar::spec
