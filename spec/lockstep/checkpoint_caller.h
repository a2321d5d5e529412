// CheckpointCaller: the part of a world's caller that keeps checkpoints of memory pools and returns to
// them.
//
// The caller is lawful (C11): before it returns to a checkpoint, it tells the subject of every use of
// the pool's memory by other streams.
// Thread safety: none.
#pragma once

#include "spec/lockstep/cache_world.h"
#include "spec/model/checkpoint_answers.h"

namespace ashlar::spec {

class CheckpointCaller {
 public:
  /// `world` must outlive this.
  explicit CheckpointCaller(CacheWorld& world) : world_(world), answers_(world.model()) {}

  void checkpoint(std::uint64_t name, std::uint64_t pool, DeviceId device);
  void restore(std::uint64_t name);

 private:
  void announce_all(GraphGroup group);
  /// What the subject says it ended; before the model follows.
  void end_pointers(DeviceId device, const cache::RestoredPool& changed);
  /// What was live then; a name that is bound to another allocation by now stays with that.
  void bind_pointers(const CacheWorld::Checkpoint& then, AllocationTag first_tag);

  CacheWorld& world_;
  CheckpointAnswers answers_;
};

}  // namespace ashlar::spec
