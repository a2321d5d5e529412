// WorldPools: the memory pools that a world's caller uses, and the graphs that it captured in them.
//
// The caller is lawful (C8): a graph is launched only while its pool has uses and is what it was when the
// graphs were captured; two graphs that share a pool never run at once; launches on another device's
// streams are known to be done before the pool is released; a graph is kept only if all that
// it touches is of pools, none of which overflows, and it keeps all of them.
// Thread safety: none.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include <ashlar/base/memory_pool.h>

#include "spec/gpu/sim_gpu.h"
#include "spec/model/growth_source.h"

namespace ashlar::spec {

class WorldPools {
 public:
  static constexpr std::uint64_t kPoolsMax = 4;

  std::vector<GrowthSource*> sources;  ///< growth devices that pools may have, one for each device

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

  /// No graph may use the pool.
  void forbid_graphs(DeviceId device, MemoryPoolId id) {
    const GraphGroup group = group_of(device, id);
    for (Group& each : groups_) each.has_graphs = each.has_graphs && each.group != group;
  }
  /// May graphs use memory of those groups, and of no other: are they pools' that have not been released?
  bool may_capture(const std::vector<GraphGroup>& groups) const {
    return !groups.empty() && std::all_of(groups.begin(), groups.end(), [this](GraphGroup group) {
      return std::any_of(groups_.begin(), groups_.end(), [group](const Group& each) {
        return each.group == group && each.has_graphs;
      });
    });
  }
  struct Graph {
    GraphId graph;
    std::vector<GraphGroup> groups;

    bool uses(GraphGroup group) const {
      return std::find(groups.begin(), groups.end(), group) != groups.end();
    }
  };
  /// The graph touches memory of those groups alone. Keeps it.
  void add_graph(GraphId graph, const std::vector<GraphGroup>& groups) {
    graphs_.push_back({graph, groups});
  }
  /// Of the graphs that use the group the n-th newest, from 0, n modulo their number; nullptr if none does.
  const Graph* find_graph(GraphGroup group, std::uint64_t n) const {
    std::vector<const Graph*> found;
    for (auto each = graphs_.rbegin(); each != graphs_.rend(); ++each) {
      if (each->uses(group)) found.push_back(&*each);
    }
    return found.empty() ? nullptr : found[n % found.size()];
  }
  /// May the graph be launched on the stream: are launches with its groups done, or before it?
  bool may_launch(const SimGpu& gpu, const Graph& graph, const Stream& stream) const {
    for (const Launch& last : launches_) {
      if (graph.uses(last.group) && last.stream.id != stream.id && gpu.pending(last.stream) != 0)
        return false;
    }
    return true;
  }
  void note_launch(const Graph& graph, const Stream& stream) {
    std::erase_if(launches_, [&graph](const Launch& each) { return graph.uses(each.group); });
    for (const GraphGroup group : graph.groups) launches_.push_back({group, stream});
  }
  /// Where the last launch with the group went; nullptr if there is none.
  const Stream* last_launch(GraphGroup group) const {
    for (const Launch& each : launches_) {
      if (each.group == group) return &each.stream;
    }
    return nullptr;
  }
  /// Takes the graphs of the pool, which is about to be released, out of the list; launches may still run.
  std::vector<Graph> take_graphs(DeviceId device, MemoryPoolId id) {
    const GraphGroup group = group_of(device, id);
    std::vector<Graph> taken;
    for (const Graph& each : graphs_) {
      if (each.uses(group)) taken.push_back(each);
    }
    std::erase_if(graphs_, [group](const Graph& each) { return each.uses(group); });
    return taken;
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
    bool has_graphs = true;
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
