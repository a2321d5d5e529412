#include "src/torch_cpu/process_session.h"

#include <atomic>
#include <utility>

#include <ashlar/base/fork_check.h>

namespace ashlar::torch_cpu {
namespace {

struct Made {
  ForkCheck birth;
  std::unique_ptr<StepSession> session;
};

std::atomic<Made*> current{nullptr};

}  // namespace

Result<StepSession*> process_session() noexcept {
  Made* known = current.load(std::memory_order_acquire);
  if (known != nullptr && !known->birth.is_forked()) return known->session.get();
  auto session = StepSession::create(process_parts());
  if (!session.is_ok()) return session.status();
  auto* const made = new (std::nothrow) Made{{}, std::move(session).value()};
  if (made == nullptr)
    return Status{Code::kHostOutOfMemory, "the host has no memory for a session"};
  // The parent's session stays as it is: locks of threads that the child does not have may be held.
  if (current.compare_exchange_strong(known, made, std::memory_order_acq_rel))
    return made->session.get();
  delete made;  // another thread was first
  return known->session.get();
}

}  // namespace ashlar::torch_cpu
