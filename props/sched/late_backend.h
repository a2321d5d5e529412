// Backends that do everything as late as they may: queues of processors with memories of their own, advanced
// in an adversary's order.
//
// Purpose: shows every order of queues that the scheduler does not forbid. Nothing that is enqueued runs
// before somebody waits for it; then a seed chooses, step by step, which queue advances.
// Thread safety: none.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "src/cpu_backend/cpu_backend.h"

namespace ashlar::props {

/// What a backend can do; the scheduler has to cope with all of it.
struct LateTraits {
  bool has_events = true;
  bool waits_for_others = true;  ///< for the events of other backends
  bool has_copies = true;        ///< to other backends
  std::uint64_t lacks = 0;       ///< bit k: it has no kernel for operations k, k + 64, ...
};

/// Queues and who advances.
class LateWorld {
 public:
  explicit LateWorld(std::uint64_t seed) : choices_(seed) {}

  struct Step {
    std::function<bool()> is_ready;  ///< null: always
    std::function<Status()> run;
  };
  using Queue = std::deque<Step>;

  std::size_t add_queue() {
    queues_.emplace_back();
    return queues_.size() - 1;
  }
  void enqueue(std::size_t queue, Step step) { queues_[queue].push_back(std::move(step)); }
  /// Advances queues until the condition holds. False: nothing can advance.
  bool advance_until(const std::function<bool()>& holds);
  bool is_idle(std::size_t queue) const { return queues_[queue].empty(); }
  /// The first error of a step since the last call.
  Status take_error() { return std::exchange(error_, Status::ok()); }
  std::uint64_t steps() const { return steps_; }

 private:
  std::mt19937_64 choices_;
  std::vector<Queue> queues_;
  Status error_;
  std::uint64_t steps_ = 0;
};

class LateBackend final : public sched::Backend {
 public:
  LateBackend(LateWorld& world, std::string name, std::shared_ptr<cpu::HostBuffers> buffers,
              LateTraits traits);

  std::string_view name() const noexcept override { return processor_.name(); }
  sched::MemoryId memory() const noexcept override { return processor_.memory(); }
  graph::BufferType buffer_type() const noexcept override { return processor_.buffer_type(); }
  Result<Address> make_buffer(Bytes size) noexcept override;
  Status release_buffer(Address base) noexcept override;
  bool holds(Address begin, Bytes size) const noexcept override {
    return processor_.holds(begin, size);
  }

  Status set_async(Address to, std::span<const std::byte> from) noexcept override;
  Status get_async(std::span<std::byte> to, Address from) noexcept override;
  Status copy_async(Address from, const Backend& target, Address to, Bytes size) noexcept override;
  Status synchronize() noexcept override;

  Result<std::unique_ptr<sched::BackendEvent>> make_event() noexcept override;
  Status record(sched::BackendEvent& event) noexcept override;
  Status wait(const sched::BackendEvent& event) noexcept override;
  Status synchronize(const sched::BackendEvent& event) noexcept override;

  bool supports(const graph::Graph& graph, graph::TensorId node) const noexcept override;
  Status compute(const graph::Graph& graph, std::span<const graph::TensorId> nodes,
                 std::span<const Address> addresses) noexcept override;

 private:
  LateWorld& world_;
  const std::size_t queue_;
  const LateTraits traits_;
  cpu::CpuBackend processor_;
};

}  // namespace ashlar::props
