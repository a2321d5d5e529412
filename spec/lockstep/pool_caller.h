// PoolCaller: the part of a world's caller that uses memory pools. Each pool goes by its name; see
// opcode_table.h.
//
// Thread safety: none.
#pragma once

#include "spec/lockstep/cache_world.h"
#include "spec/model/pool_answers.h"

namespace ashlar::spec {

class PoolCaller {
 public:
  /// `world` must outlive this.
  explicit PoolCaller(CacheWorld& world) : world_(world), answers_(world.model()) {}

  void create(std::uint64_t name, DeviceId device, const MemoryPoolOptions& options);
  void begin(std::uint64_t name, std::uint32_t stream);
  void end(std::uint64_t name, DeviceId device);
  void retain(std::uint64_t name, DeviceId device);
  void release(std::uint64_t name, DeviceId device);
  /// Launches the n-th newest graph (WorldPools::find_graph).
  void launch(std::uint64_t name, std::uint64_t n, std::uint32_t stream, BodyRuns runs);
  /// The stream's capture has ended in that graph: destroys it where it may not be launched.
  void keep_graph(GraphId graph, std::uint32_t stream);
  /// Ends every pool.
  void release_all();

 private:
  /// Before the pool's end: the allocator waits for the pool's own device alone. False if the launches may
  /// still run.
  bool wait_for_launches_elsewhere(DeviceId device, MemoryPoolId id);
  void destroy_graphs(DeviceId device, MemoryPoolId id);

  CacheWorld& world_;
  PoolAnswers answers_;
};

}  // namespace ashlar::spec
