// CanaryGraphs: the memory pools of a canary world, and what is captured in them.
//
// Thread safety: one thread.
//
// One capture at a time, of a stream that a pool is routed to, and of those that join it. Its graph is launched as long as the pool
// has uses. What a launch overwrites lawfully (C8) holds no owner's words from then on.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "props/on_gpu/canary_world.h"

namespace ashlar::props {

class CanaryGraphs {
 public:
  explicit CanaryGraphs(CanaryWorld& world) : world_(world) {}
  ~CanaryGraphs();
  CanaryGraphs(const CanaryGraphs&) = delete;
  CanaryGraphs& operator=(const CanaryGraphs&) = delete;

  // Captures. Streams by index.
  /// The number of the capture that is open; 0: none.
  std::uint64_t open_capture() const { return origin_ == CanaryWorld::kNone ? 0 : captures_; }
  void begin(std::uint32_t stream, device::CaptureMode mode);
  /// The stream joins the capture, or its work comes behind that of the other from now on.
  void wait(std::uint32_t stream, std::uint32_t before);
  void end(std::uint32_t stream);
  /// A slot for a check that is being captured.
  std::optional<Canaries::Slot> slot_in_graph();

  // Memory pools, by the names of ops.
  void create(std::uint64_t name, std::uint64_t options);
  void route(std::uint64_t name, std::uint32_t stream);
  void end_route(std::uint64_t name);
  void retain(std::uint64_t name);
  void release(std::uint64_t name);
  void launch(std::uint64_t name, std::uint64_t n, std::uint32_t stream);
  /// Ends what is open, and all pools.
  void release_all();
  /// Graphs that are not launched any more end when nothing runs.
  void destroy_dropped();

  /// Of the memory pool that an allocation on the stream comes from; 0: none.
  spec::GraphGroup group_of(std::uint32_t stream) const;
  /// The stream's work comes behind the last launch that used the group's memory.
  void order_behind_launch(spec::GraphGroup group, std::uint32_t stream);

 private:
  static constexpr std::uint64_t kPools = 4;
  struct Graph {
    cuda::GraphExec graph = nullptr;
    std::uint64_t capture = 0;
    spec::GraphGroup group = 0;
    bool is_of_many =
        false;  ///< of several pools: nobody here keeps all of them for it, so it is not launched
    std::vector<CanaryBlock> made;           ///< whose bytes it writes
    std::vector<std::uint64_t> live_at_end;  ///< owners whose bytes it must not write
    std::vector<Canaries::Slot> slots;
  };
  struct Pool {
    std::uint64_t uses = 0;
    spec::GraphGroup group = 0;
    std::uint32_t routed = CanaryWorld::kNone;
    std::uint64_t routed_at = 0;
    bool may_have_graphs = true;
    std::vector<Graph> graphs;
  };

  static MemoryPoolId id_of(std::uint64_t name) { return {0, 1 + name % kPools}; }
  Pool& pool(std::uint64_t name) { return pools_[name % kPools]; }
  /// Of those that are routed to the stream, the one begun last.
  const Pool* routed_to(std::uint32_t stream) const;
  void count_use(Pool& pool);
  Graph take_captured(cuda::GraphExec graph);
  void note_launch(const Graph& graph);

  CanaryWorld& world_;
  Pool pools_[kPools];
  std::uint64_t groups_ = 0;  ///< so far
  std::uint64_t routes_ = 0;
  std::uint64_t captures_ = 0;
  std::uint32_t origin_ = CanaryWorld::kNone;
  std::vector<std::uint32_t> members_;  ///< of the open capture, beside its origin
  std::vector<Canaries::Slot> slots_;   ///< of the open capture
  std::vector<Graph> dropped_;
  std::map<spec::GraphGroup, EventHandle> launched_;  ///< behind the last launch of each group
};

}  // namespace ashlar::props
