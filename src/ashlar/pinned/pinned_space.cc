#include <ashlar/pinned/pinned_space.h>

#include <algorithm>
#include <map>
#include <utility>

#include <ashlar/base/exceptions.h>
#include <ashlar/base/fork_check.h>
#include <ashlar/base/mutex.h>
#include <ashlar/device/physical_memory.h>
#include <ashlar/pinned/thread_numa_policy.h>
#include <ashlar/pinned/touched_memory.h>

namespace ashlar::inline v0::pinned {
namespace {

using Ranges = std::map<Address, Bytes>;

/// So that no rounding wraps; no host has as much.
constexpr Bytes kSizeMax{std::uint64_t{1} << 60};

/// False if the host has no memory for it.
bool insert(Ranges& into, Address base, Bytes size) noexcept {
  return with_host_memory([&] { into.emplace(base, size); });
}

/// Adds a call that took from one of these times to the other.
void count(LockTimes* times, std::uint64_t began_ns, std::uint64_t ended_ns) noexcept {
  const std::uint64_t took = ended_ns - began_ns;
  times->least_ns = times->calls == 0 ? took : std::min(times->least_ns, took);
  times->most_ns = std::max(times->most_ns, took);
  times->total_ns += took;
  ++times->calls;
}

}  // namespace

/// What is handed out. Invariants:
///   (1) `ranges` has exactly the ranges that are handed out and not given back, with the sizes asked for, but for
///       one whose call is under way;
///   (2) `held` is what is locked for those ranges and for the calls under way, and at most the capacity.
struct PinnedSpace::Book {
  const ForkCheck birth;
  mutable Mutex lock;
  Ranges ranges ASHLAR_GUARDED_BY(lock);
  Bytes held ASHLAR_GUARDED_BY(lock);
  PinTimes times ASHLAR_GUARDED_BY(lock);
};

PinnedSpace::PinnedSpace(DeviceId id, std::span<device::Device* const> devices,
                         const PinnedSpaceOptions& options)
    : ImmediateDevice(id),
      devices_(devices.begin(), devices.end()),
      through_(*devices_[0]),
      options_(options),
      book_(std::make_unique<Book>()) {}

PinnedSpace::~PinnedSpace() = default;

Status PinnedSpace::check_options(const PinnedSpaceOptions& options) noexcept {
  ASHLAR_REQUIRE(options.by == PinBy::kDriver || options.by == PinBy::kRegistration,
                 Code::kInvalidArgument, "by: neither the driver nor a registration");
  ASHLAR_REQUIRE(options.touch_threads >= 1 && options.touch_threads <= kTouchThreadsMax,
                 Code::kInvalidArgument, "touch_threads: not 1 to 128");
  ASHLAR_REQUIRE(options.numa_node >= kAnyNode && options.numa_node < kNodesMax,
                 Code::kInvalidArgument, "numa_node: not -1 (any) to 1023");
  ASHLAR_REQUIRE(options.capacity > 0_B, Code::kInvalidArgument, "capacity: zero");
  return Status::ok();
}

device::DeviceTraits PinnedSpace::traits() const noexcept {
  device::DeviceTraits traits = ImmediateDevice::traits();
  if (options_.by == PinBy::kDriver) traits.address_alignment = through_.traits().address_alignment;
  else traits.address_alignment = 2_MiB;
  traits.host_accessible = true;
  return traits;
}

PinTimes PinnedSpace::times() const noexcept {
  if (book_->birth.is_forked()) return {};  // its lock may be held by a thread of the parent
  const MutexGuard guard(book_->lock);
  return book_->times;
}

Result<Address> PinnedSpace::pin(Bytes size) noexcept {
  if (options_.by == PinBy::kDriver) {
    const ThreadNumaPolicy policy(options_.numa_node);
    return policy.status().is_ok() ? through_.pinned_alloc(size) : policy.status();
  }
  const Result<Address> base = map_touched(size, options_.touch_threads, options_.numa_node);
  if (!base.is_ok()) return base;
  const Status registered = through_.host_register(base.value(), touched_size(size));
  if (registered.is_ok()) return base;
  unmap_touched(base.value(), size);
  return registered;
}

Status PinnedSpace::unpin(Address base, Bytes size) noexcept {
  if (options_.by == PinBy::kDriver) return through_.pinned_free(base);
  const Status ended = through_.host_unregister(base);
  if (ended.is_ok()) unmap_touched(base, size);
  return ended;
}

Bytes PinnedSpace::locked_size(Bytes size) const noexcept {
  return options_.by == PinBy::kDriver ? size : touched_size(size);
}

Result<Address> PinnedSpace::segment_alloc(Bytes size) noexcept {
  ASHLAR_REQUIRE(size > 0_B, Code::kInvalidArgument, "zero bytes of page-locked memory");
  ASHLAR_REQUIRE(size <= kSizeMax, Code::kOutOfMemory, "more than any host has");
  const Bytes locked = locked_size(size);
  {
    const MutexGuard guard(book_->lock);
    ASHLAR_REQUIRE(locked <= options_.capacity && book_->held <= options_.capacity - locked,
                   Code::kOutOfMemory, "over the capacity of page-locked memory");
    book_->held += locked;
  }
  const std::uint64_t began = now_ns();
  const Result<Address> base = pin(size);
  const std::uint64_t ended = now_ns();
  {
    const MutexGuard guard(book_->lock);
    count(&book_->times.pin, began, ended);
    if (!base.is_ok()) book_->held -= locked;
    if (!base.is_ok() || insert(book_->ranges, base.value(), size)) return base;
  }
  // The memory is gone from here even where the driver refuses to take it back.
  static_cast<void>(unpin(base.value(), size));
  const MutexGuard guard(book_->lock);
  book_->held -= locked;
  return Status{Code::kHostOutOfMemory, "no memory to note a page-locked range"};
}

Status PinnedSpace::segment_free(Address base) noexcept {
  Ranges::node_type range;
  {
    const MutexGuard guard(book_->lock);
    const auto at = book_->ranges.find(base);
    ASHLAR_REQUIRE(at != book_->ranges.end(), Code::kInvalidArgument,
                   "not the start of a page-locked range");
    range = book_->ranges.extract(at);
  }
  const std::uint64_t began = now_ns();
  const Status freed = unpin(base, range.mapped());
  const std::uint64_t ended = now_ns();
  const MutexGuard guard(book_->lock);
  count(&book_->times.unpin, began, ended);
  if (freed.is_ok()) {
    book_->held -= locked_size(range.mapped());
  } else {
    book_->ranges.insert(std::move(range));
  }
  return freed;
}

Result<device::MemoryInfo> PinnedSpace::memory_info() noexcept {
  const Bytes total = std::min(options_.capacity, device::physical_memory());
  const MutexGuard guard(book_->lock);
  return device::MemoryInfo{total - std::min(total, book_->held), total};
}

Status PinnedSpace::synchronize() noexcept {
  for (device::Device* const each : devices_) {
    const Status done = each->synchronize();
    if (!done.is_ok() && done.code() != Code::kDeviceLost) return done;
  }
  return Status::ok();
}

Status PinnedSpace::synchronize_for(std::uint32_t timeout_ms) noexcept {
  constexpr std::uint64_t kNsInMs = 1'000'000;
  const std::uint64_t end = now_ns() + timeout_ms * kNsInMs;
  for (device::Device* const each : devices_) {
    // In part of a millisecond that is left a device is asked and not waited for.
    const std::uint64_t now = now_ns();
    const Status done =
        each->synchronize_for(now < end ? static_cast<std::uint32_t>((end - now) / kNsInMs) : 0);
    if (!done.is_ok() && done.code() != Code::kDeviceLost) return done;
  }
  return Status::ok();
}

}  // namespace ashlar::inline v0::pinned
