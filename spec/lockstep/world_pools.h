// WorldPools: the memory pools that a world's caller uses, and the graphs that it captured in them.
//
// The caller is lawful (C8): a graph is launched only while its pool has uses and is what it was when the
// graph was captured; two graphs of a pool never run at once; a graph is kept only if all that it touches
// is its pool's.
// Thread safety: none.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include <ashlar/base/memory_pool.h>

#include "spec/gpu/sim_gpu.h"

namespace ashlar::spec {

class WorldPools {
 public:
  static constexpr std::uint64_t kPoolsMax = 4;

  /// The pool of that name: as graphs' pools are called.
  static MemoryPoolId id_of(std::uint64_t name) { return {0, 1 + name % kPoolsMax}; }

  /// The pool as it is until it is released; 0: the device's own memory.
  GraphGroup group_of(DeviceId device, MemoryPoolId id) {
    if (id.is_default()) return 0;
    for (const Group& each : groups_) {
      if (each.device == device && each.id == id) return each.group;
    }
    groups_.push_back({device, id, ++groups_made_});
    return groups_made_;
  }

  /// Is it the group of a pool that has not been released?
  bool is_known(GraphGroup group) const {
    return std::any_of(groups_.begin(), groups_.end(),
                       [group](const Group& each) { return each.group == group; });
  }
  /// The graph touches memory of that group alone. Keeps it.
  void add_graph(GraphId graph, GraphGroup group) { graphs_.push_back({graph, group}); }
  /// The newest graph of the group.
  std::optional<GraphId> newest_graph(GraphGroup group) const {
    for (auto each = graphs_.rbegin(); each != graphs_.rend(); ++each) {
      if (each->group == group) return each->graph;
    }
    return std::nullopt;
  }
  /// May a graph of the group be launched on the stream: are earlier launches done, or before it?
  bool may_launch(const SimGpu& gpu, GraphGroup group, const Stream& stream) const {
    for (const Launch& last : launches_) {
      if (last.group == group && last.stream.id != stream.id && gpu.pending(last.stream) != 0)
        return false;
    }
    return true;
  }
  void note_launch(GraphGroup group, const Stream& stream) {
    std::erase_if(launches_, [group](const Launch& each) { return each.group == group; });
    launches_.push_back({group, stream});
  }
  /// The pool is about to be released; launches of its graphs may still run.
  void destroy_graphs(SimGpu& gpu, DeviceId device, MemoryPoolId id) {
    const GraphGroup group = group_of(device, id);
    for (const Graph& each : graphs_) {
      if (each.group == group) static_cast<void>(gpu.destroy_graph(each.graph));
    }
    std::erase_if(graphs_, [group](const Graph& each) { return each.group == group; });
  }
  /// The pool was released.
  void release(DeviceId device, MemoryPoolId id) {
    const GraphGroup group = group_of(device, id);
    std::erase_if(launches_, [group](const Launch& each) { return each.group == group; });
    std::erase_if(groups_, [group](const Group& each) { return each.group == group; });
  }

 private:
  struct Group {
    DeviceId device;
    MemoryPoolId id;
    GraphGroup group;
  };
  struct Graph {
    GraphId graph;
    GraphGroup group;
  };
  struct Launch {
    GraphGroup group;
    Stream stream;
  };

  GraphGroup groups_made_ = 0;
  std::vector<Group> groups_;
  std::vector<Graph> graphs_;     ///< the newest last
  std::vector<Launch> launches_;  ///< of each group the last
};

}  // namespace ashlar::spec
