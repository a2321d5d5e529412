#include <ashlar/cache/history_calls.h>

#include <ashlar/base/exceptions.h>
#include <ashlar/cache/caching_allocator_impl.h>
#include <ashlar/cache/history_snapshot.h>

namespace ashlar::inline v0::cache {

/// What these calls reach of an allocator.
struct HistoryAccess {
  static auto& impl_of(const CachingAllocator& allocator) noexcept { return *allocator.impl_; }
  static Result<HistoryLog*> log_of(const CachingAllocator& allocator, DeviceId device) noexcept {
    const Result<DeviceCache*> cache = impl_of(allocator).usable_device(device);
    if (!cache.is_ok()) return cache.status();
    return &cache.value()->heaps().history();
  }
  /// Counts whom the calls of the allocator have to ask from now on, or no more.
  static void count_recorders(SharedState& shared, const HistoryLog& log, bool begins) noexcept {
    const auto count = [begins](std::atomic<unsigned>& counter) {
      if (begins) counter.fetch_add(1);
      else counter.fetch_sub(1);
    };
    if (log.recorder(false) != nullptr) count(shared.detours.count);
    if (log.recorder(true) != nullptr) count(shared.detours.frees);
  }
};

Status start_history(CachingAllocator& allocator, DeviceId device,
                     const HistoryOptions& options) noexcept {
  auto& impl = HistoryAccess::impl_of(allocator);
  const Result<DeviceCache*> cache = impl.device_outside_filter(device);
  if (!cache.is_ok()) return cache.status();
  HistoryLog& log = cache.value()->heaps().history();
  const MutexGuard lock(impl.history_lock);
  if (const Status begun = log.begin(options); !begun.is_ok()) return begun;
  HistoryAccess::count_recorders(impl.shared, log, true);
  cache.value()->heaps().wait_for_holders();
  log.restart();
  return Status::ok();
}

Status stop_history(CachingAllocator& allocator, DeviceId device) noexcept {
  auto& impl = HistoryAccess::impl_of(allocator);
  const Result<DeviceCache*> cache = impl.device_outside_filter(device);
  if (!cache.is_ok()) return cache.status();
  HistoryLog& log = cache.value()->heaps().history();
  const MutexGuard lock(impl.history_lock);
  ASHLAR_REQUIRE(log.is_on(), Code::kNotFound, "the history is off");
  HistoryAccess::count_recorders(impl.shared, log, false);
  log.end();
  return Status::ok();
}

Result<bool> has_history(const CachingAllocator& allocator, DeviceId device) noexcept {
  const Result<HistoryLog*> log = HistoryAccess::log_of(allocator, device);
  if (!log.is_ok()) return log.status();
  return log.value()->is_on();
}

Status annotate(CachingAllocator& allocator, DeviceId device, std::string_view text) noexcept {
  const Result<HistoryLog*> log = HistoryAccess::log_of(allocator, device);
  return log.is_ok() ? log.value()->annotate(text) : log.status();
}

Status read_history(const CachingAllocator& allocator, DeviceId device, std::uint64_t first,
                    History* out) noexcept {
  ASHLAR_REQUIRE(out != nullptr, Code::kInvalidArgument, "no place for the answer");
  const Result<HistoryLog*> log = HistoryAccess::log_of(allocator, device);
  if (!log.is_ok()) return log.status();
  const bool is_read =
      with_host_memory([&] { log.value()->read(first, log.value()->place().next, out); });
  if (is_read) return Status::ok();
  *out = {};
  return kShortOfHostMemory;
}

Status history_snapshot(CachingAllocator& allocator, DeviceId device,
                        HistorySnapshot* out) noexcept {
  ASHLAR_REQUIRE(out != nullptr, Code::kInvalidArgument, "no place for the answer");
  const Result<DeviceCache*> cache = HistoryAccess::impl_of(allocator).usable_device(device);
  if (!cache.is_ok()) return cache.status();
  Status taken = kShortOfHostMemory;
  static_cast<void>(with_host_memory([&] { taken = write_history_snapshot(*cache.value(), out); }));
  if (!taken.is_ok()) *out = {};
  return taken;
}

}  // namespace ashlar::inline v0::cache
