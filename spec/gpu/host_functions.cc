#include "spec/gpu/host_functions.h"

#include <utility>

namespace ashlar::spec {

const HostFunctions*& HostFunctions::running() {
  static thread_local const HostFunctions* running = nullptr;
  return running;
}

HostFlag HostFunctions::new_flag() {
  flags_.push_back(0);
  return static_cast<HostFlag>(flags_.size() - 1);
}

std::uint32_t HostFunctions::add_body(std::function<void()> body) {
  bodies_.push_back(std::move(body));
  return static_cast<std::uint32_t>(bodies_.size());
}

void HostFunctions::run(std::uint64_t body) {
  if (body == 0) return;
  const std::function<void()> call = std::exchange(bodies_[body - 1], {});
  running() = this;
  if (call) call();
  running() = nullptr;
}

}  // namespace ashlar::spec
