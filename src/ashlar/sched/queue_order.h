// Order between the queues of several backends.
//
// Purpose: the scheduler says "this backend, after what that one has been told so far"; here that becomes
// an event, or a wait on the host where the two cannot wait for each other's events.
// Thread safety: none; the scheduler's.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include <ashlar/sched/backend.h>

namespace ashlar::inline v0::sched {

class QueueOrder {
 public:
  /// For each backend, `places` events mark the ends of the last runs. Backends without events are
  /// waited for on the host. The backends outlive this. Throws std::bad_alloc.
  QueueOrder(std::span<Backend* const> backends, std::uint32_t places);

  /// What is enqueued on `later` from now on runs after everything enqueued on `earlier` so far. No effect
  /// if they are the same. Errors of the backends.
  Status after(std::size_t later, std::size_t earlier) noexcept;
  /// after(), for each backend that uses the memory of `later`, or whose memory `later` uses.
  Status after_sharers(std::size_t later) noexcept;
  /// Marks the end of the run that uses the copies' place `place`, on every backend.
  Status end_run(std::uint32_t place) noexcept;
  /// What is enqueued on `later` from now on runs after the last run that used the place in the memory of
  /// `earlier`: after every backend that reads that memory.
  Status after_run(std::size_t later, std::size_t earlier, std::uint32_t place) noexcept;

 private:
  Status wait(std::size_t later, std::size_t earlier, BackendEvent& event) noexcept;

  const std::span<Backend* const> backends_;
  std::vector<std::unique_ptr<BackendEvent>> now_;  // by backend; null: it has no events
  std::vector<std::vector<std::unique_ptr<BackendEvent>>> ends_;  // by place and backend
  std::vector<bool> has_run_;                                     // by place
};

}  // namespace ashlar::inline v0::sched
