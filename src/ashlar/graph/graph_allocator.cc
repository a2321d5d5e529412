#include <ashlar/graph/graph_allocator.h>

#include <algorithm>
#include <utility>

#include <ashlar/base/checked.h>
#include <ashlar/graph/graph_plan.h>

namespace ashlar::inline v0::graph {
namespace {

/// Whether every tensor that the plan gives memory to needs no more than that.
bool holds_sizes(const GraphPlan& plan, const Graph& graph, const MemoryRequest& request,
                 std::span<const BufferType> types) {
  for (std::size_t t = 0; t < plan.places.size(); ++t) {
    const PlannedPlace& place = plan.places[t];
    if (place.chunk == kNowhereChunk) continue;
    if (bytes_in(types[place.type], graph.tensors()[t]) > place.reserved) return false;
  }
  for (std::size_t p = 0; p < plan.parts.size(); ++p) {
    if (request.parts[p].size > plan.parts[p].reserved) return false;
  }
  return true;
}

/// Whether two requests differ in sizes of parts at most.
bool is_same_request(const MemoryRequest& a, const MemoryRequest& b) {
  if (a.types != b.types || a.order != b.order || a.uses != b.uses) return false;
  if (a.parts.size() != b.parts.size()) return false;
  for (std::size_t p = 0; p < a.parts.size(); ++p) {
    if (a.parts[p].tensor != b.parts[p].tensor || a.parts[p].type != b.parts[p].type) return false;
  }
  return true;
}

}  // namespace

GraphAllocator::GraphAllocator(BufferSource& source, std::vector<BufferType> types,
                               GraphOptions options)
    : source_(source), types_(std::move(types)), options_(options), buffers_(types_.size()) {}

GraphAllocator::~GraphAllocator() { release(); }

Result<GraphPlan> GraphAllocator::plan(const Graph& graph, const MemoryRequest& request,
                                       const GraphPlan* at_least) const {
  for (const BufferType& type : types_) {
    if (!is_power_of_two(type.alignment.count()))
      return {Code::kInvalidArgument, "a buffer type's alignment is no power of two"};
  }
  const std::uint64_t work =
      options_.work + options_.work_per_tensor * std::uint64_t{graph.tensors().size()};
  return make_graph_plan(graph, request, types_, work, at_least);
}

Result<GraphMemory> GraphAllocator::measure(const Graph& graph,
                                            const MemoryRequest& request) const {
  Result<GraphPlan> planned = plan(graph, request, nullptr);
  if (!planned.is_ok()) return planned.status();
  GraphMemory memory;
  for (const std::vector<Bytes>& chunks : planned.value().chunk_bytes) {
    for (const Bytes size : chunks) memory.total += size;
  }
  memory.lower_bound = planned.value().lower_bound;
  memory.in_place_nodes = planned.value().in_place_nodes;
  memory.buffers = std::move(planned).value().chunk_bytes;
  return memory;
}

const GraphPlan* GraphAllocator::find(const Graph& graph,
                                      const MemoryRequest& request) const noexcept {
  for (const GraphPlan& plan : plans_) {
    if (plan.wiring == graph.wiring() && plan.tensors == graph.tensors().size() &&
        is_same_request(plan.request, request))
      return &plan;
  }
  return nullptr;
}

Status GraphAllocator::grow(std::size_t type, std::size_t chunk, Bytes size) {
  OwnedBuffer& owned = buffers_[type][chunk];
  const OwnedBuffer before = owned;
  if (!before.base.is_null()) source_.release_buffer(type, before.base, before.size);
  owned = OwnedBuffer{};
  Result<Address> made = source_.make_buffer(type, size);
  if (made.is_ok()) {
    owned = {made.value(), size};
    buffers_replaced_ += before.base.is_null() ? 0 : 1;
    return Status::ok();
  }
  if (before.base.is_null()) return made.status();
  // Earlier plans need what was there.
  const Result<Address> again = source_.make_buffer(type, before.size);
  if (again.is_ok()) owned = {again.value(), before.size};
  return made.status();
}

Status GraphAllocator::hold(const GraphPlan& plan) {
  for (std::size_t type = 0; type < plan.chunk_bytes.size(); ++type) {
    const std::vector<Bytes>& chunks = plan.chunk_bytes[type];
    if (buffers_[type].size() < chunks.size()) buffers_[type].resize(chunks.size());
    for (std::size_t chunk = 0; chunk < chunks.size(); ++chunk) {
      if (chunks[chunk] <= buffers_[type][chunk].size) continue;
      if (const Status status = grow(type, chunk, chunks[chunk]); !status.is_ok()) return status;
    }
  }
  return Status::ok();
}

Status GraphAllocator::reserve(const Graph& graph, const MemoryRequest& request) {
  const GraphPlan* const before = find(graph, request);
  Result<GraphPlan> planned = plan(graph, request, before);
  Status held = planned.is_ok() ? hold(planned.value()) : planned.status();
  if (!held.is_ok() && before != nullptr) {
    Result<GraphPlan> alone = plan(graph, request, nullptr);
    const bool is_less = alone.is_ok() && (!planned.is_ok() || alone.value().chunk_bytes !=
                                                                   planned.value().chunk_bytes);
    if (is_less) {
      held = hold(alone.value());
      planned = std::move(alone);
    }
  }
  if (planned.is_ok()) plans_made_ += 1;
  if (!held.is_ok()) return held;
  if (before == nullptr) {
    if (plans_.size() >= kGraphPlansMax) plans_.erase(plans_.begin());
    plans_.push_back(std::move(planned).value());
  } else {
    plans_[static_cast<std::size_t>(before - plans_.data())] = std::move(planned).value();
  }
  return Status::ok();
}

bool GraphAllocator::has_buffers(const GraphPlan& plan) const noexcept {
  for (std::size_t type = 0; type < plan.chunk_bytes.size(); ++type) {
    for (std::size_t chunk = 0; chunk < plan.chunk_bytes[type].size(); ++chunk) {
      if (buffers_[type][chunk].size < plan.chunk_bytes[type][chunk]) return false;
    }
  }
  return true;
}

Status GraphAllocator::apply(const Graph& graph, const MemoryRequest& request,
                             std::span<Address> addresses,
                             std::span<Address> parts) const noexcept {
  if (addresses.size() != graph.tensors().size() || parts.size() != request.parts.size())
    return {Code::kInvalidArgument, "not one address for each tensor, or each part"};
  const GraphPlan* const plan = find(graph, request);
  if (plan == nullptr) return {Code::kNotFound, "no plan for this graph: reserve it"};
  if (!has_buffers(*plan)) return {Code::kNotFound, "the plan's buffers are lost: reserve it"};
  if (!holds_sizes(*plan, graph, request, types_))
    return {Code::kNotFound, "the plan is for smaller tensors: reserve it"};
  const auto address_of = [&](const PlannedPlace& place) {
    const std::vector<OwnedBuffer>& chunks = buffers_[place.type];
    return place.chunk < chunks.size() ? chunks[place.chunk].base + place.offset : Address{};
  };
  for (std::size_t t = 0; t < addresses.size(); ++t) {
    const Tensor& tensor = graph.tensors()[t];
    if (tensor.root.value() != t) {
      addresses[t] = addresses[tensor.root.value()] + tensor.view_offset;
    } else if (plan->places[t].chunk != kNowhereChunk) {
      addresses[t] = address_of(plan->places[t]);
    }
  }
  for (std::size_t p = 0; p < parts.size(); ++p) parts[p] = address_of(plan->parts[p]);
  return Status::ok();
}

Status GraphAllocator::allocate(const Graph& graph, const MemoryRequest& request,
                                std::span<Address> addresses, std::span<Address> parts) {
  const Status applied = apply(graph, request, addresses, parts);
  if (applied.code() != Code::kNotFound) return applied;
  if (const Status status = reserve(graph, request); !status.is_ok()) return status;
  return apply(graph, request, addresses, parts);
}

void GraphAllocator::release() noexcept {
  plans_.clear();
  for (std::size_t type = 0; type < buffers_.size(); ++type) {
    for (const OwnedBuffer& owned : buffers_[type]) {
      if (!owned.base.is_null()) source_.release_buffer(type, owned.base, owned.size);
    }
    buffers_[type].clear();
  }
}

std::vector<Bytes> GraphAllocator::buffer_bytes(std::size_t type) const {
  std::vector<Bytes> sizes;
  for (const OwnedBuffer& owned : buffers_[type]) sizes.push_back(owned.size);
  return sizes;
}

}  // namespace ashlar::inline v0::graph
