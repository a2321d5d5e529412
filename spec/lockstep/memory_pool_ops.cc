#include "spec/lockstep/memory_pool_ops.h"

#include "spec/lockstep/checkpoint_caller.h"
#include "spec/lockstep/pool_caller.h"

namespace ashlar::spec {

void run_mempool_create(CacheWorld& world, const Op& op) {
  if (!world.has_device(op.arg[1])) return world.skip();
  GrowthSource* const source = world.sources()[op.arg[1]];
  const MemoryPoolOptions options{.no_split = (op.arg[2] & 1) != 0,
                                  .overflow = (op.arg[2] & 2) != 0,
                                  .growth = (op.arg[2] & 4) != 0 ? source : nullptr};
  PoolCaller(world).create(op.arg[0], device_id(op.arg[1]), options);
}

void run_mempool_begin(CacheWorld& world, const Op& op) {
  const std::uint32_t s = world.stream(op.arg[1]);
  if (s == kNoStream) return world.skip();
  PoolCaller(world).begin(op.arg[0], s);
}

void run_mempool_end(CacheWorld& world, const Op& op) {
  if (!world.has_device(op.arg[1])) return world.skip();
  PoolCaller(world).end(op.arg[0], device_id(op.arg[1]));
}

void run_mempool_retain(CacheWorld& world, const Op& op) {
  if (!world.has_device(op.arg[1])) return world.skip();
  PoolCaller(world).retain(op.arg[0], device_id(op.arg[1]));
}

void run_mempool_release(CacheWorld& world, const Op& op) {
  if (!world.has_device(op.arg[1])) return world.skip();
  PoolCaller(world).release(op.arg[0], device_id(op.arg[1]));
}

void run_mempool_replay(CacheWorld& world, const Op& op) {
  const std::uint32_t s = stream_for_work(world, op.arg[1]);
  if (s == kNoStream) return world.skip();
  PoolCaller(world).launch(op.arg[0], 0, s, BodyRuns::once());
}

void run_mempool_launch(CacheWorld& world, const Op& op) {
  const std::uint32_t s = stream_for_work(world, op.arg[2]);
  if (s == kNoStream) return world.skip();
  PoolCaller(world).launch(op.arg[0], op.arg[1], s, BodyRuns::once());
}

void run_mempool_launch_runs(CacheWorld& world, const Op& op) {
  const std::uint32_t s = stream_for_work(world, op.arg[2]);
  if (s == kNoStream) return world.skip();
  PoolCaller(world).launch(op.arg[0], op.arg[1], s, BodyRuns(op.arg[3]));
}

void run_checkpoint(CacheWorld& world, const Op& op) {
  if (!world.has_device(op.arg[2])) return world.skip();
  CheckpointCaller(world).checkpoint(op.arg[0], op.arg[1], device_id(op.arg[2]));
}

void run_restore(CacheWorld& world, const Op& op) { CheckpointCaller(world).restore(op.arg[0]); }

}  // namespace ashlar::spec
