// The function of the op about a device's history: a part of the table of cache_ops.h.
//
// Thread safety: none.
#pragma once

#include <array>

#include "spec/lockstep/cache_ops.h"
#include "spec/lockstep/cache_world.h"
#include "spec/model/history_answers.h"
#include "spec/ops/opcode_table.h"

namespace ashlar::spec {

/// What `history d n` does for the first numbers; the others begin it, of so many events.
enum class HistoryOp : std::uint64_t { kStop, kSnapshot, kAnnotate };
/// A history of so many events, asked for by the numbers from this one on, loses none between two ops.
inline constexpr std::uint64_t kLongHistory = 16;
inline constexpr std::uint64_t kLongHistoryEvents = 4096;

inline void run_history(CacheWorld& world, const Op& op) {
  if (!world.has_device(op.arg[0])) return world.skip();
  const DeviceId device = device_id(op.arg[0]);
  HistoryAnswers answers(world.model(), device);
  CacheSubject& subject = world.subject();
  switch (static_cast<HistoryOp>(op.arg[1])) {
    case HistoryOp::kStop:
      answers.follow(true);
      return answers.judge_stop(world.answered(subject.set_history(device, nullptr)));
    case HistoryOp::kSnapshot: {
      cache::HistorySnapshot taken;
      return answers.judge_snapshot(world.answered(subject.history_snapshot(device, &taken)),
                                    taken);
    }
    case HistoryOp::kAnnotate:
      return answers.judge_annotate(world.answered(subject.annotate(device, "op")));
  }
  cache::HistoryOptions options;
  options.events_max = op.arg[1] < kLongHistory ? op.arg[1] : kLongHistoryEvents;
  answers.judge_start(world.answered(subject.set_history(device, &options)), options);
}

constexpr void add_history_ops(std::array<OpHandler, 256>& table) {
  table[slot::kHistory].run = run_history;
}

}  // namespace ashlar::spec
