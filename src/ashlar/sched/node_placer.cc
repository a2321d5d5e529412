#include <ashlar/sched/node_placer.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <ashlar/graph/layout.h>
#include <ashlar/graph/shape_rules.h>

namespace ashlar::inline v0::sched {
namespace {

using graph::Graph;
using graph::kNoTensor;
using graph::Operation;
using graph::Tensor;
using graph::TensorId;

constexpr std::uint32_t kNoItem = 0xffffffffu;
/// All copies of a schedule together, at most: below what MinCut's capacities and Bytes can hold.
constexpr std::uint64_t kCopiedBytesMax = std::uint64_t{1} << 60;

std::string named(const Graph& graph, TensorId id) {
  std::string text = "tensor " + std::to_string(id.value());
  const std::string_view name = graph.name(id);
  if (!name.empty()) text += " '" + std::string(name) + "'";
  return text + " (" + std::string(traits_of(graph[id].operation).name) + ")";
}

/// Builds the problem, solves it and reads the answer.
class Placer {
 public:
  Placer(const Graph& graph, std::span<Backend* const> backends, const ScheduleRequest& request)
      : graph_(graph),
        backends_(backends),
        request_(request),
        joined_(graph.tensors().size()),
        item_of_(graph.tensors().size(), kNoItem) {
    for (std::uint32_t t = 0; t < joined_.size(); ++t) joined_[t] = t;
  }

  Result<NodePlaces> place_all(std::string* error) {
    join_roots();
    number_items();
    if (const Status status = restrict_items(error); !status.is_ok()) return status;
    describe_backends();
    if (const Status status = add_flows(); !status.is_ok()) return refuse_all(status, error);
    const std::vector<std::uint32_t> answer = place(problem_);
    return read_answer(answer);
  }

 private:
  std::uint32_t find(std::uint32_t root) {
    while (joined_[root] != root) root = joined_[root] = joined_[joined_[root]];
    return root;
  }
  void join(TensorId a, TensorId b) {
    const std::uint32_t first = find(graph_[a].root.value()), second = find(graph_[b].root.value());
    joined_[std::max(first, second)] = std::min(first, second);
  }

  void join_roots() {
    for (const TensorId node : graph_.nodes())
      for_each_written_root(graph_, node, [&](TensorId root) { join(node, root); });
  }

  void number_items() {
    for (std::uint32_t t = 0; t < item_of_.size(); ++t) {
      const std::uint32_t first = find(graph_.tensors()[t].root.value());
      if (item_of_[first] == kNoItem) item_of_[first] = problem_.items++;
      item_of_[t] = item_of_[first];
    }
    problem_.backends = static_cast<std::uint32_t>(backends_.size());
    problem_.allowed.assign(std::size_t{problem_.items} * problem_.backends, 1);
    cause_.assign(problem_.items, PlacedBy::kCut);
  }

  bool is_leaf(std::uint32_t t) const {
    return graph_.tensors()[t].operation == Operation::kNone &&
           graph_.tensors()[t].root.value() == t;
  }

  /// The backend that the caller wants for a tensor, or kNoBackend.
  std::uint32_t wanted(std::uint32_t t) const {
    return request_.backend_of.empty() ? kNoBackend : request_.backend_of[t];
  }

  /// Leaves the item only the backends that `fits` accepts. False: none is left.
  template <class Fits>
  bool restrict(std::uint32_t item, const Fits& fits) {
    bool is_any = false;
    for (std::uint32_t b = 0; b < problem_.backends; ++b) {
      std::uint8_t& allowed = problem_.allowed[std::size_t{item} * problem_.backends + b];
      if (allowed != 0 && !fits(b)) allowed = 0;
      is_any = is_any || allowed != 0;
    }
    return is_any;
  }

  Status refuse(Code code, const char* why, TensorId id, std::string* error) const {
    if (error != nullptr) *error = named(graph_, id) + ": " + why;
    return {code, why};
  }

  /// Memory and the caller's wishes, then what backends support, then where weights lie and offloading, which are
  /// preferences: they choose among what is left.
  Status restrict_items(std::string* error) {
    const auto last = static_cast<std::uint32_t>(backends_.size() - 1);
    for (std::uint32_t t = 0; t < item_of_.size(); ++t) {
      const std::uint32_t item = item_of_[t];
      const bool is_external = (graph_.tensors()[t].flags & graph::kExternal) != 0;
      std::uint32_t home = wanted(t);
      if (home == kNoBackend && is_leaf(t)) home = last;
      if (home == kNoBackend) continue;
      const bool is_wish = wanted(t) != kNoBackend;
      if (!restrict(item, [home](std::uint32_t b) { return b == home; })) {
        return refuse(Code::kInvalidArgument,
                      "it is to be on two backends at once: by assignment, or with what it writes",
                      TensorId{t}, error);
      }
      if (is_external && is_leaf(t)) {
        cause_[item] = PlacedBy::kMemory;
      } else if (is_wish) {
        cause_[item] = PlacedBy::kUser;
      } else {
        cause_[item] = PlacedBy::kInput;
      }
    }
    for (const TensorId node : graph_.nodes()) {
      if (!is_work(graph_, node)) continue;
      if (const Status status = restrict_to_support(node, error); !status.is_ok()) return status;
    }
    for (const TensorId node : graph_.nodes()) {
      const std::uint32_t item = item_of_[node.value()];
      if (!is_work(graph_, node) || cause_[item] != PlacedBy::kCut) continue;
      if (!request_.offload || !offload(node, item)) stay_at_weights(node, item);
    }
    return Status::ok();
  }

  Status restrict_to_support(TensorId node, std::string* error) {
    const std::uint32_t item = item_of_[node.value()];
    const auto supports = [&](std::uint32_t b) { return backends_[b]->supports(graph_, node); };
    if (!restrict(item, supports)) {
      const char* const fault = shape_fault(graph_, node);
      if (fault != nullptr) return refuse(Code::kUnsupported, fault, node, error);
      return refuse(Code::kUnsupported, "no backend supports it where it has to run", node, error);
    }
    std::uint32_t count = 0;
    for (std::uint32_t b = 0; b < problem_.backends; ++b) count += supports(b) ? 1 : 0;
    if (count == 1 && cause_[item] == PlacedBy::kCut && problem_.backends > 1)
      cause_[item] = PlacedBy::kSupport;
    return Status::ok();
  }

  /// A node that reads external tensors runs where one of them lies, if it can: they are weights and
  /// caches, which are not copied for each run.
  void stay_at_weights(TensorId node, std::uint32_t item) {
    std::vector<std::uint8_t> is_home(backends_.size(), 0);
    bool is_any = false;
    for (const TensorId source : graph_.sources(graph_[node])) {
      if (source == kNoTensor || (graph_[source].flags & graph::kExternal) == 0) continue;
      for (std::uint32_t b = 0; b < problem_.backends; ++b) {
        const bool is_here = problem_.is_allowed(item_of_[source.value()], b);
        if (is_here && problem_.is_allowed(item, b)) is_home[b] = 1;
        is_any = is_any || is_home[b] != 0;
      }
    }
    if (!is_any) return;
    restrict(item, [&](std::uint32_t b) { return is_home[b] != 0; });
    cause_[item] = PlacedBy::kMemory;
  }

  /// The first backend that prefers a node with a weight gets it, wherever the weight lies. False: none does.
  bool offload(TensorId node, std::uint32_t item) {
    const auto sources = graph_.sources(graph_[node]);
    const auto is_weight = [&](TensorId source) {
      return source != kNoTensor && (graph_[source].flags & graph::kExternal) != 0;
    };
    if (std::none_of(sources.begin(), sources.end(), is_weight)) return false;
    for (std::uint32_t b = 0; b < problem_.backends; ++b) {
      if (!problem_.is_allowed(item, b) || !backends_[b]->prefers(graph_, node)) continue;
      const bool has_all = std::all_of(sources.begin(), sources.end(), [&](TensorId source) {
        return !is_weight(source) || problem_.is_allowed(item_of_[source.value()], b);
      });
      restrict(item, [b](std::uint32_t other) { return other == b; });
      cause_[item] = has_all ? PlacedBy::kMemory : PlacedBy::kOffload;
      return true;
    }
    return false;
  }

  void describe_backends() {
    problem_.reads.resize(backends_.size() * backends_.size());
    for (std::size_t reader = 0; reader < backends_.size(); ++reader) {
      for (std::size_t owner = 0; owner < backends_.size(); ++owner) {
        problem_.reads[reader * backends_.size() + owner] =
            backends_[reader]->can_read(backends_[owner]->memory()) ? 1 : 0;
      }
      std::uint32_t number = 0;
      while (backends_[number]->memory() != backends_[reader]->memory()) number += 1;
      problem_.memory.push_back(number);
    }
  }

  Status refuse_all(const Status& status, std::string* error) const {
    if (error != nullptr) *error = status.why();
    return status;
  }

  /// kSizeOverflow: so many bytes that sums of them might wrap.
  Status add_flows() {
    std::map<FlowKey, std::uint32_t> flows;
    std::set<std::pair<std::uint32_t, std::uint32_t>> consumers;  // of a flow, by item
    Bytes left{kCopiedBytesMax / problem_.backends};
    WriteCounts counts(graph_);
    for (const TensorId node : graph_.nodes()) {
      if (is_work(graph_, node)) {
        const std::uint32_t item = item_of_[node.value()];
        problem_.work.push_back(item);
        for (const TensorId source : graph_.sources(graph_[node])) {
          if (source == kNoTensor || item_of_[source.value()] == item) continue;
          const FlowKey key = counts.key_of(source);
          const auto [at, is_new] =
              flows.emplace(key, static_cast<std::uint32_t>(problem_.flows.size()));
          if (is_new) {
            const Bytes bytes = graph_[key.tensor].extent;
            if (bytes > left)
              return {Code::kSizeOverflow, "so many bytes to copy that sums of them might wrap"};
            left -= bytes;
            problem_.flows.push_back({item_of_[key.tensor.value()], {}, bytes});
          }
          if (consumers.emplace(at->second, item).second)
            problem_.flows[at->second].consumers.push_back(item);
        }
      }
      counts.pass(node);
    }
    return Status::ok();
  }

  NodePlaces read_answer(const std::vector<std::uint32_t>& answer) const {
    NodePlaces places;
    for (std::uint32_t t = 0; t < item_of_.size(); ++t) {
      places.backend_of.push_back(answer[item_of_[t]]);
      const bool is_view = graph_.tensors()[t].root.value() != t;
      const bool is_own = !is_view || wanted(t) != kNoBackend;
      places.placed_by.push_back(is_own ? cause_[item_of_[t]] : PlacedBy::kRoot);
    }
    return places;
  }

  const Graph& graph_;
  const std::span<Backend* const> backends_;
  const ScheduleRequest& request_;
  std::vector<std::uint32_t> joined_;   // by root: another that is at the same place
  std::vector<std::uint32_t> item_of_;  // by tensor
  std::vector<PlacedBy> cause_;         // by item
  PlacementProblem problem_;
};

}  // namespace

TensorId copied_for(const Graph& graph, TensorId source) {
  const Tensor& tensor = graph[source];
  const Tensor& root = graph[tensor.root];
  const bool is_whole = tensor.view_offset == Bytes{} && tensor.extent == root.extent;
  if (is_whole || graph::overlaps_itself(tensor.type, tensor.shape, tensor.strides))
    return tensor.root;
  return source;
}

Result<NodePlaces> place_nodes(const Graph& graph, std::span<Backend* const> backends,
                               const ScheduleRequest& request, std::string* error) {
  return Placer(graph, backends, request).place_all(error);
}

}  // namespace ashlar::inline v0::sched
