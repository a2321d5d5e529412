// The functions of the ops about memory pools: a part of the table of cache_ops.h.
//
// Thread safety: none.
#pragma once

#include <array>

#include "spec/lockstep/cache_ops.h"
#include "spec/lockstep/cache_world.h"
#include "spec/ops/opcode_table.h"

namespace ashlar::spec {

void run_mempool_create(CacheWorld& world, const Op& op);
void run_mempool_begin(CacheWorld& world, const Op& op);
void run_mempool_end(CacheWorld& world, const Op& op);
void run_mempool_retain(CacheWorld& world, const Op& op);
void run_mempool_release(CacheWorld& world, const Op& op);
void run_mempool_replay(CacheWorld& world, const Op& op);
void run_mempool_launch(CacheWorld& world, const Op& op);
void run_mempool_launch_runs(CacheWorld& world, const Op& op);
void run_checkpoint(CacheWorld& world, const Op& op);
void run_restore(CacheWorld& world, const Op& op);

constexpr void add_memory_pool_ops(std::array<OpHandler, 256>& table) {
  table[slot::kMemoryPoolCreate].run = run_mempool_create;
  table[slot::kMemoryPoolBegin].run = run_mempool_begin;
  table[slot::kMemoryPoolEnd].run = run_mempool_end;
  table[slot::kMemoryPoolRetain].run = run_mempool_retain;
  table[slot::kMemoryPoolRelease].run = run_mempool_release;
  table[slot::kMemoryPoolReplay].run = run_mempool_replay;
  table[slot::kMemoryPoolLaunch].run = run_mempool_launch;
  table[slot::kMemoryPoolLaunchRuns].run = run_mempool_launch_runs;
  table[slot::kCheckpoint].run = run_checkpoint;
  table[slot::kRestore].run = run_restore;
}

}  // namespace ashlar::spec
