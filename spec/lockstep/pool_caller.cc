#include "spec/lockstep/pool_caller.h"

namespace ashlar::spec {

void PoolCaller::create(std::uint64_t name, DeviceId device, const MemoryPoolOptions& options) {
  const MemoryPoolId id = WorldPools::id_of(name);
  until_host_has_memory(world_.model(), [&] {
    world_.model().begin(device);
    const Status created = world_.answered(world_.subject().create_pool(device, id, options));
    answers_.judge_create(device, id, options, created);
    if (created.is_ok() && options.overflow) world_.pools_.forbid_graphs(device, id);
    return created.code();
  });
}

void PoolCaller::begin(std::uint64_t name, std::uint32_t s) {
  const Stream routed = world_.stream_at(s);
  until_host_has_memory(world_.model(), [&] {
    world_.model().begin(routed.device);
    const Status begun = world_.answered(
        world_.subject().begin_pool(routed.device, WorldPools::id_of(name),
                                    [routed](const Stream& each) { return each.id == routed.id; }));
    answers_.judge_begin(routed.device, WorldPools::id_of(name), routed, begun);
    return begun.code();
  });
}

void PoolCaller::end(std::uint64_t name, DeviceId device) {
  const MemoryPoolId id = WorldPools::id_of(name);
  world_.model().begin(device);
  answers_.judge_end(device, id, world_.answered(world_.subject().end_pool(device, id)));
}

void PoolCaller::retain(std::uint64_t name, DeviceId device) {
  const MemoryPoolId id = WorldPools::id_of(name);
  until_host_has_memory(world_.model(), [&] {
    world_.model().begin(device);
    const Status retained = world_.answered(world_.subject().retain_pool(device, id));
    answers_.judge_retain(device, id, retained);
    return retained.code();
  });
}

void PoolCaller::release(std::uint64_t name, DeviceId device) {
  const MemoryPoolId id = WorldPools::id_of(name);
  // A graph that is being captured in the pool keeps it.
  if (answers_.uses(device, id) == 1 && world_.any_capture()) return world_.skip();
  if (answers_.uses(device, id) == 1 && !answers_.is_routed(device, id)) {
    if (!wait_for_launches_elsewhere(device, id)) return world_.skip();
    destroy_graphs(device, id);
  }
  until_host_has_memory(world_.model(), [&] {
    world_.model().begin(device);
    const Status released = world_.answered(world_.subject().release_pool(device, id));
    answers_.judge_release(device, id, released);
    return released.code();
  });
  if (answers_.uses(device, id) == 0) world_.pools_.release(device, id);
}

bool PoolCaller::wait_for_launches_elsewhere(DeviceId device, MemoryPoolId id) {
  const Stream* const on = world_.pools_.last_launch(world_.pools_.group_of(device, id));
  if (on == nullptr || on->device == device || world_.gpu().pending(*on) == 0) return true;
  const CallerScope callers_own;
  const Status waited = world_.gpu().device(on->device).synchronize();
  return waited.is_ok() || waited.code() == Code::kDeviceLost;
}

void PoolCaller::destroy_graphs(DeviceId device, MemoryPoolId id) {
  for (const WorldPools::Graph& each : world_.pools_.take_graphs(device, id)) {
    static_cast<void>(world_.gpu().destroy_graph(each.graph));
    answers_.drop_graph(each.graph);
  }
}

void PoolCaller::keep_graph(GraphId graph, std::uint32_t s) {
  const std::vector<GraphGroup>& captured = world_.streams_[s].captured;
  if (!world_.pools_.may_capture(captured))
    return static_cast<void>(world_.gpu().destroy_graph(graph));
  world_.pools_.add_graph(graph, captured);
  answers_.note_graph(graph, world_.stream_at(s), world_.gpu().graph_contents(graph),
                      world_.streams_[s].before_tag, world_.next_tag_ - 1);
}

void PoolCaller::release_all() {
  for (std::uint32_t d = 0; d < world_.gpu().device_count(); ++d) {
    for (std::uint64_t name = 0; name < WorldPools::kPoolsMax; ++name) {
      const DeviceId device = device_id(d);
      if (answers_.is_routed(device, WorldPools::id_of(name))) end(name, device);
      // Once for each use: a release is skipped where the caller cannot wait for the pool's launches.
      for (std::uint64_t uses = answers_.uses(device, WorldPools::id_of(name));
           uses != 0 && world_.model().verdict().is_good(); --uses)
        release(name, device);
    }
  }
}

void PoolCaller::launch(std::uint64_t name, std::uint64_t n, std::uint32_t s, BodyRuns runs) {
  const Stream& on = world_.stream_at(s);
  const MemoryPoolId id = WorldPools::id_of(name);
  if (answers_.uses(on.device, id) == 0 || world_.any_capture()) return world_.skip();
  const GraphGroup group = world_.pools_.group_of(on.device, id);
  const WorldPools::Graph* const graph = world_.pools_.find_graph(group, n);
  if (graph == nullptr || !world_.pools_.may_launch(world_.gpu(), *graph, on)) return world_.skip();
  if (!world_.gpu().launch_graph(on, graph->graph, runs).is_ok()) return;
  world_.pools_.note_launch(*graph, on);
  answers_.judge_replay(graph->graph, runs);
}

}  // namespace ashlar::spec
