#include <ashlar/base/growing_table.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include <ashlar/base/checked.h>
#include <ashlar/base/host_table.h>
#include <ashlar/base/step_count.h>

namespace ashlar::inline v0 {
namespace {

/// Memory is given to a range in multiples of this.
constexpr std::size_t kCommitBytes = std::size_t{64} << 10;

std::size_t round_up_to(std::size_t bytes, std::size_t unit) noexcept {
  return (bytes + unit - 1) / unit * unit;
}

}  // namespace

GrowingBytes::~GrowingBytes() { release(); }

void GrowingBytes::release() noexcept {
  if (is_range()) {
    release_pages(data_, reserved_);
  } else if (data_ != nullptr) {
    ::operator delete[](data_, std::align_val_t{kCacheLineBytes});
  }
}

bool GrowingBytes::grow(const Growth& growth) noexcept {
  if (is_range() && growth.bytes <= reserved_) {
    const std::size_t room = std::min(round_up_to(growth.bytes, kCommitBytes), reserved_);
    if (commit_pages(data_ + room_, room - room_)) {
      // What is in use already, the host may turn into huge pages whenever it likes.
      if (growth.kept >= kHugePageBytes)
        advise_huge_pages(data_, growth.kept / kHugePageBytes * kHugePageBytes);
      room_ = room;
      return true;
    }
    return false;
  }
  if (growth.bytes > kPlainTableBytesMax && move_to_range(growth)) return true;
  return move_to_plain(growth);
}

/// Moves the table to a new range, with memory for the growth.
bool GrowingBytes::move_to_range(const Growth& growth) noexcept {
  const std::size_t most = round_up_to(std::max(growth.bytes, growth.bytes_max), kHugePageBytes);
  const std::size_t wish = most / kReserveFactor < growth.bytes
                               ? most
                               : round_up_to(growth.bytes * kReserveFactor, kHugePageBytes);
  const std::size_t need = round_up_to(growth.bytes, kHugePageBytes);
  std::size_t reserved = wish;
  std::byte* begin = reserve_pages(reserved);
  if (begin == nullptr && need < wish) {
    reserved = need;
    begin = reserve_pages(reserved);
  }
  if (begin == nullptr) return false;
  const std::size_t room = std::min(round_up_to(growth.bytes, kCommitBytes), reserved);
  if (!commit_pages(begin, room)) {
    release_pages(begin, reserved);
    return false;
  }
  // A range that is left is full: all of it has memory. Advised alike, it moves as one.
  if (is_range()) advise_huge_pages(data_, room_);
  if (is_range() && room_ == reserved_ && move_pages(data_, begin, room_)) {
    count_steps(room_ / kHugePageBytes);
  } else {
    if (growth.kept > 0) std::memcpy(begin, data_, growth.kept);
    count_steps(growth.kept / kCacheLineBytes);
    release();
  }
  data_ = begin;
  room_ = room;
  reserved_ = reserved;
  return true;
}

/// Moves the table to plain memory.
bool GrowingBytes::move_to_plain(const Growth& growth) noexcept {
  const std::size_t room = round_up_to(growth.bytes, kCacheLineBytes);
  void* const memory = ::operator new[](room, std::align_val_t{kCacheLineBytes}, std::nothrow);
  if (memory == nullptr) return false;
  // Without ranges a large table is copied whole: excused, for want of any other way to grow.
  std::size_t steps = growth.kept / kCacheLineBytes;
  auto* const begin = static_cast<std::byte*>(memory);
  if (growth.kept > 0) std::memcpy(begin, data_, growth.kept);
  if (growth.clears) {
    std::memset(begin + growth.kept, 0, room - growth.kept);
    steps += (room - growth.kept) / kCacheLineBytes;
  }
  if (room <= kPlainTableBytesMax) count_steps(steps);
  release();
  data_ = begin;
  room_ = room;
  reserved_ = 0;
  return true;
}

}  // namespace ashlar::inline v0
