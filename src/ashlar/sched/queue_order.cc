#include <ashlar/sched/queue_order.h>

#include <utility>

namespace ashlar::inline v0::sched {
namespace {

std::vector<std::unique_ptr<BackendEvent>> events_of(std::span<Backend* const> backends) {
  std::vector<std::unique_ptr<BackendEvent>> events;
  for (Backend* const backend : backends) {
    Result<std::unique_ptr<BackendEvent>> made = backend->make_event();
    events.push_back(made.is_ok() ? std::move(made).value() : nullptr);
  }
  return events;
}

}  // namespace

QueueOrder::QueueOrder(std::span<Backend* const> backends, std::uint32_t places)
    : backends_(backends), now_(events_of(backends)), has_run_(places, false) {
  for (std::uint32_t place = 0; place < places; ++place) ends_.push_back(events_of(backends));
}

Status QueueOrder::wait(std::size_t later, std::size_t earlier, BackendEvent& event) noexcept {
  const Status waited = backends_[later]->wait(event);
  if (waited.code() != Code::kWrongDevice) return waited;
  return backends_[earlier]->synchronize(event);
}

Status QueueOrder::after(std::size_t later, std::size_t earlier) noexcept {
  if (later == earlier) return Status::ok();
  if (now_[earlier] == nullptr) return backends_[earlier]->synchronize();
  if (const Status status = backends_[earlier]->record(*now_[earlier]); !status.is_ok())
    return status;
  return wait(later, earlier, *now_[earlier]);
}

Status QueueOrder::after_sharers(std::size_t later) noexcept {
  const Backend& one = *backends_[later];
  for (std::size_t other = 0; other < backends_.size(); ++other) {
    const Backend& two = *backends_[other];
    if (other == later || (!one.can_read(two.memory()) && !two.can_read(one.memory()))) continue;
    if (const Status status = after(later, other); !status.is_ok()) return status;
  }
  return Status::ok();
}

Status QueueOrder::end_run(std::uint32_t place) noexcept {
  for (std::size_t b = 0; b < backends_.size(); ++b) {
    if (ends_[place][b] == nullptr) continue;
    if (const Status status = backends_[b]->record(*ends_[place][b]); !status.is_ok())
      return status;
  }
  has_run_[place] = true;
  return Status::ok();
}

Status QueueOrder::after_run(std::size_t later, std::size_t earlier, std::uint32_t place) noexcept {
  if (!has_run_[place]) return Status::ok();
  const MemoryId memory = backends_[earlier]->memory();
  for (std::size_t reader = 0; reader < backends_.size(); ++reader) {
    if (reader == later || !backends_[reader]->can_read(memory)) continue;
    BackendEvent* const end = ends_[place][reader].get();
    const Status status =
        end == nullptr ? backends_[reader]->synchronize() : wait(later, reader, *end);
    if (!status.is_ok()) return status;
  }
  return Status::ok();
}

}  // namespace ashlar::inline v0::sched
