#include <ashlar/graph/graph_plan.h>

#include <algorithm>
#include <utility>

#include <ashlar/base/checked.h>
#include <ashlar/graph/chunk_fit.h>
#include <ashlar/graph/lifetimes.h>
#include <ashlar/plan/planner.h>

namespace ashlar::inline v0::graph {
namespace {

/// No buffer of the packing problem: for a tensor of no bytes.
constexpr std::uint32_t kNoBuffer = 0xffffffffu;

/// Makes one plan. Buffers of the packing problem are roots and parts; roots that share memory in
/// place are one buffer while their sizes are equal, else an alias group.
class PlanMaker {
 public:
  PlanMaker(const Graph& graph, const MemoryRequest& request, std::span<const BufferType> types,
            const GraphPlan* at_least)
      : graph_(graph), request_(request), types_(types), at_least_(at_least) {}

  Result<GraphPlan> make(std::uint64_t work) {
    Result<Steps> steps = steps_of(graph_, request_.order);
    if (!steps.is_ok()) return steps.status();
    if (const Status status = size_tensors(); !status.is_ok()) return status;
    lives_ = lifetimes_of(graph_, steps.value(), padded_, request_);
    make_problem();
    if (total_ > plan::kPlanBytesMax)
      return {Code::kSizeOverflow, "the graph's bytes exceed the bound of a plan"};
    plan::PlanOptions options;
    options.work = work;
    const plan::Plan packed = plan::make_plan(problem_, options);
    write(packed, options);
    plan_.wiring = graph_.wiring();
    plan_.tensors = static_cast<std::uint32_t>(graph_.tensors().size());
    plan_.request = request_;
    return std::move(plan_);
  }

 private:
  std::uint16_t type_of(std::uint32_t tensor) const {
    return request_.types.empty() ? std::uint16_t{0} : request_.types[tensor];
  }

  bool add_to_total(Bytes size) {
    const auto sum = checked_add(total_, size);
    if (!sum || *sum > plan::kPlanBytesMax) return false;
    total_ = *sum;
    return true;
  }

  /// The padded bytes of every root; kNeverInPlace for a split one.
  Status size_tensors() {
    const Status too_large{Code::kSizeOverflow, "the graph's bytes exceed the bound of a plan"};
    padded_.assign(graph_.tensors().size(), Bytes{});
    for (const TensorPart& part : request_.parts) padded_[part.tensor.value()] = kNeverInPlace;
    for (std::uint32_t t = 0; t < padded_.size(); ++t) {
      const Tensor& tensor = graph_.tensors()[t];
      if (tensor.root.value() != t || (tensor.flags & kExternal) != 0) continue;
      if (padded_[t] == kNeverInPlace) continue;
      const auto padded = checked_round_up(needed_by(t), types_[type_of(t)].alignment);
      if (!padded || !add_to_total(*padded)) return too_large;
      padded_[t] = *padded;
    }
    for (std::size_t p = 0; p < request_.parts.size(); ++p) {
      const auto padded =
          checked_round_up(needed_by_part(p), types_[request_.parts[p].type].alignment);
      if (!padded || !add_to_total(*padded)) return too_large;
    }
    return Status::ok();
  }

  std::uint32_t add_buffer(std::uint16_t type, plan::Lifetime life, Bytes size, Bytes needed) {
    if (size == 0_B) return kNoBuffer;
    plan::Buffer buffer;
    buffer.life = life;
    buffer.size = size;
    buffer.space = type;
    problem_.buffers.push_back(buffer);
    needed_.push_back(needed);
    return static_cast<std::uint32_t>(problem_.buffers.size() - 1);
  }

  Bytes needed_by(std::uint32_t tensor) const {
    const Bytes own = bytes_in(types_[type_of(tensor)], graph_.tensors()[tensor]);
    return at_least_ == nullptr ? own : std::max(own, at_least_->places[tensor].reserved);
  }
  Bytes needed_by_part(std::size_t part) const {
    const Bytes own = request_.parts[part].size;
    return at_least_ == nullptr ? own : std::max(own, at_least_->parts[part].reserved);
  }

  void make_problem() {
    problem_.spaces.resize(types_.size());
    buffer_of_.assign(padded_.size(), kNoBuffer);
    problem_.buffers.reserve(padded_.size());
    for (std::uint32_t t = 0; t < padded_.size(); ++t) {
      const RootLife& life = lives_[t];
      if (life.end == 0 || padded_[t] == kNeverInPlace) continue;
      if (life.takes_over == kNoTensor) {
        buffer_of_[t] = add_buffer(type_of(t), {life.begin, life.end}, padded_[t], needed_by(t));
      } else {
        take_over(t, life);
      }
    }
    part_buffers_.reserve(request_.parts.size());
    for (std::size_t p = 0; p < request_.parts.size(); ++p) {
      const TensorPart& part = request_.parts[p];
      const RootLife& life = lives_[part.tensor.value()];
      const Bytes needed = needed_by_part(p);
      part_buffers_.push_back(add_buffer(part.type, {life.begin, life.end},
                                         round_up(needed, types_[part.type].alignment), needed));
    }
  }

  void take_over(std::uint32_t t, const RootLife& life) {
    plan_.in_place_nodes += 1;
    const std::uint32_t over = buffer_of_[life.takes_over.value()];
    if (over == kNoBuffer) return;  // of no bytes
    plan::Buffer& buffer = problem_.buffers[over];
    if (padded_[t] == buffer.size) {
      buffer.life.upper = std::max<plan::Time>(buffer.life.upper, life.end);
      needed_[over] = std::max(needed_[over], needed_by(t));
      buffer_of_[t] = over;
      return;
    }
    if (padded_[t] == 0_B) return;
    if (buffer.group == plan::kNoGroup) {
      buffer.group = static_cast<std::uint32_t>(problem_.groups.size());
      problem_.groups.emplace_back();
    }
    const std::uint32_t group = buffer.group;
    buffer_of_[t] = add_buffer(type_of(t), {life.begin, life.end}, padded_[t], needed_by(t));
    problem_.buffers[buffer_of_[t]].group = group;
  }

  void write(const plan::Plan& packed, const plan::PlanOptions& options) {
    offsets_ = packed.offsets;
    chunk_of_.assign(problem_.buffers.size(), 0);
    for (std::size_t type = 0; type < types_.size(); ++type) {
      plan_.lower_bound += packed.spaces[type].lower_bound;
      if (is_above_limit(type)) divide(type, options);
    }
    plan_.chunk_bytes.resize(types_.size());
    plan_.places.resize(padded_.size());
    for (std::uint32_t t = 0; t < padded_.size(); ++t) {
      if (lives_[t].end == 0 || padded_[t] == kNeverInPlace) {
        plan_.places[t].chunk = kNowhereChunk;
        continue;
      }
      plan_.places[t] = place_of(type_of(t), buffer_of_[t], needed_by(t));
    }
    for (std::size_t p = 0; p < request_.parts.size(); ++p) {
      const TensorPart& part = request_.parts[p];
      plan_.parts.push_back(place_of(part.type, part_buffers_[p], needed_by_part(p)));
    }
  }

  bool is_above_limit(std::size_t type) const {
    for (std::size_t b = 0; b < offsets_.size(); ++b) {
      if (problem_.buffers[b].space == type && offsets_[b] + needed_[b] > types_[type].buffer_max)
        return true;
    }
    return false;
  }

  /// The place of a buffer of the problem, whose chunk grows to hold it. The bytes that pad the
  /// chunk's last tensor are not asked for.
  PlannedPlace place_of(std::uint16_t type, std::uint32_t buffer, Bytes needed) {
    PlannedPlace place;
    place.type = type;
    if (buffer == kNoBuffer) return place;
    place.chunk = chunk_of_[buffer];
    place.offset = offsets_[buffer];
    place.reserved = needed;
    std::vector<Bytes>& chunks = plan_.chunk_bytes[type];
    if (chunks.size() <= place.chunk) chunks.resize(place.chunk + std::size_t{1});
    chunks[place.chunk] = std::max(chunks[place.chunk], place.offset + needed);
    return place;
  }

  /// A chunk's part of the problem.
  struct ChunkProblem {
    plan::Problem problem;
    std::vector<std::uint32_t> numbers;  // by its buffer: the buffer of problem_
    std::vector<Bytes> fitted;           // by its buffer: where fit_chunks() has it
  };

  /// Divides a type's buffers over chunks, and packs each chunk again.
  void divide(std::size_t type, const plan::PlanOptions& options);
  /// A type's buffers as items. An alias group is one: it begins with its first member, which is the largest.
  std::vector<ChunkItem> items_of(std::size_t type, std::vector<std::uint32_t>* item_of) const;
  std::vector<ChunkProblem> problems_of(std::span<const std::uint32_t> item_of,
                                        std::span<const ChunkPlace> places);
  /// Packs a chunk again, and keeps what fit_chunks() gave if the chunk would become larger.
  void pack_again(const ChunkProblem& chunk, plan::PlanOptions options);

  const Graph& graph_;
  const MemoryRequest& request_;
  const std::span<const BufferType> types_;
  const GraphPlan* const at_least_;
  std::vector<Bytes> padded_;  // by tensor
  Bytes total_;
  std::vector<RootLife> lives_;  // by tensor
  plan::Problem problem_;
  std::vector<Bytes> needed_;                // by buffer of the problem: without what pads it
  std::vector<std::uint32_t> buffer_of_;     // by tensor: of the problem
  std::vector<std::uint32_t> part_buffers_;  // by part
  std::vector<Bytes> offsets_;               // by buffer of the problem
  std::vector<std::uint32_t> chunk_of_;      // by buffer of the problem
  GraphPlan plan_;
};

std::vector<ChunkItem> PlanMaker::items_of(std::size_t type,
                                           std::vector<std::uint32_t>* item_of) const {
  std::vector<ChunkItem> items;
  item_of->assign(problem_.buffers.size(), kNoBuffer);
  std::vector<std::uint32_t> item_of_group(problem_.groups.size(), kNoBuffer);
  for (std::uint32_t b = 0; b < problem_.buffers.size(); ++b) {
    const plan::Buffer& buffer = problem_.buffers[b];
    if (buffer.space != type) continue;
    const auto begin = static_cast<std::uint32_t>(buffer.life.lower);
    const auto end = static_cast<std::uint32_t>(buffer.life.upper);
    if (buffer.group != plan::kNoGroup && item_of_group[buffer.group] != kNoBuffer) {
      ChunkItem& item = items[item_of_group[buffer.group]];
      item.end = std::max(item.end, end);
      item.needed = std::max(item.needed, needed_[b]);
      (*item_of)[b] = item_of_group[buffer.group];
      continue;
    }
    (*item_of)[b] = static_cast<std::uint32_t>(items.size());
    if (buffer.group != plan::kNoGroup) item_of_group[buffer.group] = (*item_of)[b];
    items.push_back({begin, end, buffer.size, needed_[b]});
  }
  return items;
}

std::vector<PlanMaker::ChunkProblem> PlanMaker::problems_of(std::span<const std::uint32_t> item_of,
                                                            std::span<const ChunkPlace> places) {
  std::vector<ChunkProblem> chunks;
  std::vector<std::uint32_t> group_of(problem_.groups.size(), plan::kNoGroup);  // in its chunk
  for (std::uint32_t b = 0; b < problem_.buffers.size(); ++b) {
    if (item_of[b] == kNoBuffer) continue;
    const ChunkPlace& place = places[item_of[b]];
    if (place.chunk >= chunks.size()) chunks.resize(place.chunk + std::size_t{1});
    ChunkProblem& chunk = chunks[place.chunk];
    plan::Buffer buffer = problem_.buffers[b];
    buffer.space = 0;
    if (buffer.group != plan::kNoGroup) {
      std::uint32_t& group = group_of[buffer.group];
      if (group == plan::kNoGroup) {
        group = static_cast<std::uint32_t>(chunk.problem.groups.size());
        chunk.problem.groups.emplace_back();
      }
      buffer.group = group;
    }
    chunk.problem.buffers.push_back(buffer);
    chunk.numbers.push_back(b);
    chunk.fitted.push_back(place.offset);
    chunk_of_[b] = place.chunk;
  }
  return chunks;
}

void PlanMaker::pack_again(const ChunkProblem& chunk, plan::PlanOptions options) {
  options.warm_start = &chunk.fitted;
  const plan::Plan packed = plan::make_plan(chunk.problem, options);
  const auto peak_of = [&](const std::vector<Bytes>& offsets) {
    Bytes peak;
    for (std::size_t k = 0; k < offsets.size(); ++k)
      peak = std::max(peak, offsets[k] + needed_[chunk.numbers[k]]);
    return peak;
  };
  const bool is_better = peak_of(packed.offsets) <= peak_of(chunk.fitted);
  const std::vector<Bytes>& offsets = is_better ? packed.offsets : chunk.fitted;
  for (std::size_t k = 0; k < offsets.size(); ++k) offsets_[chunk.numbers[k]] = offsets[k];
}

void PlanMaker::divide(std::size_t type, const plan::PlanOptions& options) {
  std::vector<std::uint32_t> item_of;
  const std::vector<ChunkItem> items = items_of(type, &item_of);
  const std::vector<ChunkPlace> places = fit_chunks(items, types_[type].buffer_max);
  for (const ChunkProblem& chunk : problems_of(item_of, places)) pack_again(chunk, options);
}

}  // namespace

Status check_request(const Graph& graph, const MemoryRequest& request, std::size_t types) noexcept {
  if (graph.has_open_region()) return {Code::kInvalidArgument, "the graph has an open region"};
  if (types == 0) return {Code::kInvalidArgument, "no buffer type"};
  if (!request.types.empty() && request.types.size() != graph.tensors().size())
    return {Code::kInvalidArgument, "not one buffer type for each tensor"};
  for (const std::uint16_t type : request.types) {
    if (type >= types) return {Code::kInvalidArgument, "a buffer type that does not exist"};
  }
  for (const ExtraUse& use : request.uses) {
    if (use.node >= graph.nodes().size() || use.tensor.value() >= graph.tensors().size())
      return {Code::kInvalidArgument,
              "a further use by a node, or of a tensor, that does not exist"};
  }
  std::uint32_t before = 0;
  for (const TensorPart& part : request.parts) {
    const std::uint32_t t = part.tensor.value();
    if (t >= graph.tensors().size() || t < before)
      return {Code::kInvalidArgument, "parts that are not by ascending tensor"};
    if (graph[part.tensor].root != part.tensor || (graph[part.tensor].flags & kExternal) != 0)
      return {Code::kInvalidArgument, "parts of a view or of an external tensor"};
    if (part.type >= types) return {Code::kInvalidArgument, "a buffer type that does not exist"};
    before = t;
  }
  if (request.parts.empty()) return Status::ok();
  const auto is_before = [](const TensorPart& part, TensorId tensor) {
    return part.tensor < tensor;
  };
  for (const Tensor& tensor : graph.tensors()) {
    const bool is_view = &graph[tensor.root] != &tensor;
    if (!is_view) continue;
    const auto part =
        std::lower_bound(request.parts.begin(), request.parts.end(), tensor.root, is_before);
    if (part != request.parts.end() && part->tensor == tensor.root)
      return {Code::kInvalidArgument, "a view of a tensor that is split"};
  }
  return Status::ok();
}

Result<GraphPlan> make_graph_plan(const Graph& graph, const MemoryRequest& request,
                                  std::span<const BufferType> types, std::uint64_t work,
                                  const GraphPlan* at_least) {
  if (const Status status = check_request(graph, request, types.size()); !status.is_ok())
    return status;
  return PlanMaker(graph, request, types, at_least).make(work);
}

}  // namespace ashlar::inline v0::graph
