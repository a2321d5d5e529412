#include <ashlar/cache/segment_ledger.h>

#include <algorithm>
#include <new>
#include <optional>
#include <utility>

#include <ashlar/base/checked.h>

namespace ashlar::inline v0::cache {
namespace {

void raise(Stat& stat, std::uint64_t by) noexcept {
  stat.current += by;
  stat.increased += by;
  stat.peak = std::max(stat.peak, stat.current);
}
void lower(Stat& stat, std::uint64_t by) noexcept {
  stat.current -= by;
  stat.decreased += by;
}

}  // namespace

SegmentLedger::SegmentLedger(Driver& driver, const Config& config) noexcept
    : driver_(driver), config_(config), fraction_pending_(config.memory_fraction < 1.0) {}

SegmentLedger::~SegmentLedger() {
  for (DeviceSegment* record = newest_made_; record != nullptr;) {
    DeviceSegment* before = record->made_before;
    delete record;
    record = before;
  }
}

Status SegmentLedger::settle_limit() noexcept {
  if (!fraction_pending_.load(std::memory_order_relaxed)) return Status::ok();
  const Result<Bytes> limit = limit_for(config_.memory_fraction);
  if (!limit.is_ok()) return limit.status();
  const Guard guard(lock_);
  // A limit set meanwhile stands.
  if (fraction_pending_.exchange(false, std::memory_order_relaxed)) limit_ = limit.value();
  return Status::ok();
}

Status SegmentLedger::charge(Bytes size) noexcept {
  if (const Status settled = settle_limit(); !settled.is_ok()) return settled;
  const Guard guard(lock_);
  const std::optional<Bytes> after = checked_add(charged_, size);
  ASHLAR_REQUIRE(after && *after <= limit_, Code::kOutOfMemory,
                 "the memory limit set for this device is reached");
  charged_ = *after;
  return Status::ok();
}

void SegmentLedger::refund(Bytes size) noexcept {
  const Guard guard(lock_);
  charged_ -= size;
}

void SegmentLedger::commit(Bytes size, PoolId pool) noexcept {
  const Guard guard(lock_);
  raise_reserved(size, pool);
  for (const auto column : {StatPool::kAll, stat_pool_of(pool)})
    raise(segments_[static_cast<unsigned>(column)], 1);
  if (size >= config_.max_split_size) raise(oversize_segments_, 1);
}

void SegmentLedger::uncharge(Bytes size, PoolId pool) noexcept {
  const Guard guard(lock_);
  charged_ -= size;
  lower_reserved(size, pool);
  for (const auto column : {StatPool::kAll, stat_pool_of(pool)})
    lower(segments_[static_cast<unsigned>(column)], 1);
  if (size >= config_.max_split_size) lower(oversize_segments_, 1);
}

void SegmentLedger::commit_pages(Bytes size, PoolId pool) noexcept {
  const Guard guard(lock_);
  raise_reserved(size, pool);
}

void SegmentLedger::uncommit_pages(Bytes size, PoolId pool) noexcept {
  const Guard guard(lock_);
  lower_reserved(size, pool);
}

void SegmentLedger::raise_reserved(Bytes size, PoolId pool) noexcept {
  for (const auto column : {StatPool::kAll, stat_pool_of(pool)})
    raise(reserved_bytes_[static_cast<unsigned>(column)], size.count());
}

void SegmentLedger::lower_reserved(Bytes size, PoolId pool) noexcept {
  for (const auto column : {StatPool::kAll, stat_pool_of(pool)})
    lower(reserved_bytes_[static_cast<unsigned>(column)], size.count());
}

std::optional<block::Position> SegmentLedger::next_position(Bytes size) const noexcept {
  if (newest_ == nullptr) return block::Position{};
  const Bytes begin = Bytes{raw(newest_->position)} + newest_->size;  // no wrap: it ends below 2^64
  if (!checked_add(begin, size)) return std::nullopt;
  return block::Position{begin.count()};
}

DeviceSegment* SegmentLedger::take_spare() noexcept {
  const Guard guard(lock_);
  DeviceSegment* const record = spare_;
  if (record != nullptr) spare_ = record->newer;
  return record;
}

DeviceSegment* SegmentLedger::new_record(Bytes size) noexcept {
  DeviceSegment* record = take_spare();
  const bool is_made = record == nullptr;
  if (is_made) record = new (std::nothrow) DeviceSegment;
  if (record == nullptr) return nullptr;
  const Guard guard(lock_);
  if (is_made) record->made_before = std::exchange(newest_made_, record);
  const std::optional<block::Position> position = next_position(size);
  if (!position) {
    record->newer = std::exchange(spare_, record);
    return nullptr;
  }
  record->size = size;
  record->ordinal = next_ordinal_++;
  record->position = *position;
  record->idle.asked_in = 0;
  record->idle.stamp = DeviceSegment::kNoStamp;
  record->newer = nullptr;
  record->older = std::exchange(newest_, record);
  if (record->older != nullptr) record->older->newer = record;
  return record;
}

void SegmentLedger::recycle(DeviceSegment* segment) noexcept {
  segment->page_table.drop();
  segment->heap.store(nullptr, std::memory_order_release);
  const Guard guard(lock_);
  if (segment->older != nullptr) segment->older->newer = segment->newer;
  (segment->newer != nullptr ? segment->newer->older : newest_) = segment->older;
  segment->newer = std::exchange(spare_, segment);
}

bool SegmentLedger::is_early(Bytes more, Bytes device_memory) const noexcept {
  const Guard guard(lock_);
  const std::uint64_t early_max = std::min(limit_, device_memory).count() / 4;
  return charged_.count() <= early_max && more.count() <= early_max - charged_.count();
}

Bytes SegmentLedger::over_share(double share) const noexcept {
  const Guard guard(lock_);
  if (limit_ == Bytes::max()) return Bytes{};
  const auto bytes = static_cast<std::uint64_t>(static_cast<long double>(limit_.count()) * share);
  return charged_ - std::min(charged_, Bytes{bytes});
}

void SegmentLedger::set_limit(Bytes limit) noexcept {
  const Guard guard(lock_);
  limit_ = limit;
  fraction_pending_.store(false, std::memory_order_relaxed);
}

Result<Bytes> SegmentLedger::limit_for(double fraction) noexcept {
  const Result<device::MemoryInfo> memory = driver_.memory_info();
  if (!memory.is_ok()) return memory.status();
  // Rounded up to a whole byte, so that a fraction is never one byte short (py#179444).
  const long double bytes =
      static_cast<long double>(memory.value().total.count()) * static_cast<long double>(fraction);
  const auto whole = static_cast<std::uint64_t>(bytes);
  return Bytes{whole + (static_cast<long double>(whole) < bytes ? 1 : 0)};
}

Status SegmentLedger::set_fraction(double fraction) noexcept {
  ASHLAR_REQUIRE(fraction > 0.0 && fraction <= 1.0, Code::kInvalidArgument,
                 "a memory fraction is over 0 and at most 1");
  const Result<Bytes> limit = limit_for(fraction);
  if (limit.is_ok()) set_limit(limit.value());
  return limit.status();
}

void SegmentLedger::count_oversize(int change) noexcept {
  const Guard guard(lock_);
  if (change > 0) {
    raise(oversize_allocations_, 1);
  } else {
    lower(oversize_allocations_, 1);
  }
}

void SegmentLedger::write(DeviceStats* out) const noexcept {
  const Guard guard(lock_);
  out->segments = segments_;
  out->reserved_bytes = reserved_bytes_;
  out->oversize_allocations = oversize_allocations_;
  out->oversize_segments = oversize_segments_;
}

void SegmentLedger::write(OutOfMemory* out) const noexcept {
  const Guard guard(lock_);
  out->reserved = Bytes{reserved_bytes_[0].current};
  out->limit = limit_;
}

template <class F>
void SegmentLedger::for_each_stat(F&& f) noexcept {
  for (unsigned column = 0; column < kStatPools; ++column) {
    f(segments_[column]);
    f(reserved_bytes_[column]);
  }
  f(oversize_allocations_);
  f(oversize_segments_);
}

void SegmentLedger::reset_peak_stats() noexcept {
  const Guard guard(lock_);
  for_each_stat([](Stat& stat) { stat.peak = stat.current; });
}

void SegmentLedger::reset_accumulated_stats() noexcept {
  const Guard guard(lock_);
  for_each_stat([](Stat& stat) { stat.increased = stat.decreased = 0; });
}

const char* SegmentLedger::validate(Bytes in_segments, std::uint64_t segments,
                                    Bytes held) const noexcept {
  const Guard guard(lock_);
  if (in_segments.count() != reserved_bytes_[0].current)
    return "C14: reserved bytes are not the sum over segments";
  if (segments != segments_[0].current) return "C14: the segment count is not the sum over pools";
  if (charged_.count() != reserved_bytes_[0].current + held.count())
    return "ledger(2): bytes charged against the limit are not the reserved";
  for (const DeviceSegment* record = newest_; record != nullptr; record = record->older) {
    if (segments-- == 0) return "ledger(3): a record in use is no pool's segment";
    const DeviceSegment* const older = record->older;
    if (older == nullptr) continue;
    if (older->newer != record || older->ordinal >= record->ordinal ||
        raw(older->position) + older->size.count() > raw(record->position))
      return "ledger(4): the positions of two segments are not those of their ordinals";
  }
  return nullptr;
}

}  // namespace ashlar::inline v0::cache
