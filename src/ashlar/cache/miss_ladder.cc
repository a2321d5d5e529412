#include <ashlar/cache/miss_ladder.h>

#include <memory>
#include <new>
#include <utility>

#include <ashlar/cache/device_cache.h>
#include <ashlar/cache/history_notes.h>
#include <ashlar/cache/nvtx_ranges.h>
#include <ashlar/cache/observer_scope.h>
#include <ashlar/cache/place_events.h>
#include <ashlar/cache/place_loan.h>
#include <ashlar/cache/queries.h>
#include <ashlar/cache/rounding.h>

namespace ashlar::inline v0::cache {
namespace {

/// The maximum number of events that a miss polls before it grows.
constexpr unsigned kMissPollsMax = 64;
/// The maximum number of uses without an event that a miss looks at again.
constexpr unsigned kRetriesPerMiss = 16;

/// Neither served nor refused: the next rung is to be tried.
bool is_open(const Result<Address>& found) noexcept {
  return found.is_ok() && found.value().is_null();
}

constexpr Status kWaitedForAddresses{
    Code::kOutOfAddresses, "no address range of that size is left; the permitted wait ran out"};

/// The end of a miss: the heap need no longer stay its stream's.
class MissScope {
 public:
  explicit MissScope(StreamHeap& heap) noexcept : heap_(heap) {}
  ~MissScope() {
    const Guard guard(heap_.lock);
    --heap_.misses.under_way;
  }
  MissScope(const MissScope&) = delete;
  MissScope& operator=(const MissScope&) = delete;

 private:
  StreamHeap& heap_;
};

/// From now on the heap remembers where blocks lay; not if the host has no memory for that.
void remember_places(StreamHeap& heap, std::uint32_t context) noexcept ASHLAR_EXCLUDES(heap.lock) {
  {
    const Guard guard(heap.lock);
    if (heap.misses.remembers) return;
  }
  for (const PoolId pool : kPoolIds) {
    std::unique_ptr<PlaceLog> made(new (std::nothrow) PlaceLog(context));
    const Guard guard(heap.lock);
    auto& places = heap.misses.places[index_of(pool)];
    if (places == nullptr && made != nullptr) count_place_event(PlaceEvent::kLogMade);
    if (places == nullptr) places = std::move(made);
    heap.misses.remembers = heap.misses.remembers || places != nullptr;
  }
}

}  // namespace

MissLadder::MissLadder(DeviceCache& cache, SharedState& shared) noexcept
    : cache_(cache),
      shared_(shared),
      moves_(cache.heaps(), shared, cache.supply().pages(), cache.reclaimer()) {}

Result<Address> MissLadder::climb(StreamHeap& heap, const Request& asked,
                                  OutOfMemory* account) noexcept {
  ++heap.misses.under_way;
  heap.lock.unlock();
  const MissScope scope(heap);
  const NvtxRange range(SlowPath::kMiss, asked.requested);
  Deadline deadline(cache_.driver(), shared_.config.wait_ms);
  Request request = asked;
  request.tries_place = false;
  Result<Address> found = try_place(heap, asked, request);
  if (is_open(found)) found = drain(heap, request);
  if (is_open(found)) found = call_back(heap, request);
  const bool caches = shared_.config.caches;
  if (is_open(found) && caches) found = steal(heap, request);
  if (!is_open(found)) return found;
  bool wait_ran_out = false;
  if (caches) cache_.reclaimer().collect();
  else cache_.reclaimer().give_back_finished(nullptr, Reclaimer::kOtherHeapsMax);
  const bool has_moved = moves_.begin(heap, request);
  found = grow(heap, request);
  if (is_short(found.code()))
    found = reclaim(heap, request, found.status(), deadline, &wait_ran_out);
  if (has_moved) moves_.end();
  if (found.code() == Code::kOutOfAddresses && wait_ran_out) return kWaitedForAddresses;
  if (found.code() != Code::kOutOfMemory) return found;
  return fail(heap, request, wait_ran_out, account);
}

Result<Address> MissLadder::try_place(StreamHeap& heap, const Request& asked,
                                      const Request& anywhere) noexcept {
  {
    const Guard guard(heap.lock);
    if (heap.misses.places[index_of(asked.pool)] == nullptr) return Address{};
  }
  PageSupply& pages = cache_.supply().pages();
  // DEV-24: of a loan no observer of mappings could be told (place_loan.h).
  if (shared_.mappings.observers.empty()) {
    const Address address = borrow_place(heap, asked, pages.stock(), shared_.pages, pages.page());
    if (!address.is_null()) return address;
  }
  // It was no miss but for the place.
  const Guard guard(heap.lock);
  return heap.search(anywhere);
}

Result<Address> MissLadder::drain(StreamHeap& heap, const Request& request) noexcept {
  const bool polls = !shared_.is_capturing();
  if (polls) UseTracker::ask_for_unrecorded(heap, kUnrecordedMax);
  // In a capture no event is recorded, but the order of a graph may have ended a memory pool's uses.
  if (polls || heap.is_reserved()) UseTracker::retry_unrecorded(heap, kRetriesPerMiss);
  const Guard guard(heap.lock);
  if (polls) static_cast<void>(cache_.uses().poll(heap, kMissPollsMax));
  return heap.search(request);
}

Result<Address> MissLadder::call_back(StreamHeap& heap, const Request& request) noexcept {
  if (shared_.callbacks.empty()) return Address{};
  {
    const ObserverScope scope(shared_.running.observers);
    for (const auto& callback : shared_.callbacks) callback(cache_.id());
  }
  return drain(heap, request);
}

Result<Address> MissLadder::steal(StreamHeap& heap, const Request& request) noexcept {
  if (shared_.is_capturing() && !heap.is_reserved()) return Address{};
  // Another thread may hold the reclaim lock: rather than queue for it, grow.
  Reach reach = Reach::kDead;
  {
    const Guard guard(heap.lock);
    if (heap.misses.steals[index_of(request.pool)].may_steal()) reach = Reach::kAll;
  }
  const HostRefusals refusals;
  const Address address = cache_.reclaimer().try_steal(heap, request, reach);
  if (address.is_null()) return refusals.any() ? Result<Address>(kShortOfHostMemory) : address;
  const Guard guard(heap.lock);
  heap.misses.steals[index_of(request.pool)].on_steal();
  return address;
}

Result<Address> MissLadder::grow(StreamHeap& heap, const Request& request) noexcept {
  {
    const Guard guard(heap.lock);
    const Bytes live =
        heap.pool(request.pool).counts().bytes[static_cast<unsigned>(BlockState::kLive)];
    heap.misses.steals[index_of(request.pool)].on_growth(live + heap.loans.bytes(request.pool) +
                                                         request.size);
  }
  return cache_.supply().grow(heap, request);
}

Result<Address> MissLadder::reclaim(StreamHeap& heap, const Request& request, Status shortage,
                                    Deadline& deadline, bool* wait_ran_out) noexcept {
  const NvtxRange range(SlowPath::kReclaim, request.size);
  retries_.fetch_add(1, std::memory_order_relaxed);
  cache_.supply().note_shortage();
  if (cache_.supply().pages().serves(heap)) remember_places(heap, shared_.config.place_context);
  return cache_.reclaimer().reclaim(heap, request, shortage, deadline, wait_ran_out);
}

Result<Address> MissLadder::fail(StreamHeap& heap, const Request& request, bool wait_ran_out,
                                 OutOfMemory* account) noexcept {
  failures_.fetch_add(1, std::memory_order_relaxed);
  mark_out_of_memory(request.requested);
  note_failure(heap, request);
  if (account == nullptr && shared_.observers.empty()) return kShortOfMemory;
  OutOfMemory full;
  full.device = cache_.id();
  full.requested = request.requested;
  full.rounded = request.size;
  full.segment = cache_.supply().growth_size(heap, request);
  full.device_memory = cache_.driver().memory_info().value_or({});
  write_account(heap, request, &full);
  full.wait_ran_out = wait_ran_out;
  full.capturing = shared_.is_capturing();
  full.config = shared_.config;
  full.advise();
  if (account != nullptr) *account = full;
  const ObserverScope scope(shared_.running.observers);
  for (const auto& observer : shared_.observers) observer(full);
  return kShortOfMemory;
}

void MissLadder::note_failure(const StreamHeap& heap, const Request& request) noexcept {
  if (!history_of(heap).is_on()) return;
  HistoryEvent event;
  event.action = HistoryAction::kOutOfMemory;
  event.size = event.block_size = request.requested;
  event.device_free = cache_.driver().memory_info().value_or({}).free;
  event.stream = heap.stream.id;
  event.memory_pool = heap.membership.id;
  event.pool = request.pool;
  history_of(heap).note(event);
}

void MissLadder::reset_counts() noexcept {
  retries_.store(0, std::memory_order_relaxed);
  failures_.store(0, std::memory_order_relaxed);
}

}  // namespace ashlar::inline v0::cache
