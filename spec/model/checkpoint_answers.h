// CheckpointAnswers: the part of CacheModel that judges checkpoints of memory pools and the returns to
// them (C11, row DEV-9).
//
// The model keeps what was live at a checkpoint. All other bytes of the pool were free, so that this
// determines the whole map, which the walk after a return demands.
// Thread safety: none.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include <ashlar/cache/pool_checkpoint.h>

#include "spec/model/cache_model.h"

namespace ashlar::spec {

/// What a pool's live allocations were.
struct SavedPool {
  DeviceId device;
  MemoryPoolId pool;
  std::uint64_t serial = 0;  ///< MemoryPoolBook::Pool::serial; 0: nothing is saved
  std::vector<std::pair<std::uint64_t, OwnedBlock>> blocks;  ///< by address
};

class CheckpointAnswers {
 public:
  /// `model` must outlive this.
  explicit CheckpointAnswers(CacheModel& model) : model_(model) {}

  // After CacheModel::begin and the subject's call.
  /// If it took effect, `*saved` is the pool's state.
  void judge_checkpoint(DeviceId id, MemoryPoolId pool, const Result<cache::PoolCheckpoint>& got,
                        SavedPool* saved);
  /// The blocks of `saved` have new tags, from `first_tag` on, if it took effect.
  void judge_restore(const SavedPool& saved, Status got, const cache::RestoredPool& changed,
                     std::uint64_t first_tag);

 private:
  /// The segments of the pool, as the subject says now.
  struct PoolSegments {
    std::vector<cache::SnapshotSegment> segments;  ///< by address
    bool has_pending = false;
  };
  PoolSegments map_of(DeviceId id, const MemoryPoolBook::Pool& pool);
  /// The pool's blocks in the books, by address: live ones, or pending ones.
  static std::vector<std::uint64_t> owned_in(const JudgedDevice& device, const PoolSegments& map,
                                             bool is_pending);
  /// Does a live block of the pool have a use that must be known? `may`: or that may be.
  bool has_uses(const JudgedDevice& device, const PoolSegments& map, bool may) const;
  /// A restore that was not to be refused by what it named.
  void judge_answer(JudgedDevice& device, const PoolSegments& map, Status got);
  void follow_restore(JudgedDevice& device, const PoolSegments& map, const SavedPool& saved,
                      const cache::RestoredPool& changed, std::uint64_t first_tag);

  CacheModel& model_;
};

}  // namespace ashlar::spec
