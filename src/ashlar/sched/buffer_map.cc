#include <ashlar/sched/buffer_map.h>

#include <ashlar/base/exceptions.h>

namespace ashlar::inline v0::sched {
namespace {

using Buffers = std::map<Address, BufferEntry>;

bool insert(Buffers& buffers, Address base, BufferEntry buffer) noexcept {
  return with_host_memory([&] { buffers.emplace(base, buffer); });
}

/// Whether a buffer has one of the bytes [base, base + size).
bool has_any(const Buffers& buffers, Address base, Bytes size) {
  auto it = buffers.lower_bound(base);
  if (it != buffers.end() && it->first - base < size) return true;
  if (it == buffers.begin()) return false;
  --it;
  return base - it->first < it->second.size;
}

}  // namespace

Status BufferMap::add(Address base, BufferEntry buffer) noexcept {
  const bool is_range =
      buffer.size > Bytes{} && buffer.size.count() - 1 <= ~std::uint64_t{0} - base.value();
  if (!is_range)
    return {Code::kInvalidArgument, "a buffer of no bytes, or beyond the last address"};
  const MutexGuard guard(mutex_);
  if (has_any(buffers_, base, buffer.size))
    return {Code::kInvalidArgument, "another buffer has some of the bytes"};
  if (!insert(buffers_, base, buffer))
    return {Code::kHostOutOfMemory, "no host memory for a record"};
  return Status::ok();
}

Result<Address> BufferMap::adopt(void* pointer, Bytes size, Bytes alignment) noexcept {
  const Address base = Address::of(pointer);
  if (base.is_null()) return {Code::kInvalidArgument, "the pointer is null"};
  if (base.value() % alignment.count() != 0)
    return {Code::kInvalidArgument, "the pointer is not aligned as the buffer type says"};
  if (const Status added = add(base, {size, false}); !added.is_ok()) return added;
  return base;
}

std::optional<BufferEntry> BufferMap::remove(Address base) noexcept {
  const MutexGuard guard(mutex_);
  const auto it = buffers_.find(base);
  if (it == buffers_.end()) return std::nullopt;
  const BufferEntry buffer = it->second;
  buffers_.erase(it);
  return buffer;
}

Result<BufferRange> BufferMap::at(Address byte) const noexcept {
  const MutexGuard guard(mutex_);
  auto it = buffers_.upper_bound(byte);
  const bool is_behind_one = it != buffers_.begin();
  if (is_behind_one) --it;
  if (!is_behind_one || byte - it->first >= it->second.size)
    return {Code::kUnknownPointer, "the byte is in no buffer"};
  return BufferRange{it->first, it->second.size};
}

bool BufferMap::holds(Address begin, Bytes size) const noexcept {
  const MutexGuard guard(mutex_);
  auto it = buffers_.upper_bound(begin);
  if (it == buffers_.begin()) return false;
  --it;
  const Bytes offset = begin - it->first;
  return offset <= it->second.size && it->second.size - offset >= size;
}

}  // namespace ashlar::inline v0::sched
