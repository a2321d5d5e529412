#include "spec/lockstep/checkpoint_caller.h"

#include <algorithm>
#include <utility>

namespace ashlar::spec {

void CheckpointCaller::checkpoint(std::uint64_t name, std::uint64_t pool, DeviceId device) {
  const MemoryPoolId id = WorldPools::id_of(pool);
  CacheWorld::Checkpoint& into = world_.checkpoints_[name];
  until_host_has_memory(world_.model(), [&] {
    world_.model().begin(device);
    Result<cache::PoolCheckpoint> made = world_.subject().checkpoint_pool(device, id);
    const Status answer = world_.answered(made.status());
    answers_.judge_checkpoint(device, id, made, &into.saved);
    if (!answer.is_ok() || !world_.model().verdict().is_good()) return answer.code();
    into.pointers.clear();
    for (const auto& [address, block] : into.saved.blocks)
      into.pointers.push_back(world_.checkpoints_.issued[block.tag]);
    into.subjects = std::move(made).value();
    return answer.code();
  });
}

void CheckpointCaller::restore(std::uint64_t name) {
  const CacheWorld::Checkpoint& then = world_.checkpoints_[name];
  if (then.saved.serial == 0) return world_.skip();
  const DeviceId device = then.saved.device;
  announce_all(world_.pools_.group_of(device, then.saved.pool));
  if (!world_.model().verdict().is_good()) return;
  const AllocationTag first_tag = world_.next_tag_;
  cache::RestoredPool changed;
  until_host_has_memory(world_.model(), [&] {
    world_.model().begin(device);
    const Status restored = world_.answered(world_.subject().restore_pool(then.subjects, &changed));
    if (restored.is_ok()) end_pointers(device, changed);
    answers_.judge_restore(then.saved, restored, changed, first_tag);
    if (restored.is_ok() && world_.model().verdict().is_good()) bind_pointers(then, first_tag);
    return restored.code();
  });
}

void CheckpointCaller::announce_all(GraphGroup group) {
  const auto is_of_group = [&](const CacheWorld::Unannounced& use) {
    const CacheWorld::Pointer& pointer = world_.pointers_[use.pointer];
    return pointer.state == CacheWorld::Pointer::kLive && pointer.group == group;
  };
  for (const CacheWorld::Unannounced& use : take_if(world_.unannounced_, is_of_group))
    world_.announce(world_.pointers_[use.pointer], use.stream);
}

void CheckpointCaller::end_pointers(DeviceId device, const cache::RestoredPool& changed) {
  for (const Address each : changed.freed) {
    const OwnedBlock* const block = world_.model().find_live(device, each.value());
    if (block == nullptr) continue;  // the model says so
    world_.gpu().on_free(block->tag);
    CacheWorld::Pointer& pointer = world_.pointers_[world_.checkpoints_.issued[block->tag].name];
    if (pointer.state == CacheWorld::Pointer::kLive && pointer.tag == block->tag)
      pointer.state = CacheWorld::Pointer::kFreed;
  }
}

void CheckpointCaller::bind_pointers(const CacheWorld::Checkpoint& then, AllocationTag first_tag) {
  const GraphGroup group = world_.pools_.group_of(then.saved.device, then.saved.pool);
  for (std::size_t i = 0; i < then.pointers.size(); ++i) {
    const auto& [address, block] = then.saved.blocks[i];
    CacheWorld::Issued issued = then.pointers[i];
    // Whose it is now: perhaps another stream's.
    const OwnedBlock& now = *world_.model().find_live(then.saved.device, address);
    for (std::uint32_t s = 0; s < world_.streams_.size(); ++s) {
      const Stream& each = world_.stream_at(s);
      if (each.id.value() == now.stream && each.device == then.saved.device) issued.stream = s;
    }
    const AllocationTag tag = first_tag + i;
    const Stream& stream = world_.stream_at(issued.stream);
    world_.gpu().on_allocate(tag, Address{address}, Bytes{block.size}, stream, group);
    world_.checkpoints_.issued[tag] = issued;
    CacheWorld::Pointer& pointer = world_.pointers_[issued.name];
    if (pointer.state == CacheWorld::Pointer::kLive) continue;
    pointer = {CacheWorld::Pointer::kLive, issued.stream, address, block.size, tag, group};
    const bool is_alive = world_.streams_[issued.stream].is_alive;
    if (world_.habits_.touches && is_alive && may_enqueue(world_.gpu(), stream))
      world_.launch(issued.stream, issued.name, Access::kWrite);
  }
  world_.next_tag_ = first_tag + then.pointers.size();
}

}  // namespace ashlar::spec
