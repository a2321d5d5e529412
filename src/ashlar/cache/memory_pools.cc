#include <ashlar/cache/memory_pools.h>

#include <algorithm>
#include <atomic>
#include <new>
#include <utility>

#include <ashlar/base/exceptions.h>
#include <ashlar/cache/device_cache.h>
#include <ashlar/cache/observer_scope.h>

namespace ashlar::inline v0::cache {

namespace {
constexpr const char* kClosed = "another thread releases, checkpoints or restores that pool";

/// Makes room for one more element; false if the host has no memory.
template <class T>
bool reserve_one(std::vector<T>& in) noexcept {
  return with_host_memory([&in] { in.reserve(in.size() + 1); });
}
}  // namespace

MemoryPools::Pool* MemoryPools::find(MemoryPoolId id) const noexcept {
  const auto at =
      std::find_if(pools_.begin(), pools_.end(), [id](const auto& pool) { return pool->id == id; });
  return at == pools_.end() ? nullptr : at->get();
}

Result<MemoryPools::Pool*> MemoryPools::use(MemoryPoolId id) noexcept {
  if (Pool* const known = find(id)) {
    ASHLAR_REQUIRE(!known->is_closed, Code::kBusy, kClosed);
    ++known->uses;
    return known;
  }
  return make(id, {});
}

Result<MemoryPools::Pool*> MemoryPools::make(MemoryPoolId id,
                                             const MemoryPoolOptions& options) noexcept {
  std::unique_ptr<Pool> made(new (std::nothrow) Pool{.id = id, .options = options, .heaps = {}});
  Pool* const pool = made.get();
  if (!made || !reserve_one(pools_)) return kShortOfHostMemory;
  static std::atomic<std::uint64_t> pools_made{0};
  pool->serial = 1 + pools_made.fetch_add(1);
  // In this order: begin_capture() counts what is announced before what was begun.
  pool->captures_before = shared_.captures_begun.load();
  if (shared_.is_capturing()) pool->captures_before = kAnyCapture;
  pools_.push_back(std::move(made));
  return pool;
}

Status MemoryPools::retain(MemoryPoolId id) noexcept {
  const MutexGuard lock(lock_);
  return use(id).status();
}

Status MemoryPools::create(MemoryPoolId id, const MemoryPoolOptions& options) noexcept {
  const MutexGuard lock(lock_);
  ASHLAR_REQUIRE(find(id) == nullptr, Code::kBusy, "the device has a memory pool of that name");
  return make(id, options).status();
}

Status MemoryPools::begin(MemoryPoolId id, StreamFilter filter) noexcept {
  const MutexGuard lock(lock_);
  for (const Route& route : routes_)
    ASHLAR_REQUIRE(route.pool->id != id, Code::kBusy, "allocations go to that pool already");
  if (!reserve_one(routes_)) return kShortOfHostMemory;
  const Result<Pool*> pool = use(id);
  if (!pool.is_ok()) return pool.status();
  routes_.push_back({pool.value(), std::move(filter)});
  ++route_changes_;
  shared_.detours.routes.fetch_add(1);
  shared_.detours.count.fetch_add(1);
  return Status::ok();
}

Status MemoryPools::end(MemoryPoolId id) noexcept {
  StreamFilter ended;  // destroyed without the lock: what it captured may call the allocator
  const MutexGuard lock(lock_);
  const auto at = std::find_if(routes_.begin(), routes_.end(),
                               [id](const Route& route) { return route.pool->id == id; });
  ASHLAR_REQUIRE(at != routes_.end(), Code::kNotFound, "no allocations go to that pool");
  ended = std::move(at->accepts);
  routes_.erase(at);
  ++route_changes_;
  shared_.detours.count.fetch_sub(1);
  shared_.detours.routes.fetch_sub(1);
  return Status::ok();
}

Result<MemoryPools::Pool*> MemoryPools::close(MemoryPoolId id) noexcept {
  Pool* const pool = find(id);
  ASHLAR_REQUIRE(pool != nullptr, Code::kNotFound, "the device has no such memory pool");
  ASHLAR_REQUIRE(!pool->is_closed, Code::kBusy, kClosed);
  for (const Route& route : routes_)
    ASHLAR_REQUIRE(route.pool != pool, Code::kBusy, "allocations still go to that pool");
  pool->is_closed = true;
  return pool;
}

void MemoryPools::open(Pool* pool) noexcept {
  const MutexGuard lock(lock_);
  pool->is_closed = false;
}

Result<MemoryPools::Pool*> MemoryPools::give_up(MemoryPoolId id) noexcept {
  const MutexGuard lock(lock_);
  Pool* const pool = find(id);
  // close() refuses the first two with their errors.
  if (pool == nullptr || pool->is_closed || pool->uses == 1) return close(id);
  --pool->uses;
  return static_cast<Pool*>(nullptr);
}

Status MemoryPools::release(MemoryPoolId id) noexcept {
  const Result<Pool*> last = give_up(id);
  if (!last.is_ok() || last.value() == nullptr) return last.status();
  Pool* const pool = last.value();
  const Status released = cache_.reclaimer().release_reserved(pool->heaps, may_have_graphs(*pool));
  const MutexGuard lock(lock_);
  pool->is_closed = false;
  if (released.is_ok())
    std::erase_if(pools_, [pool](const auto& each) { return each.get() == pool; });
  return released;
}

Result<PoolCheckpoint> MemoryPools::checkpoint(DeviceId device, MemoryPoolId id) noexcept {
  Result<Pool*> pool{nullptr};
  {
    const MutexGuard lock(lock_);
    const Pool* const known = find(id);
    ASHLAR_REQUIRE(known == nullptr || !known->options.overflow, Code::kUnsupported,
                   "a pool that overflows may have lent its memory: it has no checkpoints");
    pool = close(id);
  }
  if (!pool.is_ok()) return pool.status();
  PoolCheckpoint made;
  made.device_ = device;
  made.pool_ = id;
  made.pool_serial_ = pool.value()->serial;
  const Status read = cache_.reclaimer().read_reserved(pool.value()->heaps, &made.blocks_);
  open(pool.value());
  if (!read.is_ok()) return read;
  return made;
}

Status MemoryPools::restore(const PoolCheckpoint& to, RestoredPool* out) noexcept {
  Pool* pool = nullptr;
  {
    const MutexGuard lock(lock_);
    pool = find(to.pool_);
    ASHLAR_REQUIRE(pool == nullptr || pool->serial == to.pool_serial_, Code::kInvalidArgument,
                   "the checkpoint is of a pool that was released, or of another allocator's");
    const Result<Pool*> closed = close(to.pool_);
    if (!closed.is_ok()) return closed.status();
  }
  const Status restored = cache_.reclaimer().restore_reserved(pool->heaps, to.blocks_, out);
  open(pool);
  return restored;
}

StreamHeap* MemoryPools::heap_in(const Pool& pool, const Stream& stream) noexcept {
  for (StreamHeap* heap : pool.heaps) {
    if (heap->stream.id == stream.id) return heap;
  }
  return nullptr;
}

namespace {

bool accepts_any(const StreamFilter& filter, const Stream& stream, const StreamHeap* own) noexcept {
  if (filter(stream)) return true;
  for (; own != nullptr; own = own->life.parent()) {
    if (own->stream.id != stream.id && filter(own->stream)) return true;
  }
  return false;
}

}  // namespace

MemoryPools::Pool* MemoryPools::pool_for(const Stream& stream,
                                         const StreamHeap* own) const noexcept {
  const FilterScope scope(shared_.running.observers, shared_.running.filters);
  for (auto route = routes_.rbegin(); route != routes_.rend(); ++route) {
    if (accepts_any(route->accepts, stream, own)) return route->pool;
  }
  return nullptr;
}

bool MemoryPools::find_heap(const Stream& stream, const StreamHeap* own,
                            Routed* routed) const noexcept {
  const Pool* const pool = pool_for(stream, own);
  if (pool == nullptr) return true;
  routed->pool = pool->id;
  routed->stream = own == nullptr ? stream : outermost_of(*own).stream;
  routed->heap = heap_in(*pool, routed->stream);
  return routed->heap != nullptr;
}

namespace {

/// May the stream allocate now in the memory that it shares with the bodies of its capture? `own`: its own heap,
/// or nullptr while no body is captured.
Status check_turn(const StreamHeap* own) noexcept {
  if (own == nullptr) return Status::ok();
  ASHLAR_REQUIRE(own->life.body() == nullptr, Code::kBusy,
                 "a body of the stream's capture is being captured: allocate on the body's stream");
  ASHLAR_REQUIRE(own->life.parent() == nullptr || own->life.is_alive(), Code::kInvalidHandle,
                 "the stream was destroyed while it captured a body");
  return Status::ok();
}

}  // namespace

Result<MemoryPools::Routed> MemoryPools::route(const Stream& stream) noexcept {
  const StreamHeap* capturing = nullptr;
  if (shared_.bodies.count.load() != 0) capturing = cache_.heaps().find(stream.id);
  for (;;) {  // each further round needs a begin or an end of a route meanwhile
    Routed routed;
    std::uint64_t changes = 0;
    {
      const MutexGuard lock(lock_);
      const bool is_found = find_heap(stream, capturing, &routed);
      if (routed.pool.is_default()) return routed;
      if (const Status refused = check_turn(capturing); !refused.is_ok()) return refused;
      if (is_found) return routed;
      changes = route_changes_;
    }
    // The stream's own heap first: whether the stream is alive is known by it, and it is the user of
    // what outlives the pool.
    const Result<StreamHeap*> own = cache_.heap_of(routed.stream);
    if (!own.is_ok()) return own.status();
    // Before any event is asked: a call that is refused makes no device call (C13).
    if (const Status served = check_serves(*own.value(), routed.stream); !served.is_ok())
      return served;
    cache_.reclaimer().ask_some_dead();
    // In this order: no allocation from another pool waits for the reclaim lock (C30).
    const ReclaimGuard reclaim(cache_.reclaimer().lock());
    const MutexGuard lock(lock_);
    if (changes != route_changes_) continue;
    Pool& pool = *find(routed.pool);
    routed.heap = heap_in(pool, routed.stream);
    if (routed.heap != nullptr) return routed;
    if (!reserve_one(pool.heaps)) return kShortOfHostMemory;
    const Result<StreamHeap*> made = cache_.reclaimer().add_pool_heap(
        *own.value(), routed.stream, pool.id, pool.options, pool.heaps);
    if (!made.is_ok()) return made.status();
    routed.heap = made.value();
    pool.heaps.push_back(routed.heap);
    return routed;
  }
}

const char* MemoryPools::validate() const noexcept {
  const MutexGuard lock(lock_);
  std::uint64_t reserved = 0;
  for (StreamHeap& heap : cache_.heaps()) reserved += heap.is_reserved();
  for (const auto& pool : pools_) {
    reserved -= pool->heaps.size();
    if (pool->uses == 0) return "memory pools(1): a pool without uses";
    for (const StreamHeap* heap : pool->heaps) {
      if (!heap->is_reserved() || heap->membership.id != pool->id)
        return "memory pools(1): a pool's heap is not reserved for it";
    }
  }
  if (reserved != 0) return "memory pools(3): a reserved heap of no pool";
  for (std::size_t i = 0; i < routes_.size(); ++i) {
    if (find(routes_[i].pool->id) != routes_[i].pool) return "memory pools(2): a route to no pool";
    for (std::size_t j = 0; j < i; ++j) {
      if (routes_[j].pool == routes_[i].pool) return "memory pools(2): two routes to one pool";
    }
  }
  return nullptr;
}

}  // namespace ashlar::inline v0::cache
