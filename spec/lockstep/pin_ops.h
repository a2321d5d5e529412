// The functions of the ops about pins and sends: a part of the table of cache_ops.h.
//
// Thread safety: none.
#pragma once

#include <array>

#include "spec/lockstep/cache_ops.h"
#include "spec/lockstep/pin_caller.h"
#include "spec/ops/opcode_table.h"

namespace ashlar::spec {

/// Calls the member for the pointer that the op names, if that is in the state.
template <void (PinCaller::*kCall)(std::uint64_t), CacheWorld::Pointer::State kState>
void run_on_pointer(CacheWorld& world, const Op& op) {
  if (world.pointer(op.arg[0]).state != kState) return world.skip();
  (PinCaller(world).*kCall)(op.arg[0]);
}

inline void run_pin(CacheWorld& world, const Op& op) {
  if (world.pointer(op.arg[0]).state != CacheWorld::Pointer::kLive) return world.skip();
  PinCaller(world).pin(op.arg[0], op.arg[1]);
}
inline void run_unpin(CacheWorld& world, const Op& op) { PinCaller(world).unpin(op.arg[0]); }

constexpr void add_pin_ops(std::array<OpHandler, 256>& table) {
  using State = CacheWorld::Pointer::State;
  table[slot::kPin].run = run_pin;
  table[slot::kUnpin].run = run_unpin;
  table[slot::kPinStale].run = run_on_pointer<&PinCaller::pin_stale, State::kFreed>;
  table[slot::kGeneration].run = run_on_pointer<&PinCaller::ask_generation, State::kLive>;
  table[slot::kRegister].run = run_on_pointer<&PinCaller::register_memory, State::kLive>;
  table[slot::kSend].run = run_on_pointer<&PinCaller::send, State::kLive>;
  table[slot::kDeregister].run = run_on_pointer<&PinCaller::deregister, State::kLive>;
}

}  // namespace ashlar::spec
