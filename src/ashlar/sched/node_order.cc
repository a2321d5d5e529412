#include <ashlar/sched/node_order.h>

#include <functional>
#include <map>
#include <numeric>
#include <queue>

#include <ashlar/sched/node_placer.h>

namespace ashlar::inline v0::sched {
namespace {

using graph::Graph;
using graph::kNoTensor;
using graph::Tensor;
using graph::TensorId;

constexpr std::uint32_t kNoNode = 0xffffffffu;

/// Which nodes have to wait for which.
class NodeWaits {
 public:
  explicit NodeWaits(const Graph& graph)
      : graph_(graph),
        waits_(graph.nodes().size(), 0),
        waiting_(graph.nodes().size()),
        node_of_(graph.tensors().size(), kNoNode),
        last_writer_(graph.tensors().size(), kNoNode),
        readers_(graph.tensors().size()) {
    for (std::uint32_t n = 0; n < graph.nodes().size(); ++n) add_node(n);
  }

  /// How many nodes each node waits for, and which nodes wait for it.
  std::vector<std::uint32_t>& counts() { return waits_; }
  const std::vector<std::uint32_t>& waiting_for(std::uint32_t node) const { return waiting_[node]; }

 private:
  void wait(std::uint32_t node, std::uint32_t before) {
    if (before == kNoNode || before == node) return;
    waits_[node] += 1;
    waiting_[before].push_back(node);
  }

  void add_node(std::uint32_t n) {
    const TensorId id = graph_.nodes()[n];
    const Tensor& tensor = graph_[id];
    for (const TensorId source : graph_.sources(tensor)) {
      if (source == kNoTensor) continue;
      wait(n, node_of_[source.value()]);
      const std::uint32_t root = graph_[source].root.value();
      wait(n, last_writer_[root]);
      if (is_work(graph_, id)) readers_[root].push_back(n);
    }
    if (tensor.root != id) wait(n, node_of_[tensor.root.value()]);
    for_each_written_root(graph_, id, [&](TensorId root) { write(n, root); });
    node_of_[id.value()] = n;
  }

  /// The node writes the root: behind everything that has used it.
  void write(std::uint32_t n, TensorId root) {
    for (const std::uint32_t reader : readers_[root.value()]) wait(n, reader);
    wait(n, last_writer_[root.value()]);
    readers_[root.value()].clear();
    last_writer_[root.value()] = n;
  }

  const Graph& graph_;
  std::vector<std::uint32_t> waits_;
  std::vector<std::vector<std::uint32_t>> waiting_;
  std::vector<std::uint32_t> node_of_;               // by tensor
  std::vector<std::uint32_t> last_writer_;           // by root: a node
  std::vector<std::vector<std::uint32_t>> readers_;  // by root: since the last writer
};

std::uint32_t count_splits(const Graph& graph, std::span<const std::uint32_t> backend_of,
                           const std::vector<std::uint32_t>& order) {
  std::uint32_t splits = 0;
  std::uint32_t last = kNoBackend;
  for (const std::uint32_t n : order) {
    const TensorId node = graph.nodes()[n];
    if (!is_work(graph, node) || backend_of[node.value()] == last) continue;
    last = backend_of[node.value()];
    splits += 1;
  }
  return splits;
}

/// The nodes that wait for nothing more, by backend.
class ReadyNodes {
 public:
  using Lowest = std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>>;

  void add(std::uint32_t backend, std::uint32_t node) { nodes_[backend].push(node); }
  bool has(std::uint32_t backend) const { return nodes_.find(backend) != nodes_.end(); }
  /// The backend that has the lowest node. REQUIRES: there is a node.
  std::uint32_t backend_of_lowest() const {
    auto lowest = nodes_.begin();
    for (auto it = nodes_.begin(); it != nodes_.end(); ++it) {
      if (it->second.top() < lowest->second.top()) lowest = it;
    }
    return lowest->first;
  }
  /// The lowest node of that backend. REQUIRES: has(backend).
  std::uint32_t take(std::uint32_t backend) {
    const auto at = nodes_.find(backend);
    const std::uint32_t node = at->second.top();
    at->second.pop();
    if (at->second.empty()) nodes_.erase(at);
    return node;
  }

 private:
  std::map<std::uint32_t, Lowest> nodes_;  // without empty ones
};

}  // namespace

std::vector<std::uint32_t> order_nodes(const Graph& graph,
                                       std::span<const std::uint32_t> backend_of) {
  const auto count = static_cast<std::uint32_t>(graph.nodes().size());
  std::vector<std::uint32_t> given(count), order;
  std::iota(given.begin(), given.end(), 0);
  NodeWaits waits(graph);
  // A view or kControl belongs to no backend, and runs as soon as it can.
  constexpr std::uint32_t kNoWork = kNoBackend;
  ReadyNodes ready;
  std::uint32_t current = kNoWork;
  const auto add_if_ready = [&](std::uint32_t n) {
    if (waits.counts()[n] != 0) return;
    const TensorId node = graph.nodes()[n];
    ready.add(is_work(graph, node) ? backend_of[node.value()] : kNoWork, n);
  };
  for (std::uint32_t n = 0; n < count; ++n) add_if_ready(n);
  while (order.size() < count) {
    std::uint32_t from = ready.has(kNoWork) ? kNoWork : current;
    if (!ready.has(from)) from = ready.backend_of_lowest();
    const std::uint32_t next = ready.take(from);
    const TensorId node = graph.nodes()[next];
    if (is_work(graph, node)) current = backend_of[node.value()];
    order.push_back(next);
    for (const std::uint32_t other : waits.waiting_for(next)) {
      waits.counts()[other] -= 1;
      add_if_ready(other);
    }
  }
  return count_splits(graph, backend_of, order) < count_splits(graph, backend_of, given) ? order
                                                                                         : given;
}

}  // namespace ashlar::inline v0::sched
