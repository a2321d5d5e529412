#include "src/cpu_backend/host_buffers.h"

#include <new>

#include <ashlar/base/exceptions.h>

namespace ashlar::cpu {
namespace {

void free_memory(Address base, Bytes alignment) {
  ::operator delete (base.pointer(), std::align_val_t{alignment.count()});
}

}  // namespace

HostBuffers::~HostBuffers() {
  for (const auto& [base, buffer] : buffers_) {
    if (buffer.is_own) free_memory(base, alignment_);
  }
}

bool HostBuffers::insert(std::map<Address, HostBuffer>& buffers, Address base,
                         HostBuffer buffer) noexcept {
  return with_host_memory([&] { buffers.insert_or_assign(base, buffer); });
}

Result<Address> HostBuffers::add(Address base, HostBuffer buffer) noexcept {
  const MutexGuard guard(mutex_);
  if (!insert(buffers_, base, buffer))
    return {Code::kHostOutOfMemory, "no host memory for a record"};
  return base;
}

Result<Address> HostBuffers::make(Bytes size) noexcept {
  if (size > buffer_max_) return {Code::kOutOfMemory, "a buffer above the limit"};
  void* const memory =
      ::operator new (size.count(), std::align_val_t{alignment_.count()}, std::nothrow);
  if (memory == nullptr) return {Code::kOutOfMemory, "the host has no memory for a buffer"};
  const Result<Address> added = add(Address::of(memory), {size, true});
  if (!added.is_ok()) free_memory(Address::of(memory), alignment_);
  return added;
}

Result<Address> HostBuffers::adopt(void* pointer, Bytes size) noexcept {
  const Address base = Address::of(pointer);
  if (base.is_null() || base.value() % alignment_.count() != 0)
    return {Code::kInvalidArgument, "the pointer is null, or not aligned"};
  return add(base, {size, false});
}

Status HostBuffers::release(Address base) noexcept {
  const MutexGuard guard(mutex_);
  const auto it = buffers_.find(base);
  if (it == buffers_.end()) return {Code::kUnknownPointer, "no buffer begins there"};
  if (it->second.is_own) free_memory(base, alignment_);
  buffers_.erase(it);
  return Status::ok();
}

bool HostBuffers::holds(Address begin, Bytes size) const noexcept {
  const MutexGuard guard(mutex_);
  auto it = buffers_.upper_bound(begin);
  if (it == buffers_.begin()) return false;
  --it;
  const Bytes offset = begin - it->first;
  return offset <= it->second.size && it->second.size - offset >= size;
}

}  // namespace ashlar::cpu
