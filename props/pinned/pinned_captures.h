// PinnedCaptures: what PinnedWorld captures into graphs, the memory pools of those, and the check of C8.
//
// A pool keeps every range that was ever allocated from it: no other allocation may have a byte of one until the pool is
// released and the launches of its graphs are over. The graphs of a pool are launched on one stream, so never at the same
// time. Allocations come from the pool of the open capture where the program says so, as a filter by thread decides.
//
// Methods that act answer with a finding, or "". Thread safety: none.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include <ashlar/pinned/pinned_allocator.h>

#include "spec/gpu/sim_gpu.h"

namespace ashlar::props {

class PinnedCaptures {
 public:
  /// `forgets_pools`: a planted bug, pools that end with their captures.
  PinnedCaptures(spec::SimGpu& gpu, pinned::PinnedAllocator& allocator, bool forgets_pools)
      : gpu_(gpu), allocator_(allocator), forgets_pools_(forgets_pools) {}

  bool is_open() const { return open_ != nullptr; }
  /// Is no pool in use, and no launch of a released one to come?
  bool is_idle() const;
  /// The number of the pool that an allocation comes from now; 0 if from none.
  std::uint32_t routed() const { return is_routed_ && is_open() ? open_->number : 0; }
  /// Of the open capture; 0 if none is.
  std::uint32_t open_pool() const { return is_open() ? open_->number : 0; }
  bool is_capturing(const Stream& stream) const { return is_open() && stream_ == stream; }
  /// Is that pool released?
  bool is_released(std::uint32_t pool) const;
  /// Does the stream capture, or launch graphs?
  bool needs(const Stream& stream) const;

  /// Decides whether allocations until the next call come from the open capture's pool.
  void route(bool is_routed) { is_routed_ = is_routed; }
  /// Begins a capture of the stream. `shares`: in a pool that has graphs already, if there is one. With
  /// `may_fail` the allocator may refuse the announcement; then no capture is open.
  std::string begin(const Stream& stream, bool shares, bool may_fail);
  std::string end();
  /// Launches a graph of the n-th pool.
  std::string launch(std::uint64_t n);
  /// Releases the n-th pool, unless its capture is open.
  std::string release(std::uint64_t n, bool may_fail);
  /// Ends what is open and releases all pools.
  std::string release_all();
  /// Calls that are out of order, each with its error.
  std::string misuse() const;
  /// Judges an allocation, from the pool with that number or from none (0).
  std::string on_given(Address at, std::uint64_t size, std::uint32_t pool);

 private:
  struct Range {
    Address at;
    std::uint64_t size = 0;
  };
  struct Pool {
    std::uint32_t number = 0;
    Stream launches_on;
    std::vector<spec::GraphId> graphs;
    std::vector<Range> baked;
    std::shared_ptr<bool> is_over = std::make_shared<bool>(true);  ///< the last launch
    bool is_released = false;
  };
  static MemoryPoolId id_of(const Pool& pool) { return {pool.number, 0}; }
  bool is_guarded(const Pool& pool) const { return !pool.is_released || !*pool.is_over; }
  std::string release(Pool& pool, bool may_fail);
  /// The n-th pool that is not released; null if there is none.
  Pool* pool_at(std::uint64_t n);

  spec::SimGpu& gpu_;
  pinned::PinnedAllocator& allocator_;
  const bool forgets_pools_;
  std::deque<Pool>
      pools_;  ///< in use, and released ones whose launches are not over; their addresses stay
  Pool* open_ = nullptr;  ///< of the open capture
  Stream stream_;         ///< that captures
  bool is_routed_ = false;
  std::uint32_t numbered_ = 0;
};

}  // namespace ashlar::props
