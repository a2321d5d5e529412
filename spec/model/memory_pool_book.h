// MemoryPoolBook: which memory pools there are, whose allocations go to them, and which of the subject's
// heaps are theirs (C8).
//
// A heap is known by what heap_of() says of its segments. The book learns which heap serves a stream in
// a pool when the subject first serves an allocation there.
// Thread safety: none.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include <ashlar/base/memory_pool.h>
#include <ashlar/base/types.h>
#include <ashlar/cache/snapshot.h>

namespace ashlar::spec {

/// The heap that holds the segment: its stream's identity, or a memory pool's heap's number.
inline std::uint64_t heap_of(const cache::SnapshotSegment& segment) {
  return segment.heap != 0 ? segment.heap : segment.stream.value();
}
/// The heap of an allocation that no heap has served yet.
inline constexpr std::uint64_t kNoHeap = ~std::uint64_t{0};

class MemoryPoolBook {
 public:
  struct PoolHeap {
    std::uint64_t stream;
    std::uint64_t heap;
  };
  struct Range {
    std::uint64_t begin;
    std::uint64_t end;
  };
  struct Pool {
    DeviceId device;
    MemoryPoolId id;
    std::uint64_t uses = 0;
    std::vector<PoolHeap> heaps;
    std::vector<Range> given;  ///< to its allocations, ever
    MemoryPoolOptions options;
    /// Was a capture announced while the pool existed?
    bool may_have_graphs = false;
    /// of this pool alone, from 1: several pools in turn may have one name
    std::uint64_t serial = 0;
  };
  struct Route {
    DeviceId device;
    MemoryPoolId pool;
    std::uint64_t stream;
  };

  /// nullptr if there is none.
  Pool* find(DeviceId device, MemoryPoolId id) {
    const auto at = std::find_if(pools_.begin(), pools_.end(), [&](const Pool& pool) {
      return pool.device == device && pool.id == id;
    });
    return at == pools_.end() ? nullptr : &*at;
  }
  bool is_in_use(std::uint64_t serial) const {
    return std::any_of(pools_.begin(), pools_.end(),
                       [serial](const Pool& pool) { return pool.serial == serial; });
  }
  /// One use more; the pool is made with those options if it is new.
  void retain(DeviceId device, MemoryPoolId id, const MemoryPoolOptions& options = {}) {
    if (find(device, id) == nullptr)
      pools_.push_back({device, id, 0, {}, {}, options, is_capturing_, ++pools_made_});
    ++find(device, id)->uses;
  }
  /// Captures are announced from now on, or none is.
  void set_capturing(bool is_capturing) {
    is_capturing_ = is_capturing;
    for (Pool& pool : pools_) pool.may_have_graphs = pool.may_have_graphs || is_capturing;
  }
  /// Drops a use; with the last one the pool. REQUIRES: there is one.
  void release(DeviceId device, MemoryPoolId id) {
    Pool* const pool = find(device, id);
    if (--pool->uses != 0) return;
    for (const PoolHeap& each : pool->heaps) released_.push_back(each.heap);
    pools_.erase(pools_.begin() + (pool - pools_.data()));
  }
  bool is_routed(DeviceId device, MemoryPoolId id) const {
    return std::any_of(routes_.begin(), routes_.end(), [&](const Route& route) {
      return route.device == device && route.pool == id;
    });
  }
  void begin(DeviceId device, MemoryPoolId id, std::uint64_t stream) {
    retain(device, id);
    routes_.push_back({device, id, stream});
  }
  void end(DeviceId device, MemoryPoolId id) {
    std::erase_if(routes_,
                  [&](const Route& route) { return route.device == device && route.pool == id; });
  }
  /// The pool that the allocations of the first stream go to, by the route begun last; nullptr if to none. The
  /// others are those that it captures a body for (StreamBook::parents_of).
  Pool* routed(const std::vector<Stream>& streams) {
    for (auto route = routes_.rbegin(); route != routes_.rend(); ++route) {
      for (const Stream& each : streams) {
        if (route->device == each.device && route->stream == each.id.value())
          return find(route->device, route->pool);
      }
    }
    return nullptr;
  }
  /// The heap that serves the stream in that pool; kNoHeap if none has yet.
  static std::uint64_t heap_in(const Pool& pool, std::uint64_t stream) {
    for (const PoolHeap& each : pool.heaps) {
      if (each.stream == stream) return each.heap;
    }
    return kNoHeap;
  }
  /// How many heaps the pools in use may have for the stream.
  std::uint64_t heaps_of(const Stream& stream) const {
    return static_cast<std::uint64_t>(
        std::count_if(pools_.begin(), pools_.end(),
                      [&stream](const Pool& pool) { return pool.device == stream.device; }));
  }
  /// Is the heap that of a pool in use?
  bool is_reserved(std::uint64_t heap) const { return owner_of(heap) != nullptr; }
  /// Is it that of a pool in use that may lend in place of an out-of-memory?
  bool overflows(std::uint64_t heap) const {
    const Pool* const owner = owner_of(heap);
    return owner != nullptr && owner->options.overflow;
  }
  /// Are the blocks of the heap, of a pool in use, never split?
  bool is_unsplit(std::uint64_t heap) const {
    const Pool* const owner = owner_of(heap);
    return owner != nullptr && owner->options.no_split;
  }
  bool any_overflow() const {
    return std::any_of(pools_.begin(), pools_.end(),
                       [](const Pool& pool) { return pool.options.overflow; });
  }
  bool any_unsplit() const {
    return std::any_of(pools_.begin(), pools_.end(),
                       [](const Pool& pool) { return pool.options.no_split; });
  }
  /// Was it that of a pool that is released?
  bool is_released(std::uint64_t heap) const {
    return std::find(released_.begin(), released_.end(), heap) != released_.end();
  }
  /// An allocation from the pool was given those bytes.
  void note_given(DeviceId device, MemoryPoolId id, std::uint64_t begin, std::uint64_t size) {
    find(device, id)->given.push_back({begin, begin + size});
  }
  /// The pool is released, and launches of its graphs may use what its allocations were given: no event
  /// tells of them. `synchronizations`: of the device, so far.
  void note_launches(const Pool& pool, std::uint64_t synchronizations) {
    launches_.push_back({pool.device, pool.heaps, pool.given, synchronizations});
  }
  /// May nobody know yet that launches which use memory of the heap are done?
  bool may_be_launched(DeviceId device, std::uint64_t heap, std::uint64_t synchronizations) const {
    return std::any_of(launches_.begin(), launches_.end(), [&](const Launches& each) {
      return each.device == device && each.synchronizations == synchronizations &&
             std::any_of(each.heaps.begin(), each.heaps.end(),
                         [heap](const PoolHeap& of) { return of.heap == heap; });
    });
  }
  /// May launches use that address, for all that anybody knows?
  bool may_be_launched_at(DeviceId device, std::uint64_t address,
                          std::uint64_t synchronizations) const {
    return std::any_of(launches_.begin(), launches_.end(), [&](const Launches& each) {
      return each.device == device && each.synchronizations == synchronizations &&
             std::any_of(each.given.begin(), each.given.end(), [address](const Range& range) {
               return range.begin <= address && address < range.end;
             });
    });
  }
  /// The pool is released: its blocks have uses by their own streams.
  void note_own_uses(const Pool& pool) {
    for (const PoolHeap& each : pool.heaps) with_own_uses_.push_back(each.heap);
  }
  /// May a block of the heap have a use by its own stream?
  bool may_have_own_uses(std::uint64_t heap) const {
    return std::find(with_own_uses_.begin(), with_own_uses_.end(), heap) != with_own_uses_.end();
  }
  bool any_own_uses() const { return !with_own_uses_.empty(); }
  bool any() const { return !pools_.empty(); }

 private:
  /// The pool in use whose heap it is, or nullptr.
  const Pool* owner_of(std::uint64_t heap) const {
    const auto at = std::find_if(pools_.begin(), pools_.end(), [heap](const Pool& pool) {
      return std::any_of(pool.heaps.begin(), pool.heaps.end(),
                         [heap](const PoolHeap& each) { return each.heap == heap; });
    });
    return at == pools_.end() ? nullptr : &*at;
  }

  struct Launches {
    DeviceId device;
    std::vector<PoolHeap> heaps;
    std::vector<Range> given;
    std::uint64_t synchronizations;  ///< of the device, when its pool was released
  };

  std::uint64_t pools_made_ = 0;
  bool is_capturing_ = false;
  std::vector<Pool> pools_;
  std::vector<std::uint64_t> released_;  ///< heaps
  std::vector<std::uint64_t> with_own_uses_;
  std::vector<Launches> launches_;
  std::vector<Route> routes_;  ///< the innermost last
};

}  // namespace ashlar::spec
