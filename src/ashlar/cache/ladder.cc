// The miss: one ladder, each rung a named function, the pools searched again after every rung (C12;
// bugs H34, H36).
//
//   drain_and_search        events that are done by now (row DEV-6)
//   call_back_and_search    the user's free-memory callbacks (row DEV-13)
//   steal                   another stream's idle block whose use is complete (`reuse`)
//   grow                    new memory from the driver, with no lock held (row DEV-15)
//   reclaim_and_retry       under the device's reclaim lock: everything again, without limits; idle
//                           segments given back; a bounded wait for the oldest pending free
//   fail_out_of_memory      observers, the account, kOutOfMemory (row DEV-14)
//
// While a capture is underway only drain (which finds nothing), callbacks and grow are allowed
// (C9).
#include <algorithm>
#include <new>

#include <ashlar/cache/device_cache.h>
#include <ashlar/cache/observer_scope.h>

namespace ashlar::inline v0::cache {

namespace {
/// Most heaps whose epoch is asked by a miss before it grows: keeps C17's bound.
constexpr unsigned kSweepsPerMiss = 2;
/// Most events a miss polls before it grows.
constexpr unsigned kMissPollsMax = 64;
}  // namespace

namespace {
/// Counts a growth that may be under way.
class GrowthScope {
 public:
  explicit GrowthScope(std::atomic<unsigned>& count) noexcept : count_(count) {
    count_.fetch_add(1);
  }
  ~GrowthScope() { count_.fetch_sub(1); }
  GrowthScope(const GrowthScope&) = delete;
  GrowthScope& operator=(const GrowthScope&) = delete;

 private:
  std::atomic<unsigned>& count_;
};

/// Ends an allocation's hold on its heap.
class PinScope {
 public:
  explicit PinScope(StreamHeap& heap) noexcept : heap_(heap) {}
  ~PinScope() {
    const Guard guard(heap_.lock);
    --heap_.pins;
  }
  PinScope(const PinScope&) = delete;
  PinScope& operator=(const PinScope&) = delete;

 private:
  StreamHeap& heap_;
};
}  // namespace

Address DeviceCache::search(StreamHeap& heap, const Request& request) noexcept {
  const Guard guard(heap.lock);
  return search_locked(heap, request);
}

Address DeviceCache::drain_and_search(StreamHeap& heap, const Request& request) noexcept {
  if (is_capturing()) return Address{};
  retry_unrecorded(heap);
  Guard guard(heap.lock);
  poll(heap, guard, kMissPollsMax);
  return search_locked(heap, request);
}

Address DeviceCache::call_back_and_search(StreamHeap& heap, const Request& request) noexcept {
  if (shared_.callbacks.empty()) return Address{};
  {
    const ObserverScope scope(shared_.observers_running);
    for (const auto& callback : shared_.callbacks) callback(id_);
  }
  const Address address = drain_and_search(heap, request);
  return address.is_null() ? search(heap, request) : address;
}

Result<Address> DeviceCache::allocate_slow(StreamHeap& heap, const Request& request,
                                           OutOfMemory* account) noexcept {
  const PinScope pinned(heap);
  Address address = drain_and_search(heap, request);
  if (address.is_null()) address = call_back_and_search(heap, request);
  if (address.is_null() && config_.reuse != Reuse::kOwn && !is_capturing()) {
    // A reclaim already under way serves others: rather than queue behind its waits, grow.
    const std::unique_lock reclaiming(reclaim_, std::try_to_lock);
    if (reclaiming && !is_capturing()) address = steal(heap, request, kSweepsPerMiss);
  }
  if (!address.is_null()) return address;
  bool wait_ran_out = false;
  Result<Address> grown = grow(heap, request);
  if (grown.code() == Code::kOutOfMemory) grown = reclaim_and_retry(heap, request, wait_ran_out);
  if (grown.code() != Code::kOutOfMemory) return grown;
  return fail_out_of_memory(heap, request, wait_ran_out, account);
}

Status DeviceCache::charge(Bytes size) noexcept {
  if (fraction_pending_.load(std::memory_order_relaxed)) {
    const Result<Bytes> limit = limit_for(config_.memory_fraction);
    if (!limit.is_ok()) return limit.status();
    const Guard guard(reserve_lock_);
    // A limit set meanwhile stands.
    if (fraction_pending_.exchange(false, std::memory_order_relaxed)) limit_ = limit.value();
  }
  const Guard guard(reserve_lock_);
  const std::optional<Bytes> after = checked_add(charged_, size);
  ASHLAR_REQUIRE(after && *after <= limit_, Code::kOutOfMemory,
                 "the memory limit set for this device is reached");
  charged_ = *after;
  return Status::ok();
}

void DeviceCache::commit_segment(Bytes size, bool is_small) noexcept {
  const Guard guard(reserve_lock_);
  const auto raise = [](Stat& stat, std::uint64_t by) {
    stat.current += by;
    stat.increased += by;
    stat.peak = std::max(stat.peak, stat.current);
  };
  for (const auto pool : {StatPool::kAll, is_small ? StatPool::kSmall : StatPool::kLarge}) {
    raise(reserved_bytes_[static_cast<unsigned>(pool)], size.count());
    raise(segments_[static_cast<unsigned>(pool)], 1);
  }
  if (size >= config_.max_split_size) raise(oversize_segments_, 1);
}

void DeviceCache::uncharge(Bytes size, bool is_small) noexcept {
  const Guard guard(reserve_lock_);
  charged_ -= size;
  const auto lower = [](Stat& stat, std::uint64_t by) {
    stat.current -= by;
    stat.decreased += by;
  };
  for (const auto pool : {StatPool::kAll, is_small ? StatPool::kSmall : StatPool::kLarge}) {
    lower(reserved_bytes_[static_cast<unsigned>(pool)], size.count());
    lower(segments_[static_cast<unsigned>(pool)], 1);
  }
  if (size >= config_.max_split_size) lower(oversize_segments_, 1);
}

DeviceSegment* DeviceCache::new_segment_record() noexcept {
  {
    const Guard guard(reserve_lock_);
    if (DeviceSegment* record = spare_segments_) {
      spare_segments_ = record->next;
      record->next = nullptr;
      record->ordinal = next_ordinal_++;
      return record;
    }
  }
  auto* record = new (std::nothrow) DeviceSegment;
  if (record == nullptr) return nullptr;
  const Guard guard(reserve_lock_);
  record->ordinal = next_ordinal_++;
  record->made_before = segment_records_;
  segment_records_ = record;
  return record;
}

void DeviceCache::recycle_segment_record(DeviceSegment* segment) noexcept {
  segment->heap.store(nullptr, std::memory_order_release);
  const Guard guard(reserve_lock_);
  segment->next = spare_segments_;
  spare_segments_ = segment;
}

Result<Address> DeviceCache::grow(StreamHeap& heap, const Request& request) noexcept {
  const Bytes size = segment_size(config_, request.size).value_or(Bytes::max());
  if (const Status charged = charge(size); !charged.is_ok()) {
    const Status health = driver_.health();
    return health.is_ok() ? charged : health;
  }
  const auto undo = [&](Status status) -> Result<Address> {
    const Guard guard(reserve_lock_);
    charged_ -= size;
    return status;
  };
  // Raised before the question: an announcement of a capture waits until no growth that asked
  // earlier is on its way (C9).
  const GrowthScope growing(growing_);
  const RelaxedCapture relaxed(driver_, is_capturing());
  if (!relaxed.status().is_ok()) return undo(relaxed.status());
  const Result<Address> base = driver_.segment_alloc(size);
  if (!base.is_ok()) return undo(base.status());
  DeviceSegment* record = shared_.pages.reserve(base.value(), size, {&heap, request.is_small})
                              ? new_segment_record()
                              : nullptr;
  if (record != nullptr) {
    record->base = base.value();
    record->size = size;
    record->is_small = request.is_small;
    record->heap.store(&heap, std::memory_order_release);
    shared_.pages.insert(*record);
    if (const Address address = enter_segment(heap, request, record); !address.is_null()) {
      commit_segment(size, request.is_small);
      return address;
    }
    shared_.pages.erase(*record);
    recycle_segment_record(record);
  }
  static_cast<void>(driver_.segment_free(base.value()));
  return undo({Code::kOutOfMemory, "the host has no memory for a segment's records"});
}

Address DeviceCache::enter_segment(StreamHeap& heap, const Request& request,
                                   DeviceSegment* record) noexcept {
  const Guard guard(heap.lock);
  block::BlockPool& pool = heap.pool(request.is_small);
  const block::SegmentIndex index = pool.add_segment(
      record->base, record->size, 0, StreamHeap::as_word(record), BlockState::kFree);
  if (index == block::kNoSegment) return Address{};
  record->index = static_cast<std::uint32_t>(index);
  // The new block itself, not a search: with max_split_size set a search would refuse it for being
  // large.
  const BlockIndex block = pool.view(index).first;
  const Address address = take_block(heap, request, block, nullptr);
  if (address.is_null()) {
    pool.lift(block);
    pool.remove_segment(index);
  }
  return address;
}

Result<Address> DeviceCache::reclaim_and_retry(StreamHeap& heap, const Request& request,
                                               bool& wait_ran_out) noexcept {
  retries_.fetch_add(1, std::memory_order_relaxed);
  const Status short_of_memory{Code::kOutOfMemory,
                               "the device, or the limit set on it, has too little memory"};
  if (is_capturing()) return short_of_memory;
  const std::lock_guard reclaiming(reclaim_);
  if (is_capturing()) return short_of_memory;  // announced while this waited for the lock (C9)
  const Bytes segment = segment_size(config_, request.size).value_or(Bytes::max());
  Patience patience{config_.wait_ms, waits_max()};
  for (bool again = true; again; wait_ran_out = patience.ran_out) {
    if (const Status health = driver_.health(); !health.is_ok()) return health;
    sweep_all();
    note_unfinished(patience);
    // Whoever reclaimed before us may have left enough: search first.
    Address address = search(heap, request);
    if (address.is_null() && config_.reuse != Reuse::kOwn) address = steal(heap, request, 0);
    if (!address.is_null()) return address;
    // Whoever reclaimed before us may have given back more than it took: ask the driver before
    // giving back ourselves.
    if (const Result<Address> grown = grow(heap, request); grown.code() != Code::kOutOfMemory)
      return grown;
    // Just enough, the oversize first (row DEV-13); then, if the driver still refuses, all.
    for (const Bytes need : {segment, Bytes::max()}) {
      Bytes back;
      if (config_.max_split_size != Bytes::max()) back = release_idle(need, config_.max_split_size);
      if (back < need) back += release_idle(need - back, Bytes{});
      if (back == Bytes{}) break;
      const Result<Address> grown = grow(heap, request);
      if (grown.code() != Code::kOutOfMemory) return grown;
    }
    // Nothing to wait for on a device that this search found gone: the next one says so.
    again = !driver_.health().is_ok() || wait_for_oldest(patience);
  }
  return short_of_memory;
}

Result<Address> DeviceCache::fail_out_of_memory(StreamHeap& heap, const Request& request,
                                                bool wait_ran_out, OutOfMemory* account) noexcept {
  ooms_.fetch_add(1, std::memory_order_relaxed);
  const Status failed{Code::kOutOfMemory,
                      "the device, or the limit set on it, has too little memory"};
  if (account == nullptr && shared_.observers.empty()) return failed;
  OutOfMemory full;
  full.device = id_;
  full.requested = request.requested;
  full.rounded = request.size;
  full.segment = segment_size(config_, request.size).value_or(Bytes::max());
  if (const auto memory = driver_.memory_info(); memory.is_ok()) {
    full.device_total = memory.value().total;
    full.device_free = memory.value().free;
  }
  fill_account(&full);
  full.largest_free = largest_free(heap.stream);
  full.wait_ran_out = wait_ran_out;
  full.capturing = is_capturing();
  full.config = config_;
  if (account != nullptr) *account = full;
  const ObserverScope scope(shared_.observers_running);
  for (const auto& observer : shared_.observers) observer(full);
  return failed;
}

}  // namespace ashlar::inline v0::cache
