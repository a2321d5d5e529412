#include "props/plan/replay_case.h"

#include <algorithm>
#include <array>
#include <utility>

#include <ashlar/plan/planner.h>
#include <ashlar/replay/recorder.h>

#include "spec/plan/check.h"
#include "spec/replay/recording_model.h"
#include "spec/replay/upstreams.h"

namespace ashlar::props {
namespace {

using Kind = RunOp::Kind;

constexpr std::size_t kEditBytes = 4;
constexpr std::size_t kEditsMax = 40;

Stream stream_of(std::uint32_t number) {
  return {StreamHandle{number + 1u}, StreamId{number + 1u}, DeviceId{0}};
}

/// One of seven sizes; 16 is twice as likely as each other size.
Bytes size_of(std::uint8_t byte) {
  constexpr std::array<std::uint64_t, 8> kSizes{16, 16, 64, 100, 512, 513, 1, 4096};
  return Bytes{kSizes[byte % kSizes.size()]};
}

RunOp op_of(std::uint8_t what, std::uint8_t which) {
  RunOp op;
  op.slot = which % kReplaySlots;
  op.size = size_of(which / kReplaySlots);
  const std::uint8_t kind = what % 16;
  op.kind = kind < 8 ? Kind::kAllocate : kind < 15 ? Kind::kFree : Kind::kUse;
  const bool is_other = what / 16 == 15;
  op.stream = is_other ? 1 : 0;
  return op;
}

void move(std::vector<RunOp>* ops, std::size_t from, std::size_t to) {
  to = std::min(to, ops->size() - 1);
  const RunOp op = (*ops)[from];
  ops->erase(ops->begin() + static_cast<std::ptrdiff_t>(from));
  ops->insert(ops->begin() + static_cast<std::ptrdiff_t>(to), op);
}

/// Makes one deviation of the step from the run.
void edit(std::vector<RunOp>* ops, std::uint8_t where, std::uint8_t what, std::uint8_t amount) {
  const std::size_t at = ops->empty() ? 0 : where % ops->size();
  const auto here = ops->begin() + static_cast<std::ptrdiff_t>(at);
  const auto insert = [&](Kind kind, std::uint32_t stream = 0) {
    ops->insert(here, {kind, amount % kReplaySlots, size_of(amount / kReplaySlots), stream});
  };
  switch (what % 12) {
    case 0: return insert(Kind::kAllocate);
    case 1: return insert(Kind::kAllocate, 1);
    case 2: return insert(Kind::kFree);
    case 3: return insert(Kind::kUse, 1);
    case 4: ops->insert(here, {Kind::kFreeInside, 0, Bytes{amount * 16u}, 0}); return;
    case 5: ops->insert(here, {Kind::kFreeAbroad, 0, Bytes{amount}, 0}); return;
    case 6: ops->insert(here, {Kind::kFail, 0, Bytes{amount % 8u + 1}, 0}); return;
    default: break;
  }
  if (ops->empty()) return;
  switch (what % 12) {
    case 7: ops->erase(here); return;
    case 8: here->size = size_of(amount); return;
    case 9: here->stream = 1 - here->stream; return;
    case 10: return move(ops, at, at + amount % 8 + 1);
    case 11: return move(ops, at, at - std::min<std::size_t>(at, amount % 8 + 1));
    default: return;
  }
}

/// The slots' addresses, over all steps.
struct Slots {
  std::array<Address, kReplaySlots> at{};  // an address stays after its free
};

/// Records the run, and compares the recording with the model's.
replay::Recording record(const std::vector<RunOp>& ops, Bytes alignment, spec::Verdict* verdict) {
  spec::FakeUpstream upstream(alignment);
  replay::Recorder recorder(upstream, stream_of(0));
  std::vector<spec::RunEvent> run;
  std::array<Address, kReplaySlots> at{};
  // zero: the slot has no live allocation of the recorded stream
  std::array<std::uint64_t, kReplaySlots> name{};
  std::uint64_t names = 0;
  for (const RunOp& op : ops) {
    if (op.kind == Kind::kFail) upstream.fail(static_cast<std::uint32_t>(op.size.count()));
    if (op.kind == Kind::kFreeAbroad || op.kind == Kind::kFreeInside)
      static_cast<void>(recorder.free(Address{~op.size.count()}));
    if (op.kind == Kind::kAllocate) {
      const Result<Address> address = recorder.allocate(op.size, stream_of(op.stream));
      if (!address.is_ok()) continue;
      at[op.slot] = address.value();
      name[op.slot] = op.stream == 0 ? ++names : 0;
      if (op.stream == 0) run.push_back({spec::RunEvent::Kind::kAllocate, names, op.size});
    } else if (op.kind == Kind::kFree) {
      const Status status = recorder.free(at[op.slot]);
      // Only one free succeeds: afterwards the address may belong to another allocation.
      if (!status.is_ok()) continue;
      if (name[op.slot] != 0) run.push_back({spec::RunEvent::Kind::kFree, name[op.slot], 0_B});
      name[op.slot] = 0;
      at[op.slot] = {};
    } else if (op.kind == Kind::kUse) {
      const Status status = recorder.record_use(at[op.slot], stream_of(op.stream));
      if (status.is_ok() && op.stream != 0 && name[op.slot] != 0) {
        run.push_back({spec::RunEvent::Kind::kUseElsewhere, name[op.slot], 0_B});
      }
    }
  }
  Result<replay::Recording> taken = recorder.take();
  if (!taken.is_ok()) verdict->report("record", taken.status().why());
  if (taken.is_ok() && taken.value() != spec::recording_of(run))
    verdict->report("record", "not the recording of the run");
  return taken.is_ok() ? std::move(taken).value() : replay::Recording{};
}

void replay(const std::vector<RunOp>& ops, spec::FakeUpstream* upstream,
            spec::ReplayLockstep* lockstep, Slots* slots) {
  for (const RunOp& op : ops) {
    if (!lockstep->verdict().is_good()) return;
    switch (op.kind) {
      case Kind::kAllocate: {
        const Result<Address> address = lockstep->allocate(op.size, stream_of(op.stream));
        if (address.is_ok()) slots->at[op.slot] = address.value();
        break;
      }
      case Kind::kFree: static_cast<void>(lockstep->free(slots->at[op.slot])); break;
      case Kind::kUse:
        static_cast<void>(lockstep->record_use(slots->at[op.slot], stream_of(op.stream)));
        break;
      case Kind::kFreeInside:
        if (lockstep->segment_size() == 0_B) break;
        static_cast<void>(
            lockstep->free(lockstep->segment() + Bytes{op.size % lockstep->segment_size()}));
        break;
      case Kind::kFreeAbroad: static_cast<void>(lockstep->free(Address{~op.size.count()})); break;
      case Kind::kFail: upstream->fail(static_cast<std::uint32_t>(op.size.count())); break;
    }
  }
}

}  // namespace

ReplayCase replay_case_of(std::span<const std::uint8_t> bytes) {
  ReplayCase result;
  if (bytes.size() < 2) return result;
  result.alignment = Bytes{std::uint64_t{1} << bytes[0] % 10};
  result.upstream_alignment = Bytes{std::uint64_t{1} << bytes[0] / 10 % 10};
  result.has_segment = bytes[0] < 200;
  std::size_t ops = bytes[1];
  bytes = bytes.subspan(2);
  for (; ops > 0 && bytes.size() >= 2; --ops, bytes = bytes.subspan(2))
    result.run.push_back(op_of(bytes[0], bytes[1]));
  result.steps.assign(kReplaySteps, result.run);
  for (std::size_t edits = 0; edits < kEditsMax && bytes.size() >= kEditBytes;
       ++edits, bytes = bytes.subspan(kEditBytes)) {
    edit(&result.steps[bytes[0] % kReplaySteps], bytes[1], bytes[2], bytes[3]);
  }
  return result;
}

ReplayOutcome run_replay_case(const ReplayCase& replay_case,
                              const spec::ReplayLockstep::Factory& factory) {
  ReplayOutcome outcome;
  spec::Verdict verdict;
  spec::ReplayLockstep::Setting setting;
  setting.stream = stream_of(0);
  setting.alignment = replay_case.alignment;
  setting.recording = record(replay_case.run, replay_case.upstream_alignment, &verdict);
  for (const std::vector<RunOp>& step : replay_case.steps) {
    const replay::Recording run = record(step, replay_case.upstream_alignment, &verdict);
    const auto found = replay::first_difference(setting.recording, run);
    if (found != spec::difference_of(setting.recording, run))
      verdict.report("R7", "not the first difference: ", found ? replay::text_of(*found) : "none");
    if (found) ++outcome.differences;
  }
  plan::PlanOptions options;
  options.work = 0;
  const plan::Problem problem = replay::problem_of(setting.recording, setting.alignment);
  if (!plan::check_problem(problem).status.is_ok()) verdict.report("record", "no sound problem");
  outcome.managed = problem.buffers.size();
  if (verdict.is_good()) {
    setting.plan = plan::make_plan(problem, options);
    if (const auto broken = spec::check_answer(problem, setting.plan))
      verdict.report("P1", broken->text);
  }
  if (!verdict.is_good()) {
    outcome.divergence = verdict.first();
    return outcome;
  }

  spec::FakeUpstream upstream(replay_case.upstream_alignment);
  if (!replay_case.has_segment) upstream.fail(1);
  Slots slots;
  spec::ReplayLockstep lockstep(upstream, std::move(setting), factory);
  for (std::size_t s = 0; s < replay_case.steps.size(); ++s) {
    if (s != 0) lockstep.rewind();
    replay(replay_case.steps[s], &upstream, &lockstep, &slots);
  }
  lockstep.finish();
  outcome.counts = lockstep.counts();
  outcome.divergence = lockstep.verdict().first();
  return outcome;
}

}  // namespace ashlar::props
