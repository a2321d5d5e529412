#include "props/pinned/pinned_captures.h"

#include <algorithm>

namespace ashlar::props {
namespace {

std::string finding(const char* clause, const char* what, const Status& status) {
  return std::string(clause) + ": " + what + ": " + code_name(status.code()) + ", " + status.why();
}

}  // namespace

bool PinnedCaptures::is_idle() const {
  return std::none_of(pools_.begin(), pools_.end(),
                      [this](const Pool& each) { return is_guarded(each); });
}

bool PinnedCaptures::needs(const Stream& stream) const {
  return is_capturing(stream) || std::any_of(pools_.begin(), pools_.end(), [&](const Pool& each) {
           return !each.is_released && each.launches_on == stream;
         });
}

bool PinnedCaptures::is_released(std::uint32_t pool) const {
  return std::none_of(pools_.begin(), pools_.end(), [pool](const Pool& each) {
    return each.number == pool && !each.is_released;
  });
}

PinnedCaptures::Pool* PinnedCaptures::pool_at(std::uint64_t n) {
  std::vector<Pool*> in_use;
  for (Pool& each : pools_) {
    if (!each.is_released) in_use.push_back(&each);
  }
  return in_use.empty() ? nullptr : in_use[n % in_use.size()];
}

std::string PinnedCaptures::begin(const Stream& stream, bool shares, bool may_fail) {
  if (is_open()) return "";
  Pool* pool = shares && !forgets_pools_ ? pool_at(numbered_) : nullptr;
  const bool is_new = pool == nullptr;
  if (is_new) {
    pools_.push_back({++numbered_, stream, {}, {}});
    pool = &pools_.back();
  }
  cache::CachingAllocator& caching = allocator_.caching();
  Status begun = allocator_.begin_pool(id_of(*pool), [this] { return is_routed_; });
  if (!begun.is_ok()) return finding("DEV-8", "a pool cannot be begun", begun);
  if (!is_new) {  // the use that begin_pool() added
    const Status released = caching.release_pool(allocator_.device(), id_of(*pool));
    if (!released.is_ok()) return finding("DEV-7", "a use of a pool cannot be ended", released);
  }
  begun = caching.begin_capture(stream);
  if (!begun.is_ok()) {
    if (!may_fail) return finding("C9", "a capture cannot be announced", begun);
    const Status ended = caching.end_pool(allocator_.device(), id_of(*pool));
    if (!ended.is_ok()) return finding("DEV-8", "a pool cannot be ended", ended);
    return is_new ? release(*pool, false) : "";
  }
  open_ = pool;
  stream_ = stream;
  begun = gpu_.begin_capture(stream, device::CaptureMode::kGlobal);
  return begun.is_ok() ? "" : finding("C9", "a capture cannot begin", begun);
}

std::string PinnedCaptures::end() {
  if (!is_open()) return "";
  Pool& pool = *std::exchange(open_, nullptr);
  const auto graph = gpu_.end_capture(stream_);
  if (!graph.is_ok()) return finding("C9", "a capture was invalidated", graph.status());
  pool.graphs.push_back(graph.value());
  cache::CachingAllocator& caching = allocator_.caching();
  Status ended = caching.end_capture(stream_);
  if (ended.is_ok()) ended = caching.end_pool(allocator_.device(), id_of(pool));
  if (ended.is_ok() && forgets_pools_)
    ended = caching.release_pool(allocator_.device(), id_of(pool));
  return ended.is_ok() ? "" : finding("DEV-7", "the end of a capture", ended);
}

std::string PinnedCaptures::launch(std::uint64_t n) {
  Pool* const pool = pool_at(n);
  if (pool == nullptr || pool->graphs.empty() || is_capturing(pool->launches_on)) return "";
  const Status launched =
      gpu_.launch_graph(pool->launches_on, pool->graphs[n % pool->graphs.size()]);
  if (!launched.is_ok()) return finding("C8", "a graph cannot be launched", launched);
  const auto is_over = std::make_shared<bool>(false);
  pool->is_over = is_over;
  static_cast<void>(gpu_.host_function(pool->launches_on, 0, [is_over] { *is_over = true; }));
  return "";
}

std::string PinnedCaptures::release(std::uint64_t n, bool may_fail) {
  Pool* const pool = pool_at(n);
  return pool == nullptr || pool == open_ ? "" : release(*pool, may_fail);
}

std::string PinnedCaptures::release(Pool& pool, bool may_fail) {
  const Status released = forgets_pools_
                              ? Status::ok()
                              : allocator_.caching().release_pool(allocator_.device(), id_of(pool));
  if (!released.is_ok()) return may_fail ? "" : finding("DEV-7", "the end of a pool", released);
  pool.is_released = true;
  for (const spec::GraphId graph : pool.graphs) static_cast<void>(gpu_.destroy_graph(graph));
  if (open_ == nullptr) std::erase_if(pools_, [this](const Pool& p) { return !is_guarded(p); });
  return "";
}

std::string PinnedCaptures::release_all() {
  std::string found = end();
  while (found.empty() && pool_at(0) != nullptr) found = release(0, false);
  return found;
}

std::string PinnedCaptures::misuse() const {
  cache::CachingAllocator& caching = allocator_.caching();
  const DeviceId on = allocator_.device();
  const auto judge = [](const Status& got, Code code, const char* what) {
    return got.code() == code ? "" : finding("C16", what, got);
  };
  std::string found = judge(caching.end_pool(on, {numbered_ + 1, 0}), Code::kNotFound,
                            "the end of an unknown pool");
  if (found.empty())
    found = judge(caching.release_pool(on, {numbered_ + 1, 0}), Code::kNotFound,
                  "the release of an unknown pool");
  if (found.empty())
    found = judge(allocator_.begin_pool({0, 0}, [] { return true; }), Code::kInvalidArgument,
                  "a pool without a name");
  if (!found.empty() || !is_open()) return found;
  found = judge(caching.begin_capture(stream_), Code::kBusy, "a second capture of a stream");
  if (found.empty())
    found = judge(caching.retire_stream(stream_), Code::kBusy, "the end of a stream that captures");
  if (found.empty())
    found = judge(allocator_.begin_pool(id_of(*open_), [] { return true; }), Code::kBusy,
                  "a pool that is begun already");
  if (found.empty())
    found = judge(allocator_.process_events(), Code::kBusy, "a poll during a capture");
  return found;
}

std::string PinnedCaptures::on_given(Address at, std::uint64_t size, std::uint32_t pool) {
  for (Pool& each : pools_) {
    if (each.number == pool && !each.is_released) {
      each.baked.push_back({at, size});
    } else if (is_guarded(each) &&
               std::any_of(each.baked.begin(), each.baked.end(), [&](const Range& range) {
                 return range.at.value() < at.value() + size &&
                        at.value() < range.at.value() + range.size;
               })) {
      return "C8: bytes at " + std::to_string(at.value()) + " of pool " +
             std::to_string(each.number) + ", given to " + std::to_string(pool);
    }
  }
  return "";
}

}  // namespace ashlar::props
