// The check pass of a trace run: turns the trace into ops and runs them through the lockstep driver.
//
// Each event becomes two ops, so that a lag of N events is exactly a lag of 2N ops:
//   a id bytes   alloc p bytes s; kernel s p r   (the driver itself has a kernel write the block)
//   f id         kernel s p r; free p
// On a device without a limit the machine places segments and reuses addresses adversarially. On a
// limited device it takes the lowest address, as in the account pass, so that both passes run out of
// memory at the same events.
//
// A second pass checks C10: the same ops and answers must give the same hash over every (segment
// ordinal, offset).
#include <fmt/format.h>

#include <algorithm>

#include "props/adapters/caching_allocator_subject.h"
#include "spec/lockstep/cache_lockstep.h"
#include "spec/ops/opcode_table.h"
#include "src/tool/progress.h"
#include "src/tool/trace_run.h"

namespace ashlar::tool {
namespace {

constexpr std::uint32_t kOpsPerEvent = 2;

// The whole map is walked at every k-th step. With k near a 32nd of the peak of live blocks, the
// walks cost a few times as much as the steps between them.
std::uint32_t walk_period(const Trace& trace) {
  std::uint32_t live = 0;
  std::uint32_t most = 0;
  for (const TraceEvent& event : trace.events) {
    if (event.kind == TraceEvent::Kind::kAllocate) most = std::max(most, ++live);
    if (event.kind == TraceEvent::Kind::kFree) --live;
  }
  std::uint32_t period = 1;
  while (period * 32 < most) period *= 2;
  return period;
}

spec::Op make_op(std::uint8_t slot, std::uint64_t a = 0, std::uint64_t b = 0, std::uint64_t c = 0) {
  spec::Op op;
  op.slot = slot;
  op.arg = {a, b, c, 0};
  return op;
}

spec::LockstepResult run(const Trace& trace, const TraceRunOptions& options, Bytes capacity,
                         std::uint32_t walk_every) {
  spec::CacheLockstep::Options lockstep_options;
  lockstep_options.factory = props::caching_allocator_factory();
  lockstep_options.walk_every = walk_every;
  lockstep_options.machine.adversarial = capacity == Bytes::max();
  spec::CacheLockstep lockstep(std::move(lockstep_options));
  if (!options.conf_text.empty()) {
    spec::Op conf = make_op(spec::slot::kConf);
    conf.text = options.conf_text;
    lockstep.step(conf);
  }
  if (capacity != Bytes::max()) lockstep.step(make_op(spec::slot::kDevice, 0, capacity.count()));
  for (std::size_t stream = 1; stream < trace.streams.size(); ++stream) {
    lockstep.step(make_op(spec::slot::kStreamCreate, stream, 0));
  }
  lockstep.step(make_op(spec::slot::kLag, std::max(1u, options.lag * kOpsPerEvent)));

  std::vector<std::uint32_t> stream_of(trace.allocations);
  Progress progress("checking " + trace.name, trace.events.size());
  // the index of `r` in the op language's words for access
  constexpr auto kRead = static_cast<std::uint64_t>(spec::Access::kRead) - 1;
  for (std::size_t i = 0; i < trace.events.size(); ++i) {
    const TraceEvent& event = trace.events[i];
    bool goes_on = true;
    if (event.kind == TraceEvent::Kind::kAllocate) {
      stream_of[event.slot] = event.stream;
      lockstep.step(make_op(spec::slot::kAlloc, event.slot, event.size.count(), event.stream));
      goes_on = lockstep.step(make_op(spec::slot::kKernel, event.stream, event.slot, kRead));
    } else if (event.kind == TraceEvent::Kind::kFree) {
      lockstep.step(make_op(spec::slot::kKernel, stream_of[event.slot], event.slot, kRead));
      goes_on = lockstep.step(make_op(spec::slot::kFree, event.slot));
    }
    if (!goes_on) break;
    progress.at(i);
  }
  return lockstep.finish();
}

/// How many ops name an allocation of zero bytes. There is no block for them, so they are rightly
/// skipped.
std::uint64_t ops_without_block(const Trace& trace) {
  std::vector<bool> is_empty(trace.allocations);
  std::uint64_t ops = 0;
  for (const TraceEvent& event : trace.events) {
    if (event.kind == TraceEvent::Kind::kMark) continue;
    const bool is_free = event.kind == TraceEvent::Kind::kFree;
    if (!is_free) is_empty[event.slot] = event.size == Bytes{};
    if (is_empty[event.slot]) ops += is_free ? 2 : 1;
  }
  return ops;
}

}  // namespace

CheckOutcome check_pass(const Trace& trace, const TraceRunOptions& options, Bytes capacity) {
  CheckOutcome outcome;
  outcome.walk_period = walk_period(trace);
  const spec::LockstepResult first = run(trace, options, capacity, outcome.walk_period);
  outcome.steps = first.ops;
  outcome.skipped_steps = first.skipped;
  outcome.ooms = first.ooms;
  for (const char* clause : {"C1", "C2", "C12", "C13", "C16", "C17", "C24", "C26"}) {
    outcome.checks.emplace_back(clause, first.checks);
  }
  for (const char* clause : {"C6", "C7"}) outcome.checks.emplace_back(clause, first.ops);
  for (const char* clause : {"C3", "C4", "C5", "C14", "C15", "C18"})
    outcome.checks.emplace_back(clause, first.walks);
  if (!first.is_good()) {
    outcome.divergences = 1;
    outcome.first_divergence =
        fmt::format("{}: {} (op {}: {})\n{}", first.divergence.clause, first.divergence.text,
                    first.op_index, first.op_text, first.maps);
    return outcome;
  }
  // After an out-of-memory the ops on that block are skipped too, and their number is not known.
  if (first.ooms == 0 && first.skipped != ops_without_block(trace)) {
    outcome.divergences = 1;
    outcome.first_divergence =
        fmt::format("{} ops of the trace were skipped and not judged", first.skipped);
    return outcome;
  }
  const spec::LockstepResult second = run(trace, options, capacity, ~std::uint32_t{0});
  outcome.checks.emplace_back("C10", trace.allocations);
  outcome.checks.emplace_back("C25", 2);
  if (second.address_hash != first.address_hash) {
    outcome.divergences = 1;
    outcome.first_divergence = "C10: the same ops gave other addresses the second time";
  }
  return outcome;
}

}  // namespace ashlar::tool
