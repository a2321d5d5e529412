#include <ashlar/sched/schedule.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include <ashlar/sched/node_order.h>
#include <ashlar/sched/node_placer.h>

namespace ashlar::inline v0::sched {
namespace {

using graph::Graph;
using graph::kNoTensor;
using graph::Operation;
using graph::Tensor;
using graph::TensorId;
using graph::TensorSpec;

/// Builds the schedule's graph, split by split.
class ScheduleBuilder {
 public:
  ScheduleBuilder(const Graph& graph, std::span<Backend* const> backends,
                  const ScheduleRequest& request, NodePlaces places)
      : graph_(graph), backends_(backends), request_(request), counts_(graph) {
    schedule_.backend_of = std::move(places.backend_of);
    schedule_.placed_by = std::move(places.placed_by);
    schedule_.tensor_of.assign(graph.tensors().size(), kNoTensor);
    for (Backend* const backend : backends) {
      const auto& memories = schedule_.memories;
      if (std::find(memories.begin(), memories.end(), backend->memory()) == memories.end())
        schedule_.memories.push_back(backend->memory());
    }
  }

  Schedule build() {
    for (std::uint32_t t = 0; t < graph_.tensors().size(); ++t) {
      const Tensor& tensor = graph_.tensors()[t];
      if (tensor.operation == Operation::kNone && tensor.root.value() == t) ensure(TensorId{t});
    }
    for (const std::uint32_t n : order_nodes(graph_, schedule_.backend_of))
      nodes_.push_back(graph_.nodes()[n]);
    for (std::size_t n = 0; n < nodes_.size(); ++n) {
      if (is_work(graph_, nodes_[n])) {
        const std::uint32_t backend = schedule_.backend_of[nodes_[n].value()];
        if (schedule_.splits.empty() || schedule_.splits.back().backend != backend)
          begin_split(n, backend);
        add_node(nodes_[n]);
      } else {
        ensure(nodes_[n]);
      }
      counts_.pass(nodes_[n]);
    }
    return std::move(schedule_);
  }

 private:
  /// A value in a memory: the tensor that it is copied as, and its copy's views.
  using CopyKey = std::tuple<FlowKey, std::uint16_t>;
  using CopyViewKey = std::tuple<FlowKey, std::uint16_t, std::uint32_t>;

  std::uint16_t memory_of(std::uint32_t backend) const {
    const auto& memories = schedule_.memories;
    const auto at = std::find(memories.begin(), memories.end(), backends_[backend]->memory());
    return static_cast<std::uint16_t>(at - memories.begin());
  }

  TensorId add(const TensorSpec& spec, std::uint16_t memory) {
    const Result<TensorId> added = schedule_.graph.add(spec);
    ASHLAR_ASSERT(added.is_ok(), "S1: a tensor of a sound graph is refused in its schedule");
    schedule_.memory_of.push_back(memory);
    return added.value();
  }

  TensorSpec spec_of(TensorId id) const {
    const Tensor& tensor = graph_[id];
    TensorSpec spec;
    spec.operation = tensor.operation;
    spec.type = tensor.type;
    spec.shape = tensor.shape;
    spec.strides = tensor.strides;
    spec.flags = tensor.flags;
    spec.parameters = tensor.parameters;
    spec.name = std::string(graph_.name(id));
    return spec;
  }

  /// Makes `spec` a view of the tensor of the schedule that stands for the root.
  void make_view(TensorId id, TensorId root, TensorSpec* spec) const {
    spec->view_source = root;
    spec->view_offset = graph_[id].view_offset;
    spec->flags &= static_cast<std::uint8_t>(~graph::kExternal);
  }

  /// The tensor of the schedule for a leaf, a view or kControl; a node's is there already.
  TensorId ensure(TensorId id) {
    TensorId& mapped = schedule_.tensor_of[id.value()];
    if (mapped != kNoTensor) return mapped;
    const Tensor& tensor = graph_[id];
    TensorSpec spec = spec_of(id);
    if (tensor.root != id) {
      const TensorId root = ensure(tensor.root);
      make_view(id, root, &spec);
      if (tensor.operation != Operation::kNone) {
        spec.operation = Operation::kView;  // of the root, whatever views lie between
        spec.sources = {root};
      }
    } else {
      for (const TensorId source : graph_.sources(tensor))
        spec.sources.push_back(source == kNoTensor ? kNoTensor : ensure(source));
    }
    mapped = add(spec, memory_of(schedule_.backend_of[id.value()]));
    return mapped;
  }

  /// Begins a split at a node, and makes the copies that its nodes need and that are not there.
  void begin_split(std::size_t first, std::uint32_t backend) {
    ScheduleSplit split;
    split.backend = backend;
    split.copies_begin = static_cast<std::uint32_t>(schedule_.copies.size());
    // What a node of the split writes is its backend's own, so no value that is copied here changes in the split, and the counts
    // at its beginning hold for all of it.
    for (std::size_t n = first; n < nodes_.size(); ++n) {
      if (!is_work(graph_, nodes_[n])) continue;
      if (schedule_.backend_of[nodes_[n].value()] != backend) break;
      for (const TensorId source : graph_.sources(graph_[nodes_[n]])) {
        if (source != kNoTensor && !is_readable(source, backend))
          copy(counts_.key_of(source), backend);
      }
    }
    split.copies_end = static_cast<std::uint32_t>(schedule_.copies.size());
    schedule_.splits.push_back(std::move(split));
  }

  bool is_readable(TensorId source, std::uint32_t backend) const {
    const std::uint32_t owner = schedule_.backend_of[source.value()];
    return owner == backend || backends_[backend]->can_read(backends_[owner]->memory());
  }

  void copy(const FlowKey& key, std::uint32_t backend) {
    const std::uint16_t memory = memory_of(backend);
    const auto [at, is_new] = copies_.emplace(CopyKey{key, memory}, kNoTensor);
    if (!is_new) return;
    const TensorId from = ensure(key.tensor);
    TensorSpec spec = spec_of(key.tensor);
    spec.operation = Operation::kCpy;
    spec.sources = {from};
    spec.parameters = {};
    spec.flags = request_.copy_places > 1 ? graph::kParameter : graph::kNoFlags;
    const TensorId to = add(spec, memory);
    at->second = to;
    spec.operation = Operation::kNone;
    spec.sources.clear();
    for (std::uint32_t k = 1; k < request_.copy_places; ++k) add(spec, memory);
    schedule_.copies.push_back(
        {from, to, schedule_.backend_of[key.tensor.value()], backend, graph_[key.tensor].extent});
  }

  /// What a node of `backend` reads for a source.
  TensorId source_on(TensorId source, std::uint32_t backend) {
    if (source == kNoTensor) return kNoTensor;
    if (is_readable(source, backend)) return ensure(source);
    const FlowKey key = counts_.key_of(source);
    const std::uint16_t memory = memory_of(backend);
    const TensorId copied = copies_.at(CopyKey{key, memory});
    if (key.tensor == source) return copied;
    const auto [at, is_new] =
        copy_views_.emplace(CopyViewKey{key, memory, source.value()}, kNoTensor);
    if (is_new) {
      TensorSpec spec = spec_of(source);
      spec.operation = Operation::kView;
      spec.sources = {copied};
      spec.flags = graph::kNoFlags;
      make_view(source, copied, &spec);
      at->second = add(spec, memory);
    }
    return at->second;
  }

  void add_node(TensorId id) {
    const Tensor& tensor = graph_[id];
    const std::uint32_t backend = schedule_.backend_of[id.value()];
    TensorSpec spec = spec_of(id);
    for (const TensorId source : graph_.sources(tensor))
      spec.sources.push_back(source_on(source, backend));
    if (tensor.root != id) make_view(id, ensure(tensor.root), &spec);
    const TensorId added = add(spec, memory_of(backend));
    schedule_.tensor_of[id.value()] = added;
    schedule_.splits.back().nodes.push_back(added);
  }

  const Graph& graph_;
  const std::span<Backend* const> backends_;
  const ScheduleRequest& request_;
  std::vector<TensorId> nodes_;  // in the order in which they run
  WriteCounts counts_;
  std::map<CopyKey, TensorId> copies_;
  std::map<CopyViewKey, TensorId> copy_views_;
  Schedule schedule_;
};

}  // namespace

const char* name_of(PlacedBy cause) noexcept {
  switch (cause) {
    case PlacedBy::kUser: return "user";
    case PlacedBy::kMemory: return "memory";
    case PlacedBy::kRoot: return "root";
    case PlacedBy::kInput: return "input";
    case PlacedBy::kSupport: return "support";
    case PlacedBy::kOffload: return "offload";
    case PlacedBy::kCut: return "minimum cut";
  }
  return "";
}

Result<Schedule> make_schedule(const Graph& graph, std::span<Backend* const> backends,
                               const ScheduleRequest& request, std::string* error) {
  const auto refuse = [error](Code code, const char* why) {
    if (error != nullptr) *error = why;
    return Status{code, why};
  };
  if (backends.empty()) return refuse(Code::kInvalidArgument, "no backend");
  if (!graph.regions().empty() || graph.has_open_region())
    return refuse(Code::kUnsupported, "a graph with regions over several backends");
  if (request.copy_places == 0 || request.copy_places > kCopyPlacesMax)
    return refuse(Code::kInvalidArgument, "the number of places of a copy is not from 1 to 64");
  if (!request.backend_of.empty() && request.backend_of.size() != graph.tensors().size())
    return refuse(Code::kInvalidArgument, "not one assignment for each tensor");
  for (const std::uint32_t backend : request.backend_of) {
    if (backend != kNoBackend && backend >= backends.size())
      return refuse(Code::kInvalidArgument, "an assignment to a backend that does not exist");
  }
  Result<NodePlaces> places = place_nodes(graph, backends, request, error);
  if (!places.is_ok()) return places.status();
  return ScheduleBuilder(graph, backends, request, std::move(places).value()).build();
}

}  // namespace ashlar::inline v0::sched
