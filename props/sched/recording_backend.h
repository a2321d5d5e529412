// Backends that write down each call: which, on which backend, in which order. What they are told to do they
// do at once, on the processor.
//
// Purpose: shows what the scheduler asks of backends, and what it does when one of them fails.
// Thread safety: none.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/cpu_backend/cpu_backend.h"

namespace ashlar::props {

/// The calls of several backends, such as "a.wait b0": backend a waits for the first event of backend b.
class CallLog {
 public:
  std::vector<std::string> calls;

  /// Writes the call down. Returns what it was told to with refuse().
  Status note(std::string call) {
    const auto refused = std::find_if(refused_.begin(), refused_.end(), [&](const auto& one) {
      return call.compare(0, one.first.size(), one.first) == 0;
    });
    calls.push_back(std::move(call));
    return refused == refused_.end() ? Status::ok() : Status{refused->second, "told to fail"};
  }
  /// Calls that begin so fail from now on, without effect.
  void refuse(std::string begin, Code code) { refused_.emplace_back(std::move(begin), code); }
  void refuse_nothing() { refused_.clear(); }
  /// What was written down since the last call.
  std::vector<std::string> take() { return std::exchange(calls, {}); }
  /// How many of the calls begin so.
  std::size_t count(std::string_view begin) const {
    return static_cast<std::size_t>(std::count_if(
        calls.begin(), calls.end(),
        [begin](const std::string& call) { return call.compare(0, begin.size(), begin) == 0; }));
  }

 private:
  std::vector<std::pair<std::string, Code>> refused_;
};

/// What a recording backend can do.
struct RecordingTraits {
  bool has_events = true;
  bool waits_for_others = true;           ///< for the events of other backends
  bool has_copies = true;                 ///< to other backends
  std::vector<sched::MemoryId> reads;     ///< memories that it reads besides its own
  std::vector<graph::Operation> has;      ///< its kernels; empty: all that the processor has
  std::vector<graph::Operation> prefers;  ///< what it should compute wherever the weights lie
};

class RecordingBackend final : public sched::Backend {
 public:
  RecordingBackend(CallLog& log, std::string name, std::shared_ptr<cpu::HostBuffers> buffers,
                   RecordingTraits traits = {})
      : log_(log), traits_(std::move(traits)), processor_(std::move(name), std::move(buffers)) {}
  RecordingBackend(CallLog& log, std::string name, RecordingTraits traits = {})
      : RecordingBackend(log, std::move(name), std::make_shared<cpu::HostBuffers>(),
                         std::move(traits)) {}

  std::string_view name() const noexcept override { return processor_.name(); }
  sched::MemoryId memory() const noexcept override { return processor_.memory(); }
  bool can_read(sched::MemoryId other) const noexcept override {
    return other == memory() || has_one(traits_.reads, other);
  }
  graph::BufferType buffer_type() const noexcept override { return processor_.buffer_type(); }
  Result<Address> make_buffer(Bytes size) noexcept override {
    if (const Status status = note("make_buffer"); !status.is_ok()) return status;
    return processor_.make_buffer(size);
  }
  Status init_tensor(const graph::Graph&, graph::TensorId tensor, Address at) noexcept override {
    if (told_.size() == tensors_max) return {Code::kUnsupported, "told to refuse tensors"};
    told_.emplace_back(tensor, at);
    return Status::ok();
  }
  void free_tensor(graph::TensorId tensor, Address at) noexcept override {
    untold += std::erase(told_, std::pair(tensor, at)) == 1 ? 0 : 1;
  }
  /// The tensors that it was told of, and not to forget.
  const std::vector<std::pair<graph::TensorId, Address>>& told() const { return told_; }
  std::size_t tensors_max = ~std::size_t{0};  ///< of which it can be told
  std::size_t untold = 0;                     ///< tensors to forget of which it was not told

  Status release_buffer(Address base) noexcept override {
    if (const Status status = note("release_buffer"); !status.is_ok()) return status;
    return processor_.release_buffer(base);
  }
  bool holds(Address begin, Bytes size) const noexcept override {
    return processor_.holds(begin, size);
  }

  Status set_async(Address to, std::span<const std::byte> from) noexcept override {
    if (const Status status = note("set " + std::to_string(from.size())); !status.is_ok())
      return status;
    return processor_.set_async(to, from);
  }
  Status get_async(std::span<std::byte> to, Address from) noexcept override {
    if (const Status status = note("get " + std::to_string(to.size())); !status.is_ok())
      return status;
    return processor_.get_async(to, from);
  }
  Status copy_async(Address from, const Backend& target, Address to, Bytes size) noexcept override {
    if (!traits_.has_copies) return Backend::copy_async(from, target, to, size);
    const std::string what = std::string(target.name()) + " " + std::to_string(size.count());
    if (const Status status = note("copy " + what); !status.is_ok()) return status;
    copied_to.push_back(to);
    std::memcpy(to.pointer(), from.pointer(), size.count());
    return Status::ok();
  }
  Status synchronize() noexcept override { return note("synchronize"); }

  Result<std::unique_ptr<sched::BackendEvent>> make_event() noexcept override {
    if (!traits_.has_events) return Backend::make_event();
    events_ += 1;
    static_cast<void>(note("make_event"));
    return std::unique_ptr<sched::BackendEvent>(
        std::make_unique<NamedEvent>(*this, std::string(name()) + std::to_string(events_ - 1)));
  }
  Status record(sched::BackendEvent& event) noexcept override {
    return &event.owner() == this ? note("record " + name_of(event)) : Backend::record(event);
  }
  Status wait(const sched::BackendEvent& event) noexcept override {
    if (&event.owner() != this && !traits_.waits_for_others) return Backend::wait(event);
    return note("wait " + name_of(event));
  }
  Status synchronize(const sched::BackendEvent& event) noexcept override {
    if (&event.owner() != this) return Backend::synchronize(event);
    return note("synchronize " + name_of(event));
  }

  bool supports(const graph::Graph& graph, graph::TensorId node) const noexcept override {
    const bool has = traits_.has.empty() || has_one(traits_.has, graph[node].operation);
    return has && processor_.supports(graph, node);
  }
  bool prefers(const graph::Graph& graph, graph::TensorId node) const noexcept override {
    return has_one(traits_.prefers, graph[node].operation);
  }
  Status compute(const graph::Graph& graph, std::span<const graph::TensorId> nodes,
                 std::span<const Address> addresses) noexcept override {
    std::string what = "compute";
    for (const graph::TensorId node : nodes) what += " " + std::to_string(node.value());
    if (const Status status = note(what); !status.is_ok()) return status;
    return processor_.compute(graph, nodes, addresses);
  }
  Result<std::unique_ptr<sched::BackendPlan>> make_plan(
      const graph::Graph& graph, std::span<const graph::TensorId> nodes,
      std::span<const Address> addresses) override {
    if (const Status status = note("make_plan"); !status.is_ok()) return status;
    return Backend::make_plan(graph, nodes, addresses);
  }

  std::vector<Address> copied_to;  ///< the targets of copy_async(), in order

 private:
  class NamedEvent final : public sched::BackendEvent {
   public:
    NamedEvent(const Backend& owner, std::string name)
        : BackendEvent(owner), name_(std::move(name)) {}
    const std::string& name() const { return name_; }

   private:
    const std::string name_;
  };

  template <class T>
  static bool has_one(const std::vector<T>& all, const T& one) {
    return std::find(all.begin(), all.end(), one) != all.end();
  }
  static const std::string& name_of(const sched::BackendEvent& event) {
    return static_cast<const NamedEvent&>(event).name();
  }
  Status note(const std::string& what) noexcept {
    return log_.note(std::string(name()) + "." + what);
  }

  std::vector<std::pair<graph::TensorId, Address>> told_;
  CallLog& log_;
  const RecordingTraits traits_;
  cpu::CpuBackend processor_;
  std::size_t events_ = 0;
};

}  // namespace ashlar::props
