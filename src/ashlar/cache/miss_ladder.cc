#include <ashlar/cache/miss_ladder.h>

#include <ashlar/cache/device_cache.h>
#include <ashlar/cache/observer_scope.h>
#include <ashlar/cache/queries.h>
#include <ashlar/cache/rounding.h>

namespace ashlar::inline v0::cache {
namespace {

/// Most events a miss polls before it grows.
constexpr unsigned kMissPollsMax = 64;

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

Result<Address> MissLadder::climb(StreamHeap& heap, const Request& request,
                                  OutOfMemory* account) noexcept {
  const PinScope pinned(heap);
  Address address = drain(heap, request);
  if (address.is_null()) address = call_back(heap, request);
  // A reclaim already under way serves others: rather than queue behind its waits, grow.
  if (address.is_null() && shared_.config.reuse != Reuse::kOwn && !shared_.is_capturing())
    address = cache_.reclaimer().try_steal(heap, request);
  if (!address.is_null()) return address;
  bool wait_ran_out = false;
  Result<Address> grown = cache_.supply().grow(heap, request);
  if (grown.code() == Code::kOutOfMemory) grown = reclaim(heap, request, &wait_ran_out);
  if (grown.code() != Code::kOutOfMemory) return grown;
  return fail(heap, request, wait_ran_out, account);
}

Address MissLadder::drain(StreamHeap& heap, const Request& request) noexcept {
  if (shared_.is_capturing()) return Address{};
  UseTracker::retry_unrecorded(heap);
  const Guard guard(heap.lock);
  static_cast<void>(cache_.uses().poll(heap, kMissPollsMax));
  return heap.search(request);
}

Address MissLadder::call_back(StreamHeap& heap, const Request& request) noexcept {
  if (shared_.callbacks.empty()) return Address{};
  {
    const ObserverScope scope(shared_.observers_running);
    for (const auto& callback : shared_.callbacks) callback(cache_.id());
  }
  const Address address = drain(heap, request);
  if (!address.is_null()) return address;
  const Guard guard(heap.lock);
  return heap.search(request);
}

Result<Address> MissLadder::reclaim(StreamHeap& heap, const Request& request,
                                    bool* wait_ran_out) noexcept {
  retries_.fetch_add(1, std::memory_order_relaxed);
  return cache_.reclaimer().reclaim(heap, request, wait_ran_out);
}

Result<Address> MissLadder::fail(StreamHeap& heap, const Request& request, bool wait_ran_out,
                                 OutOfMemory* account) noexcept {
  failures_.fetch_add(1, std::memory_order_relaxed);
  if (account == nullptr && shared_.observers.empty()) return kShortOfMemory;
  OutOfMemory full;
  full.device = cache_.id();
  full.requested = request.requested;
  full.rounded = request.size;
  full.segment = segment_size(shared_.config, request.size).value_or(Bytes::max());
  full.device_memory = cache_.driver().memory_info().value_or({});
  write_account(cache_, heap.stream, request, &full);
  full.wait_ran_out = wait_ran_out;
  full.capturing = shared_.is_capturing();
  full.config = shared_.config;
  full.advise();
  if (account != nullptr) *account = full;
  const ObserverScope scope(shared_.observers_running);
  for (const auto& observer : shared_.observers) observer(full);
  return kShortOfMemory;
}

void MissLadder::reset_counts() noexcept {
  retries_.store(0, std::memory_order_relaxed);
  failures_.store(0, std::memory_order_relaxed);
}

}  // namespace ashlar::inline v0::cache
