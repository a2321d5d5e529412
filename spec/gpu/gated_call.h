// One call of a simulated device: takes the machine's lock and passes the gate (the account, D8, planned failures), then does
// the work.
//
// Thread safety: any thread.
#pragma once

#include <mutex>

#include "spec/gpu/machine.h"

namespace ashlar::spec {

template <class Answer, class Body>
Answer gated_call(Machine& machine, std::uint32_t device, device::CallKind kind, Bytes size,
                  Body body) {
  CallGate& gate = machine.state().gate;
  // A host function runs under the lock.
  if (machine.state().scheduler.host_functions().is_running_here())
    return gate.refuse_in_host_function();
  const std::lock_guard<std::mutex> lock(machine.mutex());
  const Status entered = gate.enter(device, kind, size);
  if (!entered.is_ok()) return entered;
  Answer answer = body();
  gate.leave(kind, answer.code());
  return answer;
}

}  // namespace ashlar::spec
