#include <ashlar/graph/lifetimes.h>

#include <algorithm>
#include <utility>

namespace ashlar::inline v0::graph {
namespace {

/// How a root is used.
struct RootUses {
  std::uint32_t begin = 0;
  std::uint32_t last = 0;       ///< the last step that uses it
  std::uint32_t last_user = 0;  ///< the position of a node that uses it in that step, plus one
  bool has_one_user = false;    ///< that node is the only one in that step
  bool is_kept = false;         ///< until the end
};

/// The step to which a use by a node lasts: its own, or the end of the outermost loop around it that
/// does not contain the node that computes what it uses (rule 3).
class LoopEnds {
 public:
  LoopEnds(const Graph& graph, const Steps& steps) : graph_(graph), steps_(steps) {
    if (graph.regions().empty()) return;
    innermost_.assign(graph.nodes().size(), kNoRegion);
    for (std::uint32_t r = 0; r < graph.regions().size(); ++r) {  // inner ones come later
      const Region& region = graph.regions()[r];
      for (std::uint32_t n = region.nodes_begin; n < region.nodes_end; ++n) innermost_[n] = r;
    }
  }

  /// The last step of a use, and whether the same node uses the value again in a later run of the body.
  struct Reach {
    std::uint32_t last;
    bool is_repeated;
  };

  /// `computed` is the position of the node that computes the value; kNoNode for a leaf.
  Reach reach_of(std::uint32_t user, std::uint32_t computed) const {
    Reach reach{steps_.of_node[user], false};
    if (innermost_.empty()) return reach;
    for (std::uint32_t r = innermost_[user]; r != kNoRegion; r = graph_.regions()[r].parent) {
      const Region& region = graph_.regions()[r];
      const bool is_inside =
          computed != kNoNode && computed >= region.nodes_begin && computed < region.nodes_end;
      if (is_inside) break;
      if (region.kind == RegionKind::kLoop) reach = {steps_.of_node[region.nodes_end - 1], true};
    }
    return reach;
  }
  static constexpr std::uint32_t kNoNode = 0xffffffffu;

 private:
  const Graph& graph_;
  const Steps& steps_;
  std::vector<std::uint32_t> innermost_;  // by node; empty without regions
};

/// The uses of every root, by tensor.
class UseCounter {
 public:
  UseCounter(const Graph& graph, const Steps& steps)
      : graph_(graph),
        steps_(steps),
        loops_(graph, steps),
        uses_(graph.tensors().size()),
        node_of_(graph.tensors().size(), LoopEnds::kNoNode),
        is_read_(graph.tensors().size(), false) {}

  std::vector<RootUses> count(std::span<const ExtraUse> extra) {
    for (std::uint32_t n = 0; n < graph_.nodes().size(); ++n) count_node(n);
    for (const ExtraUse& more : extra) use_too(graph_[more.tensor].root, more.node);
    for (std::uint32_t t = 0; t < graph_.tensors().size(); ++t) {
      const Tensor& tensor = graph_.tensors()[t];
      if ((tensor.flags & (kOutput | kParameter)) != 0 || !is_read_[t])
        uses_[tensor.root.value()].is_kept = true;
    }
    return std::move(uses_);
  }

 private:
  void count_node(std::uint32_t n) {
    const TensorId id = graph_.nodes()[n];
    const Tensor& tensor = graph_[id];
    node_of_[id.value()] = n;
    const std::uint32_t step = steps_.of_node[n];
    if (tensor.root == id) {
      const bool is_set_before = (tensor.flags & (kInput | kParameter)) != 0;
      uses_[id.value()].begin = is_set_before ? 0 : step;
      uses_[id.value()].last = step;
    }
    for (const TensorId source : graph_.sources(tensor)) {
      if (source == kNoTensor) continue;
      is_read_[source.value()] = true;
      use(graph_[source].root, n);
    }
    if (traits_of(tensor.operation).is_writer && tensor.root != id) use(tensor.root, n);
  }

  /// A further use: before the root's own node its memory is in use already, and in its last step no node may
  /// write over it, not the node itself either, whose further use may be of any part.
  void use_too(TensorId root, std::uint32_t n) {
    use(root, n);
    RootUses& uses = uses_[root.value()];
    uses.begin = std::min(uses.begin, steps_.of_node[n]);
    if (loops_.reach_of(n, node_of_[root.value()]).last == uses.last) uses.has_one_user = false;
  }

  void use(TensorId root, std::uint32_t n) {
    RootUses& uses = uses_[root.value()];
    const LoopEnds::Reach reach = loops_.reach_of(n, node_of_[root.value()]);
    if (reach.last < uses.last) return;
    if (reach.last > uses.last || uses.last_user == 0) {
      uses.last = reach.last;
      uses.has_one_user = !reach.is_repeated;
    } else if (uses.last_user != n + 1 || reach.is_repeated) {
      uses.has_one_user = false;
    }
    uses.last_user = n + 1;
  }

  const Graph& graph_;
  const Steps& steps_;
  const LoopEnds loops_;
  std::vector<RootUses> uses_;
  std::vector<std::uint32_t> node_of_;
  std::vector<bool> is_read_;
};

/// The source's root that the node may write over; kNoTensor if there is none (rule 4).
TensorId root_to_take_over(const Graph& graph, TensorId id, std::uint32_t step,
                           const std::vector<RootUses>& uses, std::span<const Bytes> padded,
                           std::span<const std::uint16_t> type_of) {
  const Tensor& tensor = graph[id];
  std::uint32_t rest = tensor.in_place_sources;
  for (std::uint32_t k = 0; rest != 0; ++k, rest >>= 1) {
    if ((rest & 1) == 0) continue;
    const TensorId root = graph[graph.sources(tensor)[k]].root;
    const RootUses& over = uses[root.value()];
    if (over.is_kept) continue;
    if (over.last != step || !over.has_one_user) continue;
    if (padded[root.value()] == kNeverInPlace || padded[id.value()] > padded[root.value()])
      continue;
    if (!type_of.empty() && type_of[id.value()] != type_of[root.value()]) continue;
    return root;
  }
  return kNoTensor;
}

/// Whether the order of nodes keeps what writes a root in the graph's order with everything else that uses it.
/// `place_of` is by position in Graph::nodes().
class WriteOrder {
 public:
  WriteOrder(const Graph& graph, std::span<const std::uint32_t> place_of)
      : graph_(graph), place_of_(place_of), roots_(graph.tensors().size()) {}

  bool is_kept() {
    for (std::uint32_t n = 0; n < graph_.nodes().size(); ++n) {
      const TensorId node = graph_.nodes()[n];
      if (!is_work(graph_, node)) continue;
      bool is_behind = true;
      for (const TensorId source : graph_.sources(graph_[node])) {
        if (source == kNoTensor) continue;
        Places& root = roots_[graph_[source].root.value()];
        is_behind = is_behind && place_of_[n] + 1 > root.written;
        root.used = std::max(root.used, place_of_[n] + 1);
      }
      const auto write = [&](TensorId written) {
        Places& root = roots_[written.value()];
        is_behind = is_behind && place_of_[n] + 1 >= std::max(root.written, root.used);
        root.written = root.used = place_of_[n] + 1;
      };
      if (graph_[node].root == node) write(node);
      for_each_written_root(graph_, node, write);
      if (!is_behind) return false;
    }
    return true;
  }

 private:
  /// The last place in the order at which the root was written and used so far, plus one.
  struct Places {
    std::uint32_t written = 0;
    std::uint32_t used = 0;
  };

  const Graph& graph_;
  const std::span<const std::uint32_t> place_of_;
  std::vector<Places> roots_;  // by tensor
};

}  // namespace

Result<Steps> steps_of(const Graph& graph, std::span<const std::uint32_t> order) {
  Steps steps;
  const auto nodes = static_cast<std::uint32_t>(graph.nodes().size());
  steps.of_node.resize(nodes);
  if (order.empty()) {
    for (std::uint32_t n = 0; n < nodes; ++n) steps.of_node[n] = n;
    steps.count = nodes;
    return steps;
  }
  if (!graph.regions().empty())
    return {Code::kInvalidArgument, "a parse order for a graph with regions"};
  constexpr std::uint32_t kUnseen = 0xffffffffu;
  steps.of_node.assign(nodes, kUnseen);
  std::vector<std::uint32_t> place_of(nodes);
  std::uint32_t step = 0, seen = 0;
  std::vector<bool> is_computed(graph.tensors().size(), true);
  for (const TensorId node : graph.nodes()) is_computed[node.value()] = false;
  for (const std::uint32_t n : order) {
    if (n == kBarrier) {
      step += 1;
      continue;
    }
    if (n >= nodes || steps.of_node[n] != kUnseen)
      return {Code::kInvalidArgument, "a parse order that does not have each node once"};
    const Tensor& tensor = graph[graph.nodes()[n]];
    for (const TensorId source : graph.sources(tensor)) {
      if (source != kNoTensor && !is_computed[source.value()])
        return {Code::kInvalidArgument, "a parse order with a node before a source of it"};
    }
    is_computed[graph.nodes()[n].value()] = true;
    steps.of_node[n] = step;
    place_of[n] = seen++;
  }
  if (seen != nodes)
    return {Code::kInvalidArgument, "a parse order that does not have each node once"};
  if (!WriteOrder(graph, place_of).is_kept())
    return {Code::kInvalidArgument, "a parse order that moves a node past a write of what it uses"};
  steps.count = step + 1;
  return steps;
}

std::vector<RootLife> lifetimes_of(const Graph& graph, const Steps& steps,
                                   std::span<const Bytes> padded, const MemoryRequest& request) {
  const std::vector<RootUses> uses = UseCounter(graph, steps).count(request.uses);
  std::vector<RootLife> lives(graph.tensors().size());
  const std::uint32_t end = std::max(steps.count, 1u);
  for (std::uint32_t t = 0; t < lives.size(); ++t) {
    const Tensor& tensor = graph.tensors()[t];
    if (tensor.root.value() != t || (tensor.flags & kExternal) != 0) continue;
    lives[t].begin = uses[t].begin;
    lives[t].end = uses[t].is_kept ? end : uses[t].last + 1;
  }
  for (std::uint32_t n = 0; n < graph.nodes().size(); ++n) {
    const TensorId id = graph.nodes()[n];
    const Tensor& tensor = graph[id];
    if (tensor.in_place_sources == 0 || padded[id.value()] == kNeverInPlace) continue;
    if ((tensor.flags & (kInput | kParameter | kExternal)) != 0) continue;
    if (uses[id.value()].begin != steps.of_node[n]) continue;  // used before it is computed
    lives[id.value()].takes_over =
        root_to_take_over(graph, id, steps.of_node[n], uses, padded, request.types);
  }
  return lives;
}

}  // namespace ashlar::inline v0::graph
