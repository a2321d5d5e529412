#include <ashlar/sched/graph_scheduler.h>

#include <algorithm>
#include <utility>

#include <ashlar/sched/graph_identity.h>
#include <ashlar/sched/queue_order.h>

namespace ashlar::inline v0::sched {

using graph::Graph;
using graph::kNoTensor;
using graph::Tensor;
using graph::TensorId;

namespace {

/// Whether the tensor has memory of its own in the plan.
bool is_planned(const Graph& graph, std::uint32_t t) {
  const Tensor& tensor = graph.tensors()[t];
  return tensor.root.value() == t && (tensor.flags & graph::kExternal) == 0;
}

}  // namespace

/// Makes the graph allocator's buffers on the first backend of each memory.
class GraphScheduler::MemoryBuffers final : public graph::BufferSource {
 public:
  explicit MemoryBuffers(const std::vector<Backend*>& backends) : backends_(backends) {
    for (Backend* const backend : backends) {
      const bool is_known = std::any_of(owners_.begin(), owners_.end(), [&](const Backend* owner) {
        return owner->memory() == backend->memory();
      });
      if (!is_known) owners_.push_back(backend);
    }
  }
  std::vector<graph::BufferType> types() const {
    std::vector<graph::BufferType> types;
    types.reserve(owners_.size());
    for (const Backend* const owner : owners_) {
      graph::BufferType type = owner->buffer_type();
      // Those that share the memory compute in these buffers too.
      for (const Backend* const backend : backends_) {
        if (backend->memory() != owner->memory()) continue;
        type.alignment = std::max(type.alignment, backend->buffer_type().alignment);
        type.buffer_max = std::min(type.buffer_max, backend->buffer_type().buffer_max);
      }
      types.push_back(type);
    }
    return types;
  }
  Backend& owner(std::size_t memory) const { return *owners_[memory]; }
  Result<Address> make_buffer(std::size_t type, Bytes size) noexcept override {
    return owners_[type]->make_buffer(size);
  }
  void release_buffer(std::size_t type, Address base, Bytes) noexcept override {
    static_cast<void>(owners_[type]->release_buffer(base));
  }

 private:
  const std::vector<Backend*>& backends_;
  std::vector<Backend*> owners_;  // by the memory's number in a schedule
};

/// A graph that is ready to run.
struct GraphScheduler::Prepared {
  std::uint64_t identity = 0;
  ScheduleRequest request;
  std::vector<Address> external;
  Schedule schedule;
  graph::MemoryRequest memory;
  std::vector<TensorId> user_of;                // by tensor of the schedule's graph
  std::vector<std::vector<Address>> addresses;  // by place of copies, by tensor
  std::vector<std::vector<std::unique_ptr<BackendPlan>>> plans;  // by place and split
};

GraphScheduler::GraphScheduler(std::vector<Backend*> backends, SchedulerOptions options)
    : backends_(std::move(backends)),
      options_(options),
      buffers_(std::make_unique<MemoryBuffers>(backends_)),
      // A wrong number of places is an error of reserve().
      order_(std::make_unique<QueueOrder>(backends_,
                                          std::clamp(options.copy_places, 1u, kCopyPlacesMax))) {
  allocator_.emplace(*buffers_, buffers_->types());
}

GraphScheduler::~GraphScheduler() { reset(); }

const Schedule* GraphScheduler::schedule() const noexcept {
  return prepared_ == nullptr ? nullptr : &prepared_->schedule;
}

std::uint64_t GraphScheduler::plans_made() const noexcept { return allocator_->plans_made(); }

Status GraphScheduler::assign(TensorId tensor, std::uint32_t backend) {
  if (backend != kNoBackend && backend >= backends_.size())
    return {Code::kInvalidArgument, "there is no such backend"};
  if (backend == kNoBackend) {
    assigned_.erase(tensor.value());
  } else {
    assigned_[tensor.value()] = backend;
  }
  return Status::ok();
}

Status GraphScheduler::refuse(Code code, const char* why, const Graph& graph, TensorId tensor) {
  error_ = "tensor " + std::to_string(tensor.value());
  if (!graph.name(tensor).empty()) error_ += " '" + std::string(graph.name(tensor)) + "'";
  error_ += std::string(": ") + why;
  return {code, why};
}

Result<ScheduleRequest> GraphScheduler::request_for(const Graph& graph,
                                                    std::span<const Address> external) {
  ScheduleRequest request;
  request.offload = options_.offload;
  request.copy_places = options_.copy_places;
  request.backend_of.assign(graph.tensors().size(), kNoBackend);
  for (const auto& [tensor, backend] : assigned_) {
    if (tensor < request.backend_of.size()) request.backend_of[tensor] = backend;
  }
  for (std::uint32_t t = 0; t < request.backend_of.size(); ++t) {
    const Tensor& tensor = graph.tensors()[t];
    if ((tensor.flags & graph::kExternal) == 0 || tensor.root.value() != t) continue;
    std::uint32_t& home = request.backend_of[t];
    if (tensor.extent == Bytes{}) continue;  // it needs no address, so it is in no buffer
    for (std::uint32_t b = 0; b < backends_.size() && home == kNoBackend; ++b) {
      if (backends_[b]->holds(external[t], tensor.extent)) home = b;
    }
    if (external[t].is_null())
      return refuse(Code::kInvalidArgument, "external, and has no address", graph, TensorId{t});
    if (home == kNoBackend) {
      return refuse(
          Code::kWrongDevice,
          "not all in one buffer of a backend: make_buffer() and adopt_buffer() make them", graph,
          TensorId{t});
    }
    if (!backends_[home]->holds(external[t], tensor.extent)) {
      return refuse(Code::kWrongDevice, "not in a buffer of the backend that it is assigned to",
                    graph, TensorId{t});
    }
  }
  return request;
}

Status GraphScheduler::allocate(Prepared* prepared, const Graph& graph,
                                std::span<const Address> external) {
  Schedule& schedule = prepared->schedule;
  std::vector<Address> addresses(schedule.graph.tensors().size());
  for (std::size_t t = 0; t < external.size(); ++t) {
    const bool is_external = (graph.tensors()[t].flags & graph::kExternal) != 0;
    if (is_external && graph.tensors()[t].root.value() == t)
      addresses[schedule.tensor_of[t].value()] = external[t];
  }
  prepared->memory.types = schedule.memory_of;
  if (const Status status = allocator_->allocate(schedule.graph, prepared->memory, addresses);
      !status.is_ok())
    return status;
  prepared->addresses.assign(options_.copy_places, addresses);
  for (std::uint32_t place = 1; place < options_.copy_places; ++place) {
    std::vector<Address>& others = prepared->addresses[place];
    for (const ScheduledCopy& copy : schedule.copies)
      others[copy.to.value()] = addresses[copy.to.value() + place];
    for (std::size_t t = 0; t < others.size(); ++t) {
      const Tensor& tensor = schedule.graph.tensors()[t];
      if (tensor.root.value() != t) others[t] = others[tensor.root.value()] + tensor.view_offset;
    }
  }
  for (std::uint32_t place = 0; place < options_.copy_places; ++place) {
    prepared->plans.emplace_back();
    for (const ScheduleSplit& split : schedule.splits) {
      auto plan = backends_[split.backend]->make_plan(schedule.graph, split.nodes,
                                                      prepared->addresses[place]);
      if (!plan.is_ok()) return plan.status();
      prepared->plans.back().push_back(std::move(plan).value());
    }
  }
  return Status::ok();
}

Status GraphScheduler::prepare(const Graph& graph, std::span<const Address> external) {
  error_.clear();
  if (external.size() != graph.tensors().size())
    return {Code::kInvalidArgument, "not one address for each tensor"};
  Result<ScheduleRequest> request = request_for(graph, external);
  if (!request.is_ok()) return request.status();
  const std::uint64_t identity = identity_of(graph);
  if (prepared_ != nullptr && prepared_->identity == identity &&
      prepared_->request == request.value() &&
      std::equal(external.begin(), external.end(), prepared_->external.begin()))
    return Status::ok();

  // What is enqueued uses the addresses of now.
  if (const Status status = synchronize(); !status.is_ok()) return status;
  forget_schedule();
  Result<Schedule> schedule = make_schedule(graph, backends_, request.value(), &error_);
  if (!schedule.is_ok()) return schedule.status();
  schedules_made_ += 1;
  auto prepared = std::make_unique<Prepared>();
  prepared->identity = identity;
  prepared->request = std::move(request).value();
  prepared->external.assign(external.begin(), external.end());
  prepared->schedule = std::move(schedule).value();
  prepared->user_of.assign(prepared->schedule.graph.tensors().size(), kNoTensor);
  for (std::uint32_t t = 0; t < prepared->schedule.tensor_of.size(); ++t)
    prepared->user_of[prepared->schedule.tensor_of[t].value()] = TensorId{t};
  if (const Status status = allocate(prepared.get(), graph, external); !status.is_ok())
    return status;
  if (const Status status = init_tensors(*prepared); !status.is_ok()) return status;
  prepared_ = std::move(prepared);
  return Status::ok();
}

Status GraphScheduler::init_tensors(const Prepared& prepared) noexcept {
  const Graph& graph = prepared.schedule.graph;
  for (std::uint32_t t = 0; t < graph.tensors().size(); ++t) {
    if (!is_planned(graph, t)) continue;
    Backend& owner = buffers_->owner(prepared.schedule.memory_of[t]);
    const Status status = owner.init_tensor(graph, TensorId{t}, prepared.addresses[0][t]);
    if (status.is_ok()) continue;
    free_tensors(prepared, t);
    return status;
  }
  return Status::ok();
}

void GraphScheduler::free_tensors(const Prepared& prepared, std::size_t tensors) noexcept {
  const Graph& graph = prepared.schedule.graph;
  for (std::uint32_t t = 0; t < tensors; ++t) {
    if (!is_planned(graph, t)) continue;
    buffers_->owner(prepared.schedule.memory_of[t])
        .free_tensor(TensorId{t}, prepared.addresses[0][t]);
  }
}

void GraphScheduler::forget_schedule() noexcept {
  if (prepared_ != nullptr) free_tensors(*prepared_, prepared_->schedule.graph.tensors().size());
  prepared_.reset();
}

Status GraphScheduler::reserve(const Graph& graph, std::span<const Address> external) {
  return prepare(graph, external);
}

Status GraphScheduler::copy(const ScheduledCopy& copy, std::uint32_t place) {
  Backend &from = *backends_[copy.from_backend], &to = *backends_[copy.to_backend];
  const std::vector<Address>& addresses = prepared_->addresses[place];
  const Address source = addresses[copy.from.value()], target = addresses[copy.to.value()];
  if (copy.bytes == Bytes{}) return Status::ok();
  const Status direct = from.copy_async(source, to, target, copy.bytes);
  if (direct.code() != Code::kUnsupported) return direct;
  return copy_between(from, source, to, target, copy.bytes);
}

Status GraphScheduler::make_copies(const ScheduleSplit& split, std::uint32_t place) {
  const std::vector<ScheduledCopy>& copies = prepared_->schedule.copies;
  for (std::size_t from = 0; from < backends_.size(); ++from) {
    bool is_any = false;
    for (std::uint32_t c = split.copies_begin; c < split.copies_end; ++c) {
      if (copies[c].from_backend != from) continue;
      if (!is_any) {
        const Status ordered = options_.copy_places > 1
                                   ? order_->after_run(from, split.backend, place)
                                   : order_->after(from, split.backend);
        if (!ordered.is_ok()) return ordered;
      }
      is_any = true;
      if (const Status status = copy(copies[c], place); !status.is_ok()) return status;
    }
    if (!is_any) continue;
    if (const Status status = order_->after(split.backend, from); !status.is_ok()) return status;
  }
  return Status::ok();
}

Status GraphScheduler::compute_observed(const ScheduleSplit& split, std::uint32_t place) {
  Backend& backend = *backends_[split.backend];
  const Graph& graph = prepared_->schedule.graph;
  const std::vector<Address>& addresses = prepared_->addresses[place];
  const std::span<const TensorId> nodes(split.nodes);
  std::size_t begin = 0;
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    const TensorId user = prepared_->user_of[nodes[n].value()];
    const bool is_wanted = !observer_.wants || observer_.wants(user);
    if (!is_wanted && n + 1 < nodes.size()) continue;
    const auto part = nodes.subspan(begin, n + 1 - begin);
    if (const Status status = backend.compute(graph, part, addresses); !status.is_ok())
      return status;
    begin = n + 1;
    if (!is_wanted) continue;
    if (const Status status = backend.synchronize(); !status.is_ok()) return status;
    if (!observer_.seen(user, backend, addresses[nodes[n].value()]))
      return {Code::kBusy, "the observer has ended the run"};
  }
  return Status::ok();
}

Status GraphScheduler::compute(std::size_t split, std::uint32_t place) {
  const ScheduleSplit& one = prepared_->schedule.splits[split];
  if (observer_.seen) return compute_observed(one, place);
  return prepared_->plans[place][split]->compute();
}

Status GraphScheduler::run(const Graph& graph, std::span<const Address> external) {
  if (const Status status = prepare(graph, external); !status.is_ok()) return status;
  const auto place = static_cast<std::uint32_t>(runs_ % options_.copy_places);
  runs_ += 1;
  const Schedule& schedule = prepared_->schedule;
  for (std::size_t s = 0; s < schedule.splits.size(); ++s) {
    // First, so that a copy waits for everything that may use the memory it is made to.
    Status status = order_->after_sharers(schedule.splits[s].backend);
    if (status.is_ok()) status = make_copies(schedule.splits[s], place);
    if (status.is_ok()) status = compute(s, place);
    if (status.is_ok()) continue;
    static_cast<void>(synchronize());  // nothing of a run that failed is left enqueued
    return status;
  }
  return order_->end_run(place);
}

Status GraphScheduler::synchronize() noexcept {
  Status first;
  for (Backend* const backend : backends_) {
    const Status status = backend->synchronize();
    if (first.is_ok()) first = status;
  }
  return first;
}

void GraphScheduler::reset() noexcept {
  static_cast<void>(synchronize());
  forget_schedule();
  allocator_->release();
}

Backend& GraphScheduler::home_of(TensorId tensor) const noexcept {
  return *backends_[prepared_->schedule.backend_of[tensor.value()]];
}

Result<Address> GraphScheduler::begin_access(TensorId tensor, Bytes bytes) noexcept {
  if (prepared_ == nullptr) return {Code::kNotFound, "no graph is reserved"};
  if (tensor.value() >= prepared_->schedule.tensor_of.size())
    return {Code::kNotFound, "not a tensor of the graph that was reserved last"};
  const TensorId at = prepared_->schedule.tensor_of[tensor.value()];
  if (bytes != prepared_->schedule.graph[at].extent)
    return {Code::kInvalidArgument, "not as many bytes as the tensor's extent"};
  const std::uint32_t home = prepared_->schedule.backend_of[tensor.value()];
  if (const Status status = order_->after_sharers(home); !status.is_ok()) return status;
  return prepared_->addresses[0][at.value()];
}

Status GraphScheduler::set_async(TensorId tensor, std::span<const std::byte> bytes) noexcept {
  const Result<Address> at = begin_access(tensor, Bytes{bytes.size()});
  if (!at.is_ok()) return at.status();
  if (bytes.empty()) return Status::ok();
  return home_of(tensor).set_async(at.value(), bytes);
}

Status GraphScheduler::set(TensorId tensor, std::span<const std::byte> bytes) noexcept {
  if (const Status status = set_async(tensor, bytes); !status.is_ok()) return status;
  return home_of(tensor).synchronize();
}

Status GraphScheduler::get_async(TensorId tensor, std::span<std::byte> bytes) noexcept {
  const Result<Address> at = begin_access(tensor, Bytes{bytes.size()});
  if (!at.is_ok()) return at.status();
  if (bytes.empty()) return Status::ok();
  return home_of(tensor).get_async(bytes, at.value());
}

Status GraphScheduler::get(TensorId tensor, std::span<std::byte> bytes) noexcept {
  if (const Status status = get_async(tensor, bytes); !status.is_ok()) return status;
  return home_of(tensor).synchronize();
}

}  // namespace ashlar::inline v0::sched
