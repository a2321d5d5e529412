#include "spec/graph/memory_judge.h"

#include <algorithm>

namespace ashlar::spec {
namespace {

using graph::Graph;
using graph::kBarrier;
using graph::kNoTensor;
using graph::Operation;
using graph::Region;
using graph::RegionKind;
using graph::Tensor;
using graph::TensorId;

constexpr std::uint32_t kNever = 0xffffffffu;

/// Computes each element from the elements at the same place of its sources.
bool is_elementwise(Operation operation) {
  switch (operation) {
    case Operation::kAdd:
    case Operation::kSub:
    case Operation::kMul:
    case Operation::kDiv:
    case Operation::kScale:
    case Operation::kSqr:
    case Operation::kSqrt:
    case Operation::kLog:
    case Operation::kExp:
    case Operation::kNeg:
    case Operation::kStep:
    case Operation::kRelu:
    case Operation::kGelu:
    case Operation::kSilu:
    case Operation::kTanh:
    case Operation::kSigmoid: return true;
    default: return false;
  }
}

/// Reads each row of its first source before it writes that row.
bool is_row_wise(Operation operation) {
  switch (operation) {
    case Operation::kNorm:
    case Operation::kRmsNorm:
    case Operation::kSoftMax:
    case Operation::kRope:
    case Operation::kDiagMaskInf: return true;
    default: return false;
  }
}

bool writes_a_view(Operation operation) {
  return operation == Operation::kCpy || operation == Operation::kSetRows ||
         operation == Operation::kOptStepAdamw;
}

/// What each root is used by, worked out tensor by tensor.
class RootUsers {
 public:
  RootUsers(const Graph& graph, const graph::MemoryRequest& request)
      : graph_(graph), request_(request), node_of_(graph.tensors().size(), kNever) {
    step_of_.assign(graph.nodes().size(), 0);
    std::uint32_t step = 0;
    if (request.order.empty()) {
      for (std::uint32_t n = 0; n < step_of_.size(); ++n) step_of_[n] = n;
      step = step_of_.empty() ? 0 : static_cast<std::uint32_t>(step_of_.size()) - 1;
    }
    for (const std::uint32_t n : request.order) {
      if (n == kBarrier) {
        step += 1;
      } else {
        step_of_[n] = step;
      }
    }
    last_step_ = step;
    for (std::uint32_t n = 0; n < step_of_.size(); ++n) node_of_[graph.nodes()[n].value()] = n;
    note_users();
  }

  std::uint32_t last_step() const { return last_step_; }
  std::uint32_t node_of(TensorId tensor) const { return node_of_[tensor.value()]; }
  std::uint32_t step_of(std::uint32_t node) const { return step_of_[node]; }

  /// The step from which the root's bytes are its own.
  std::uint32_t first(TensorId root) const {
    const bool is_set_before = (graph_[root].flags & (graph::kInput | graph::kParameter)) != 0;
    if (is_set_before || node_of(root) == kNever) return 0;
    std::uint32_t first = step_of_[node_of(root)];
    for (const graph::ExtraUse& use : request_.uses) {
      if (graph_[use.tensor].root == root) first = std::min(first, step_of_[use.node]);
    }
    return first;
  }

  /// Whether the node uses the root besides its sources: any part of it, at any time.
  bool uses_further(std::uint32_t node, TensorId root) const {
    return std::any_of(request_.uses.begin(), request_.uses.end(), [&](graph::ExtraUse use) {
      return use.node == node && graph_[use.tensor].root == root;
    });
  }

  /// The last step in which the node's use of the root can happen: a loop around the node, but not
  /// around what computes the root, repeats it.
  std::uint32_t last_of_use(std::uint32_t node, TensorId root) const {
    std::uint32_t last = step_of_[node];
    for (const Region& region : graph_.regions()) {
      if (repeats(region, node, root)) last = std::max(last, step_of_[region.nodes_end - 1]);
    }
    return last;
  }

  /// Whether the node uses the root in a loop that does not compute it: then it does so again.
  bool is_repeated(std::uint32_t node, TensorId root) const {
    return std::any_of(graph_.regions().begin(), graph_.regions().end(),
                       [&](const Region& region) { return repeats(region, node, root); });
  }

  /// Whether somebody outside the graph may read it after the run, or nobody reads it inside.
  bool is_kept(TensorId root) const { return is_kept_[root.value()]; }

  /// The nodes that use the root, in any order.
  std::span<const std::uint32_t> users(TensorId root) const { return users_[root.value()]; }

  bool repeats(const Region& region, std::uint32_t node, TensorId root) const {
    const auto is_in = [&region](std::uint32_t n) {
      return n != kNever && n >= region.nodes_begin && n < region.nodes_end;
    };
    return region.kind == RegionKind::kLoop && is_in(node) && !is_in(node_of(root));
  }

 private:
  void note_users() {
    const std::size_t tensors = graph_.tensors().size();
    std::vector<bool> is_read(tensors);
    users_.resize(tensors);
    for (std::uint32_t n = 0; n < graph_.nodes().size(); ++n) {
      const Tensor& tensor = graph_[graph_.nodes()[n]];
      if (writes_a_view(tensor.operation) && tensor.root != graph_.nodes()[n])
        users_[tensor.root.value()].push_back(n);
      for (const TensorId source : graph_.sources(tensor)) {
        if (source == kNoTensor) continue;
        is_read[source.value()] = true;
        users_[graph_[source].root.value()].push_back(n);
      }
    }
    for (const graph::ExtraUse& use : request_.uses)
      users_[graph_[use.tensor].root.value()].push_back(use.node);
    is_kept_.resize(tensors);
    for (std::uint32_t t = 0; t < tensors; ++t) {
      const Tensor& tensor = graph_.tensors()[t];
      if ((tensor.flags & (graph::kOutput | graph::kParameter)) != 0 || !is_read[t])
        is_kept_[tensor.root.value()] = true;
    }
  }

  const Graph& graph_;
  const graph::MemoryRequest& request_;
  std::vector<std::uint32_t> step_of_;             // by node
  std::vector<std::uint32_t> node_of_;             // by tensor
  std::vector<std::vector<std::uint32_t>> users_;  // by root
  std::vector<bool> is_kept_;                      // by root
  std::uint32_t last_step_ = 0;
};

/// One root with memory.
struct Judged {
  TensorId id;
  std::uint32_t first = 0;
  std::uint32_t last = 0;
  Address begin;
  Address end;
};

std::string named(const Graph& graph, TensorId id) {
  const std::string_view name = graph.name(id);
  return "tensor " + std::to_string(id.value()) + (name.empty() ? "" : " (") + std::string(name) +
         (name.empty() ? "" : ")");
}

/// Whether `after` may lie over `before` in the step that is the last of one and the first of the
/// other: its node can be computed in place, and nothing else uses that memory then.
bool is_in_place(const Graph& graph, const RootUsers& uses, std::span<const Address> addresses,
                 const Judged& before, const Judged& after, std::uint32_t step) {
  const std::uint32_t node = uses.node_of(after.id);
  if (node == kNever || before.last != step || after.first != step) return false;
  if (uses.step_of(node) != step || uses.is_repeated(node, before.id)) return false;
  if (uses.uses_further(node, before.id)) return false;
  const Tensor& tensor = graph[after.id];
  if (!is_elementwise(tensor.operation) && !is_row_wise(tensor.operation)) return false;
  const auto sources = graph.sources(tensor);
  bool is_over_first = false;
  for (std::size_t k = 0; k < sources.size(); ++k) {
    if (sources[k] == kNoTensor || graph[sources[k]].root != before.id) continue;
    const Tensor& source = graph[sources[k]];
    if (source.type != tensor.type || source.shape != tensor.shape ||
        source.strides != tensor.strides)
      return false;
    if (addresses[sources[k].value()] != addresses[after.id.value()]) return false;
    if (k == 0) is_over_first = true;
    if (k > 0 && !is_elementwise(tensor.operation)) return false;
  }
  if (!is_over_first && !is_elementwise(tensor.operation)) return false;
  bool is_used_by_it = false;
  for (const std::uint32_t n : uses.users(before.id)) {
    if (uses.step_of(n) != step) continue;
    if (n != node) return false;
    is_used_by_it = true;
  }
  return is_used_by_it;
}

/// is_in_place(), or a chain of such: nodes of one group, each over the one before.
bool follows_in_place(const Graph& graph, const RootUsers& uses, std::span<const Address> addresses,
                      std::span<const Judged> roots, const Judged& before, const Judged& after,
                      std::uint32_t step) {
  if (is_in_place(graph, uses, addresses, before, after, step)) return true;
  return std::any_of(roots.begin(), roots.end(), [&](const Judged& between) {
    if (between.id == before.id || between.id == after.id || between.first != step) return false;
    return uses.node_of(between.id) < uses.node_of(after.id) &&
           is_in_place(graph, uses, addresses, before, between, step) &&
           follows_in_place(graph, uses, addresses, roots, between, after, step);
  });
}

std::optional<std::string> judge_place(const Graph& graph, std::span<const std::uint16_t> type_of,
                                       std::span<const graph::BufferType> types,
                                       std::span<const JudgedBuffer> buffers,
                                       const Judged& judged) {
  const std::uint16_t type = type_of.empty() ? std::uint16_t{0} : type_of[judged.id.value()];
  if (judged.begin.value() % types[type].alignment.count() != 0)
    return "G2: " + named(graph, judged.id) + " is not aligned";
  for (const JudgedBuffer& buffer : buffers) {
    if (buffer.type == type && judged.begin >= buffer.base &&
        judged.end <= buffer.base + buffer.size)
      return std::nullopt;
  }
  return "G2: " + named(graph, judged.id) + " is in no buffer of its type";
}

/// The roots that have memory, with when they are live and where they are.
std::vector<Judged> roots_of(const Graph& graph, const RootUsers& uses,
                             std::span<const Address> addresses) {
  std::vector<Judged> roots;
  for (std::uint32_t t = 0; t < graph.tensors().size(); ++t) {
    const TensorId id{t};
    const Tensor& tensor = graph[id];
    if (tensor.root != id || (tensor.flags & graph::kExternal) != 0) continue;
    Judged judged{id, uses.first(id), uses.first(id), {}, {}};
    for (const std::uint32_t n : uses.users(id))
      judged.last = std::max(judged.last, uses.last_of_use(n, id));
    if (uses.is_kept(id)) judged.last = uses.last_step();
    if (!addresses.empty()) {
      judged.begin = addresses[t];
      judged.end = addresses[t] + tensor.extent;
    }
    roots.push_back(judged);
  }
  return roots;
}

}  // namespace

std::optional<std::string> judge_memory(const Graph& graph, const graph::MemoryRequest& request,
                                        std::span<const graph::BufferType> types,
                                        std::span<const JudgedBuffer> buffers,
                                        std::span<const Address> addresses) {
  const RootUsers uses(graph, request);
  for (std::uint32_t t = 0; t < graph.tensors().size(); ++t) {
    const Tensor& tensor = graph.tensors()[t];
    if ((graph[tensor.root].flags & graph::kExternal) != 0) continue;
    if (addresses[t] != addresses[tensor.root.value()] + tensor.view_offset)
      return "G2: " + named(graph, TensorId{t}) + " is not at its place in its root";
  }
  std::vector<Judged> roots = roots_of(graph, uses, addresses);
  std::erase_if(roots, [](const Judged& judged) { return judged.begin == judged.end; });
  for (const Judged& judged : roots) {
    if (auto found = judge_place(graph, request.types, types, buffers, judged)) return found;
  }
  std::sort(roots.begin(), roots.end(),
            [](const Judged& a, const Judged& b) { return a.first < b.first; });
  for (std::size_t begin = 0, k = 0; k < roots.size(); ++k) {
    const Judged& a = roots[k];
    if (roots[begin].first != a.first) begin = k;  // the first that begins when a does
    for (std::size_t other = begin; other < roots.size(); ++other) {
      const Judged& b = roots[other];
      if (b.first > a.last) break;
      if (a.id == b.id) continue;  // a is live first, or both begin
      if (a.end <= b.begin || b.end <= a.begin) continue;
      const bool is_one_step = a.last == b.first;
      if (is_one_step && follows_in_place(graph, uses, addresses, roots, a, b, b.first)) continue;
      // Both begin in one step: either may be over the other.
      if (a.first == b.first && b.last == b.first &&
          follows_in_place(graph, uses, addresses, roots, b, a, b.first))
        continue;
      return "G1: " + named(graph, b.id) + " overlaps " + named(graph, a.id) +
             ", which is in use in step " + std::to_string(b.first);
    }
  }
  return std::nullopt;
}

std::vector<std::pair<std::uint32_t, std::uint32_t>> lives_by_definition(
    const Graph& graph, const graph::MemoryRequest& request) {
  const RootUsers uses(graph, request);
  std::vector<std::pair<std::uint32_t, std::uint32_t>> lives(graph.tensors().size(), {0, 0});
  for (const Judged& judged : roots_of(graph, uses, {}))
    lives[judged.id.value()] = {judged.first, judged.last + 1};
  return lives;
}

}  // namespace ashlar::spec
