// PoolAnswers: the part of CacheModel that judges calls about memory pools, and knows the pools.
//
// Thread safety: none.
#pragma once

#include "spec/model/cache_model.h"

namespace ashlar::spec {

class PoolAnswers {
 public:
  /// `model` must outlive this.
  explicit PoolAnswers(CacheModel& model) : model_(model) {}

  // After CacheModel::begin and the subject's call.
  void judge_create(DeviceId id, MemoryPoolId pool, const MemoryPoolOptions& options, Status got);
  /// `routed`: the stream whose allocations go to the pool.
  void judge_begin(DeviceId id, MemoryPoolId pool, const Stream& routed, Status got);
  void judge_end(DeviceId id, MemoryPoolId pool, Status got);
  void judge_retain(DeviceId id, MemoryPoolId pool, Status got);
  void judge_release(DeviceId id, MemoryPoolId pool, Status got);

  // Graphs, which the caller launches without a word to the subject.
  /// The capture of the stream has ended in that graph, and the subject is about to be told. `before_tag`: of
  /// the allocations before it began; `newest_tag`: of those so far.
  void note_graph(GraphId id, const Stream& stream, CapturedGraph contents,
                  AllocationTag before_tag, AllocationTag newest_tag);
  void drop_graph(GraphId id) { model_.state_.graphs.drop(id); }
  /// The graph is launched: C8, exactly, for these runs of its bodies and for others that its conditions permit.
  void judge_replay(GraphId id, BodyRuns runs) const;

  /// Where allocations on the stream come from.
  MemoryPoolId pool_of(const Stream& stream) const;
  bool is_routed(DeviceId device, MemoryPoolId id) const;
  /// The uses of the pool; 0: there is no such pool.
  std::uint64_t uses(DeviceId device, MemoryPoolId id) const;

 private:
  /// `bytes`: of each touch of the graph.
  void judge_run(const GraphBook::Graph& graph, const std::vector<std::vector<ByteRange>>& bytes,
                 BodyRuns runs) const;
  /// `refusal`: the answer that the call had to have, kOk if none. `events`: how many it may record. True
  /// if the call took effect.
  bool judge(DeviceId id, Status got, Code refusal, const char* what, std::uint64_t events = 0);
  /// The pool is released: what tells of the last work of its heaps?
  void end_heaps(const MemoryPoolBook::Pool& pool);

  CacheModel& model_;
};

}  // namespace ashlar::spec
