#include "src/cpu_backend/host_buffers.h"

#include <new>
#include <optional>

namespace ashlar::cpu {
namespace {

void free_memory(Address base, Bytes alignment) {
  ::operator delete (base.pointer(), std::align_val_t{alignment.count()});
}

}  // namespace

HostBuffers::~HostBuffers() {
  buffers_.for_each([this](Address base, sched::BufferEntry buffer) {
    if (buffer.is_own) free_memory(base, alignment_);
  });
}

Result<Address> HostBuffers::make(Bytes size) noexcept {
  if (size > buffer_max_) return {Code::kOutOfMemory, "a buffer above the limit"};
  void* const memory =
      ::operator new (size.count(), std::align_val_t{alignment_.count()}, std::nothrow);
  if (memory == nullptr) return {Code::kOutOfMemory, "the host has no memory for a buffer"};
  const Address base = Address::of(memory);
  const Status added = buffers_.add(base, {size, true});
  if (!added.is_ok()) {
    free_memory(base, alignment_);
    return added;
  }
  return base;
}

Result<Address> HostBuffers::adopt(void* pointer, Bytes size) noexcept {
  return buffers_.adopt(pointer, size, alignment_);
}

Status HostBuffers::release(Address base) noexcept {
  const std::optional<sched::BufferEntry> buffer = buffers_.remove(base);
  if (!buffer) return {Code::kUnknownPointer, "no buffer begins there"};
  if (buffer->is_own) free_memory(base, alignment_);
  return Status::ok();
}

}  // namespace ashlar::cpu
