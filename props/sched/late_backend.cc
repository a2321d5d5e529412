#include "props/sched/late_backend.h"

#include <cstring>
#include <utility>

namespace ashlar::props {
namespace {

using sched::Backend;
using sched::BackendEvent;

/// An event: how often it was recorded, and how many of the records have been reached.
class LateEvent final : public BackendEvent {
 public:
  explicit LateEvent(const Backend& owner) : BackendEvent(owner) {}
  std::shared_ptr<std::uint64_t> reached = std::make_shared<std::uint64_t>(0);
  std::uint64_t recorded = 0;
};

const LateEvent& late(const BackendEvent& event) { return static_cast<const LateEvent&>(event); }

}  // namespace

bool LateWorld::advance_until(const std::function<bool()>& holds) {
  while (!holds()) {
    std::vector<std::size_t> ready;
    for (std::size_t q = 0; q < queues_.size(); ++q) {
      if (queues_[q].empty()) continue;
      const Step& step = queues_[q].front();
      if (!step.is_ready || step.is_ready()) ready.push_back(q);
    }
    if (ready.empty()) return false;
    Queue& queue = queues_[ready[choices_() % ready.size()]];
    const Step step = std::move(queue.front());
    queue.pop_front();
    const Status status = step.run();
    if (error_.is_ok()) error_ = status;
    steps_ += 1;
  }
  return true;
}

LateBackend::LateBackend(LateWorld& world, std::string name,
                         std::shared_ptr<cpu::HostBuffers> buffers, LateTraits traits)
    : world_(world),
      queue_(world.add_queue()),
      traits_(traits),
      processor_(std::move(name), std::move(buffers)) {}

Result<Address> LateBackend::make_buffer(Bytes size) noexcept {
  const Result<Address> made = processor_.make_buffer(size);
  if (made.is_ok()) std::memset(made.value().pointer(), 0xA5, size.count());
  return made;
}

Status LateBackend::release_buffer(Address base) noexcept {
  return processor_.release_buffer(base);
}

Status LateBackend::set_async(Address to, std::span<const std::byte> from) noexcept {
  if (!holds(to, Bytes{from.size()})) return {Code::kWrongDevice, "elsewhere"};
  world_.enqueue(queue_, {nullptr, [this, to, from] { return processor_.set_async(to, from); }});
  return Status::ok();
}

Status LateBackend::get_async(std::span<std::byte> to, Address from) noexcept {
  if (!holds(from, Bytes{to.size()})) return {Code::kWrongDevice, "elsewhere"};
  world_.enqueue(queue_, {nullptr, [this, to, from] { return processor_.get_async(to, from); }});
  return Status::ok();
}

Status LateBackend::copy_async(Address from, const Backend& target, Address to,
                               Bytes size) noexcept {
  if (!traits_.has_copies) return Backend::copy_async(from, target, to, size);
  if (!holds(from, size) || !target.holds(to, size)) return {Code::kWrongDevice, "elsewhere"};
  world_.enqueue(queue_, {nullptr, [from, to, size] {
                            std::memcpy(to.pointer(), from.pointer(), size.count());
                            return Status::ok();
                          }});
  return Status::ok();
}

Status LateBackend::synchronize() noexcept {
  if (!world_.advance_until([this] { return world_.is_idle(queue_); }))
    return {Code::kDeadlock, "no queue can advance"};
  return world_.take_error();
}

Result<std::unique_ptr<BackendEvent>> LateBackend::make_event() noexcept {
  if (!traits_.has_events) return Backend::make_event();
  return std::unique_ptr<BackendEvent>(std::make_unique<LateEvent>(*this));
}

Status LateBackend::record(BackendEvent& event) noexcept {
  if (&event.owner() != this) return {Code::kWrongDevice, "an event of another backend"};
  auto& own = static_cast<LateEvent&>(event);
  own.recorded += 1;
  world_.enqueue(queue_, {nullptr, [reached = own.reached, number = own.recorded] {
                            *reached = number;
                            return Status::ok();
                          }});
  return Status::ok();
}

Status LateBackend::wait(const BackendEvent& event) noexcept {
  const bool is_own = &event.owner() == this;
  if (!is_own && !traits_.waits_for_others)
    return {Code::kWrongDevice, "an event of another backend"};
  const LateEvent& other = late(event);
  world_.enqueue(queue_,
                 {[reached = other.reached, number = other.recorded] { return *reached >= number; },
                  [] { return Status::ok(); }});
  return Status::ok();
}

Status LateBackend::synchronize(const BackendEvent& event) noexcept {
  if (&event.owner() != this) return {Code::kWrongDevice, "an event of another backend"};
  const LateEvent& own = late(event);
  const auto holds = [reached = own.reached, number = own.recorded] { return *reached >= number; };
  if (!world_.advance_until(holds)) return {Code::kDeadlock, "no queue can advance"};
  return world_.take_error();
}

bool LateBackend::supports(const graph::Graph& graph, graph::TensorId node) const noexcept {
  const auto number = static_cast<std::uint64_t>(graph[node].operation) % 64;
  return (traits_.lacks >> number & 1) == 0 && processor_.supports(graph, node);
}

Status LateBackend::compute(const graph::Graph& graph, std::span<const graph::TensorId> nodes,
                            std::span<const Address> addresses) noexcept {
  for (const graph::TensorId& node : nodes) {
    if (!supports(graph, node)) return {Code::kUnsupported, "no kernel for a node"};
  }
  for (const graph::TensorId& node : nodes) {
    const std::span<const graph::TensorId> one(&node, 1);
    world_.enqueue(queue_, {nullptr, [this, &graph, one, addresses] {
                              return processor_.compute(graph, one, addresses);
                            }});
  }
  return Status::ok();
}

}  // namespace ashlar::props
