// The private state of a CachingAllocator: its devices, and how a call finds its own. Included by
// caching_allocator.cc, caching_allocator_captures.cc and caching_allocator_queries.cc, and by tests through their peer.
//
// Thread safety: the devices are made before other threads use the allocator; captures_lock orders
// announcements of captures.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include <ashlar/base/fork_check.h>
#include <ashlar/base/mutex.h>
#include <ashlar/cache/caching_allocator.h>
#include <ashlar/cache/device_cache.h>
#include <ashlar/cache/observer_scope.h>
#include <ashlar/cache/shared_state.h>

namespace ashlar::inline v0::cache {

inline constexpr const char* kNoPlace = "no place for the answer";

struct CachingAllocator::Impl {
  // Hidden, though the class around it is exported: both are defined in caching_allocator.cc.
  [[gnu::visibility("hidden")]] explicit Impl(const Config& config) noexcept;
  ~Impl() = default;
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  bool is_forked() const noexcept { return birth.is_forked(); }
  DeviceCache* device(DeviceId id) const noexcept {
    const auto index = static_cast<std::uint32_t>(id.value());  // a negative one is past the end
    return index < device_count ? devices[index].get() : nullptr;
  }
  Status usable() const noexcept {
    ASHLAR_REQUIRE(!is_forked(), Code::kForked,
                   "this process is a fork of the one that made the allocator");
    return Status::ok();
  }
  Result<DeviceCache*> usable_device(DeviceId id) const noexcept {
    if (const Status status = usable(); !status.is_ok()) return status;
    DeviceCache* cache = device(id);
    ASHLAR_REQUIRE(cache != nullptr, Code::kInvalidArgument, "no device with that id");
    return cache;
  }
  /// usable_device(), for calls that need the lock of the device's memory pools or the reclaim lock, or
  /// wait for threads that may hold one, or for a stream's work: kReentrant inside a pool's filter and an
  /// observer of mappings, which hold one.
  Result<DeviceCache*> device_outside_filter(DeviceId id) const noexcept {
    ASHLAR_REQUIRE(
        !ObserverScope::is_inside(shared.running.filters), Code::kReentrant,
        "a memory pool's filter and an observer of mappings may free and query, not call this");
    return usable_device(id);
  }
  /// The memory pools of the device; kInvalidArgument for the name of no pool.
  Result<MemoryPools*> pools_for(DeviceId id, MemoryPoolId pool) const noexcept {
    const Result<DeviceCache*> cache = device_outside_filter(id);
    if (!cache.is_ok()) return cache.status();
    ASHLAR_REQUIRE(!pool.is_default(), Code::kInvalidArgument, "{0, 0} names no memory pool");
    return &cache.value()->memory_pools();
  }
  Result<StreamHeap*> heap_of(const Stream& stream) const noexcept {
    const Result<DeviceCache*> cache = usable_device(stream.device);
    return cache.is_ok() ? cache.value()->heap_of(stream) : cache.status();
  }
  /// The heap of the stream that uses the live block at `address`. A heap is made for a new stream
  /// only if `check` says that the call that names it is not refused (C32).
  Result<StreamHeap*> user_of(const PageMap::Found& found, Address address, const Stream& stream,
                              decltype(DeviceCache::check)& check) const noexcept {
    const Result<DeviceCache*> cache = usable_device(stream.device);
    if (!cache.is_ok()) return cache.status();
    if (StreamHeap* known = cache.value()->heaps().find(stream.id)) return known;
    Reclaimer& reclaimer = cache.value()->reclaimer();
    if (const Status refused = check(found, address); !refused.is_ok()) return refused;
    const Status alive = reclaimer.ask_before(stream);
    // Again: an answer may have shown that the device or its driver is gone.
    if (const Status refused = check(found, address); !refused.is_ok()) return refused;
    return reclaimer.make_user(stream, alive);
  }

  /// The stream captures, from now on: kInvalidHandle if it is dead, kBusy if it captures already.
  Status announce(StreamHeap& heap, const Stream& stream) noexcept ASHLAR_REQUIRES(captures_lock) {
    {
      const Guard guard(heap.lock);
      ASHLAR_REQUIRE(heap.serves(stream), Code::kInvalidHandle,
                     "the stream was retired or its handle reused");
      ASHLAR_REQUIRE(!heap.life.is_capturing(), Code::kBusy,
                     "a capture of that stream is announced already");
      heap.life.set_capturing(true);
    }
    shared.captures.fetch_add(1);
    shared.captures_begun.fetch_add(1);
    return Status::ok();
  }
  /// The body is captured no more; its parent's capture goes on.
  void close_body(StreamHeap& body) noexcept ASHLAR_REQUIRES(captures_lock) {
    body.life.parent()->life.set_body(nullptr);
    body.life.set_parent(nullptr);
    body.life.set_capturing(false);
    shared.bodies.count.fetch_sub(1);
    shared.captures.fetch_sub(1);
  }

  // The slow paths of the hot calls: a memory pool may serve, a history asks where the call comes from, there is no
  // cache.
  [[gnu::cold, gnu::visibility("hidden")]] Result<Address> allocate_by_detour(
      DeviceCache& cache, Bytes size, const Stream& stream, OutOfMemory* account) noexcept;
  /// `user`: whose use the free names, or nullptr.
  [[gnu::cold, gnu::visibility("hidden")]] Status free_by_detour(const PageMap::Found& found,
                                                                 Address address,
                                                                 StreamHeap* user) const noexcept;
  /// The answer of ask(pins, driver) of the device whose range begins there; kNotFound if it is none's.
  template <class Ask>
  Status ask_pins(Address base, Ask&& ask) const noexcept;
  /// Reclaimer::give_back_finished(), if nothing is cached and the calling thread may take the lock; without a fresh heap, of all
  /// heaps.
  [[gnu::cold, gnu::visibility("hidden")]] void give_back_finished(
      DeviceCache& cache, StreamHeap* fresh) const noexcept;
  /// Whom the history of the memory's device asks at a free, if it does.
  [[gnu::cold, gnu::visibility("hidden")]] static ContextRecorder* free_recorder_of(
      const PageMap::Found& found) noexcept;

  std::span<const std::unique_ptr<DeviceCache>> all() const noexcept {
    return {devices.get(), device_count};
  }

  SharedState shared ASHLAR_UNGUARDED;  ///< has locks of its own
  std::unique_ptr<std::unique_ptr<DeviceCache>[]> devices ASHLAR_UNGUARDED;
  /// for the hot path: a vector's size costs four instructions
  std::uint32_t device_count ASHLAR_UNGUARDED = 0;
  Mutex captures_lock;  ///< begin_capture and end_capture run one at a time
  Mutex history_lock;   ///< histories begin and end one at a time
  const ForkCheck birth;
};

}  // namespace ashlar::inline v0::cache
