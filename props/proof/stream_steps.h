// StreamSteps: runs ops on the caching allocator in lockstep with its C++ model, and prints each op
// as steps of the Dafny worlds.
//
// Purpose: the C++ model is a relation: it judges the allocator's choices. The Dafny model is a
// function of steps that name the choice. So the steps are derived from what the allocator did:
// which block was handed out or settled, which segments were added, removed or changed heaps (from
// the judged snapshots before and after the op), which events were recorded and waited for
// (OrderLog).
// Thread safety: none.
//
// How the differences between the two are bridged:
//   - A stream has a small and a large pool; a Dafny heap is one pool. So there are two worlds, one
//     for each. An event or a wait is a step in both; a kernel is a step in the world whose memory
//     it touches. Each world counts only its own works.
//   - The C++ model judges rounding, size classes and whether a block is split (DEV-1, 2, 4). A
//     request is printed with the rounded size, and as one that splits if its block was split. No
//     size is too large (max_split_size is not set).
//   - Of equal blocks the Dafny model takes the lowest address, the allocator the lowest (segment
//     ordinal, offset). So the machine gives every segment a range above all before (C10).
//   - From another stream's heap the allocator lends the best fit among the blocks it knows to be
//     complete; the Dafny model accepts any complete block that fits.
//   - A stamp is a position on the heap's stream in Dafny, and an epoch in the allocator; no C++
//     model has either. StreamWorld keeps the position.
//   - Work that the machine finishes during a call is printed before the allocator's steps in that
//     call. In half of the worlds the machine moves only when told or waited for, so only a call
//     that waits sees work finish.
// Left out, as in the Dafny model: retired streams, captures, failing devices, callbacks, a second
// device, threads.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "props/proof/order_log.h"
#include "props/proof/stream_world.h"
#include "spec/lockstep/cache_lockstep.h"

namespace ashlar::props {

class StreamSteps {
 public:
  /// A live allocation of the ops.
  struct Pointer {
    std::uint64_t name;
    std::uint64_t address;
    std::uint32_t stream;
    PoolId pool;
  };

  /// A fresh machine with streams s0, s1, ...; the configuration, the capacity in bytes and the
  /// adversary's seed as in ops.
  StreamSteps(const std::string& conf, std::uint64_t capacity, std::uint64_t seed,
              std::uint32_t streams);

  /// Runs the op and prints its steps. A divergence of the lockstep, a caller's fault or a skipped
  /// op ends the process.
  void run(const spec::Op& op, spec::Random& probes);
  /// Frees, drains, trims and checks everything. Prints no step of it.
  void finish();

  const std::vector<Pointer>& live() const { return live_; }
  std::uint32_t streams() const { return static_cast<std::uint32_t>(streams_.size()); }
  /// May the caller launch a kernel on that stream that touches it (C6, the caller's side)?
  bool may_use(const Pointer& pointer, std::uint32_t stream) const {
    const StreamWorld& world = worlds_[static_cast<unsigned>(pointer.pool)];
    return world.may_use(world.held(pointer.address), stream);
  }

 private:
  /// Events by name or handle, with their numbers in the worlds.
  using Events = std::vector<std::pair<std::uint64_t, std::uint64_t>>;
  static constexpr std::uint32_t kNobody = 0xffffffffu;

  void tell(const spec::Op& op);
  void tell_progress(std::uint32_t launching);
  void tell_free(const spec::Op& op);
  void tell_settled();
  void tell_calls();
  void tell_adopted();
  void tell_allocated(const spec::Op& op);
  void tell_record(std::uint32_t stream, Events* events, std::uint64_t event);
  void tell_wait(std::uint32_t stream, const Events& events, std::uint64_t event);
  void tell_kernel(const Pointer& pointer, std::uint32_t stream);
  void count_pending();

  const spec::CacheModel& model() { return *lockstep_->model(); }
  StreamWorld& world_of(PoolId pool) { return worlds_[static_cast<unsigned>(pool)]; }
  std::uint32_t heap_of(const cache::SnapshotSegment& segment) const;
  std::uint32_t stream_of(StreamHandle handle) const;
  const Pointer& pointer(std::uint64_t name) const;

  std::shared_ptr<OrderLog> log_;
  std::unique_ptr<spec::CacheLockstep> lockstep_;
  std::vector<std::uint64_t> streams_;  ///< identities
  std::vector<StreamHandle> handles_;
  std::vector<StreamWorld> worlds_;  ///< of the small pools, of the large ones
  /// of each stream, for each of its kernels: the pool of the block it touches
  std::vector<std::vector<PoolId>> works_;
  std::vector<std::size_t> works_done_;     ///< of them, those told as finished
  std::vector<std::size_t> works_pending_;  ///< kernels in each stream's queue after the op
  std::vector<Pointer> live_;
  std::vector<cache::SnapshotSegment> before_;  ///< the segments before the op
  std::vector<std::uint64_t> queues_;
  Events events_;       ///< the allocator's, by handle
  Events user_events_;  ///< the caller's, by name
  std::uint64_t next_event_ = 0;
  std::uint64_t last_tag_ = 0;
};

}  // namespace ashlar::props
