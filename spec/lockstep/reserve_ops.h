// The functions of the ops about what a device's cache reserves and what is free in it: a part of the table of
// cache_ops.h.
//
// Thread safety: none.
#pragma once

#include <array>

#include "spec/lockstep/cache_ops.h"
#include "spec/lockstep/cache_world.h"
#include "spec/model/process_answers.h"
#include "spec/model/reserve_answers.h"
#include "spec/ops/opcode_table.h"

namespace ashlar::spec {

inline void run_trim(CacheWorld& world, const Op& op) {
  if (!world.has_device(op.arg[0])) return world.skip();
  world.model().begin(device_id(op.arg[0]), is_quiet(world.gpu()));
  world.model().judge_trim(world.answered(world.subject().trim(device_id(op.arg[0]))));
}

inline void run_limit(CacheWorld& world, const Op& op) {
  if (!world.has_device(op.arg[0])) return world.skip();
  world.model().begin(device_id(op.arg[0]), is_quiet(world.gpu()));
  const Status set = world.subject().set_memory_limit(device_id(op.arg[0]), Bytes{op.arg[1]});
  ReserveAnswers(world.model()).judge_set_limit(op.arg[1], world.answered(set));
}

inline void run_make_room(CacheWorld& world, const Op& op) {
  if (!world.has_device(op.arg[0])) return world.skip();
  world.model().begin(device_id(op.arg[0]), is_quiet(world.gpu()));
  const Status made = world.subject().make_room(device_id(op.arg[0]), Bytes{op.arg[1]});
  ReserveAnswers(world.model()).judge_make_room(op.arg[1], world.answered(made));
}

inline void run_process(CacheWorld& world, const Op& op) {
  if (!world.has_device(op.arg[0])) return world.skip();
  world.model().begin(device_id(op.arg[0]), is_quiet(world.gpu()));
  const Status processed = world.subject().process_events(device_id(op.arg[0]));
  ProcessAnswers(world.model()).judge_process(world.answered(processed));
}

constexpr void add_reserve_ops(std::array<OpHandler, 256>& table) {
  table[slot::kTrim].run = run_trim;
  table[slot::kLimit].run = run_limit;
  table[slot::kMakeRoom].run = run_make_room;
  table[slot::kProcess].run = run_process;
}

}  // namespace ashlar::spec
