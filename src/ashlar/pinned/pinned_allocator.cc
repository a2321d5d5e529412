#include <ashlar/pinned/pinned_allocator.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <new>
#include <thread>
#include <utility>

#include <ashlar/base/exceptions.h>
#include <ashlar/pinned/reaper.h>

namespace ashlar::inline v0::pinned {
namespace {

constexpr unsigned kArenasMax = 64;
constexpr Status kNoHostMemory{Code::kHostOutOfMemory, "the host has no memory for the allocator"};

std::atomic<unsigned> threads_numbered{0};
constexpr unsigned kNoNumber = ~0u;
/// The calling thread's number, counted from 0 in the order of the first allocations. Initialised statically and
/// reached without a call, for the hit.
[[gnu::tls_model("initial-exec")]] thread_local unsigned thread_number = kNoNumber;

unsigned arenas_of(const PinnedConfig& config) noexcept {
  const unsigned cores = std::thread::hardware_concurrency();  // 0 where nobody knows: one arena
  return std::bit_ceil(std::min(config.arenas == 0 ? cores : config.arenas, kArenasMax));
}

}  // namespace

PinnedAllocator::PinnedAllocator(DeviceId id, std::span<device::Device* const> devices,
                                 const PinnedConfig& config)
    : space_(id, devices, config.space),
      rounds_to_power_of_two_(config.rounds_to_power_of_two),
      arenas_(arenas_of(config)),
      arena_mask_(arenas_.size() - 1) {
  std::uint64_t number = 0;
  for (Stream& arena : arenas_) arena = space_.stream(number++);
}

PinnedAllocator::~PinnedAllocator() {
  if (reaper_ == nullptr || !reaper_->is_forked()) return;
  // The child does not have the thread, and the thread's lock may be held: the object stays.
  [[maybe_unused]] const Reaper* const left = reaper_.release();
}

std::unique_ptr<PinnedAllocator> PinnedAllocator::make(DeviceId id,
                                                       std::span<device::Device* const> devices,
                                                       const PinnedConfig& config) {
  return std::unique_ptr<PinnedAllocator>(new PinnedAllocator(id, devices, config));
}

Result<std::unique_ptr<PinnedAllocator>> PinnedAllocator::create(
    std::span<device::Device* const> devices, const PinnedConfig& config) noexcept {
  if (const Status good = PinnedSpace::check_options(config.space); !good.is_ok()) return good;
  ASHLAR_REQUIRE(config.arenas <= kArenasMax, Code::kInvalidArgument, "arenas: more than 64");
  ASHLAR_REQUIRE(!devices.empty() && devices[0] != nullptr, Code::kInvalidArgument,
                 "no device to lock memory with");
  const DeviceId id{static_cast<std::int32_t>(devices.size())};
  std::unique_ptr<PinnedAllocator> made;
  std::vector<device::Device*> all;
  const bool has_room = with_host_memory([&] {
    made = make(id, devices, config);
    all.assign(devices.begin(), devices.end());
    all.push_back(&made->space_);
  });
  if (!has_room) return kNoHostMemory;
  cache::Config in = config.cache;
  in.backing = cache::Backing::kSegments;
  Result<std::unique_ptr<cache::CachingAllocator>> caching =
      cache::CachingAllocator::create(all, in);
  if (!caching.is_ok()) return caching.status();
  made->caching_ = std::move(caching).value();
  if (const Status begun = made->begin(config); !begun.is_ok()) return begun;
  return made;
}

Status PinnedAllocator::begin(const PinnedConfig& config) noexcept {
  const Result<Address> kept = allocate(config.reserve);
  if (!kept.is_ok()) return kept.status();
  if (const Status freed = free(kept.value()); !freed.is_ok()) return freed;
  if (config.reap_ms == 0) return Status::ok();
  reaper_.reset(new (std::nothrow) Reaper(*caching_, device()));
  return reaper_ != nullptr && reaper_->start(config.reap_ms) ? Status::ok() : kNoHostMemory;
}

const Stream& PinnedAllocator::arena() const noexcept {
  if (thread_number == kNoNumber) [[unlikely]]
    thread_number = threads_numbered.fetch_add(1, std::memory_order_relaxed);
  return arenas_[thread_number & arena_mask_];
}

Result<Address> PinnedAllocator::allocate(Bytes size, cache::OutOfMemory* account) noexcept {
  // Zero stays zero, and a size over the limit over it.
  if (rounds_to_power_of_two_ && size > 0_B && size <= cache::kRequestBytesMax)
    size = Bytes{std::bit_ceil(size.count())};
  return caching_->allocate(size, arena(), account);
}

Status PinnedAllocator::record_use(Address address, const void* context,
                                   const Stream& stream) noexcept {
  if (context != nullptr) {
    const Status by_context = cache::record_use_of_alive(*caching_, Address::of(context), stream);
    if (by_context.code() != Code::kUnknownPointer) return by_context;
  }
  return cache::record_use_of_alive(*caching_, address, stream);
}

Status PinnedAllocator::copy(Address to, Address from, Bytes size) noexcept {
  for (const Address end : {to, from}) {
    const Result<cache::AllocationInfo> info = caching_->info(end);
    if (!info.is_ok()) return info.status();
    ASHLAR_REQUIRE(size <= info.value().size, Code::kInvalidArgument,
                   "more bytes than the allocation has");
  }
  if (to != from) std::memcpy(to.pointer(), from.pointer(), size.count());
  return Status::ok();
}

Status PinnedAllocator::begin_pool(MemoryPoolId pool, ThreadFilter filter) noexcept {
  if (filter == nullptr) return caching_->begin_pool(device(), pool, StreamFilter{});
  StreamFilter by_thread;
  if (!with_host_memory(
          [&] { by_thread = [accepts = std::move(filter)](const Stream&) { return accepts(); }; }))
    return kNoHostMemory;
  return caching_->begin_pool(device(), pool, std::move(by_thread));
}

}  // namespace ashlar::inline v0::pinned
