#include "src/torch_cpu/step_session.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <ashlar/base/exceptions.h>
#include <ashlar/cache/caching_upstream.h>
#include <ashlar/plan/planner.h>
#include <ashlar/replay/validation.h>

#include "src/torch_cpu/empty_blocks.h"

namespace ashlar::torch_cpu {
namespace {

constexpr Status kNoHostMemory{Code::kHostOutOfMemory, "the host has no memory for the session"};
/// How many replays may have memory that outlives them, before no further step is recorded.
constexpr std::size_t kReplaysMax = replay::Router::kRoutesMax - 1;

using Replays = std::vector<std::unique_ptr<replay::Replay>>;

bool has_room_for_one(Replays& replays) noexcept {
  return with_host_memory([&] { replays.reserve(replays.size() + 1); });
}

/// What the managed allocations of a run ask for at most at a time.
Bytes live_peak_of(const replay::Recording& run) {
  Bytes live, peak;
  for (const replay::RecordedEvent& event : replay::events_of(run)) {
    const replay::RecordedAllocation& allocation = run.allocations[event.allocation];
    if (!allocation.is_managed()) continue;
    if (event.is_free) live -= allocation.size;
    else live += allocation.size;
    peak = std::max(peak, live);
  }
  return peak;
}

StepPlan worth_of(const replay::Recording& run, const plan::Plan& plan) {
  const plan::SpaceAnswer space = plan.spaces.empty() ? plan::SpaceAnswer{} : plan.spaces[0];
  const auto unmanaged = std::count_if(run.allocations.begin(), run.allocations.end(),
                                       [](const auto& each) { return !each.is_managed(); });
  return {run.allocations.size(), static_cast<std::uint64_t>(unmanaged), live_peak_of(run),
          space.lower_bound, space.peak};
}

}  // namespace

StepSession::StepSession(const StepParts& parts) : parts_(parts) {}

StepSession::~StepSession() = default;

std::unique_ptr<StepSession> StepSession::make(const StepParts& parts) {
  return std::unique_ptr<StepSession>(new StepSession(parts));
}

Result<std::unique_ptr<StepSession>> StepSession::create(const StepParts& parts) noexcept {
  std::unique_ptr<StepSession> made;
  if (!with_host_memory([&] { made = make(parts); })) return kNoHostMemory;
  device::Device* const devices[] = {&made->host_};
  // Segments and not pages: a forked child has its own copy of them, where pages would be shared.
  auto memory = pinned::PinnedAllocator::create(devices, pinned::PinnedConfig{});
  if (!memory.is_ok()) return memory.status();
  made->memory_ = std::move(memory).value();
  const bool has_room = with_host_memory([&] {
    made->base_ = std::make_unique<cache::CachingUpstream>(made->memory_->caching());
    if (parts.around != nullptr) made->base_ = parts.around(std::move(made->base_));
    made->router_ = std::make_unique<replay::Router>(*made->base_);
  });
  if (!has_room) return kNoHostMemory;
  return made;
}

replay::Route& StepSession::route_of(Step step) noexcept {
  if (step == Step::kReplay) return *replays_.back();
  return *recorder_;
}

Status StepSession::begin(Step step) noexcept {
  const MutexGuard guard(lock_);
  ASHLAR_REQUIRE(step_ == Step::kNone, Code::kBusy, "a step is under way");
  ASHLAR_REQUIRE(step != Step::kNone, Code::kInvalidArgument, "no step to begin");
  ASHLAR_REQUIRE(step != Step::kValidate || recording_, Code::kNotFound, "no step is recorded");
  ASHLAR_REQUIRE(step != Step::kReplay || !replays_.empty(), Code::kNotFound, "no step is planned");
  if (step != Step::kReplay) {
    ASHLAR_REQUIRE(replays_.size() < kReplaysMax, Code::kBusy,
                   "memory of too many planned steps is live");
    const Stream arena = memory_->arena();
    std::unique_ptr<replay::Recorder> made;
    if (!with_host_memory([&] { made = std::make_unique<replay::Recorder>(*base_, arena); }))
      return kNoHostMemory;
    recorder_ = std::move(made);
    if (step == Step::kRecord) stream_ = arena;
    if (const Status attached = router_->attach(*recorder_); !attached.is_ok()) return attached;
  }
  guard_.emplace(*router_, route_of(step));
  if (const Status guarded = guard_->status(); !guarded.is_ok()) {
    guard_.reset();
    if (recorder_ != nullptr) router_->detach(*recorder_);
    recorder_.reset();
    return guarded;
  }
  step_ = step;
  thread_ = std::this_thread::get_id();
  return Status::ok();
}

Status StepSession::end(std::uint32_t plan_ms) noexcept {
  const MutexGuard guard(lock_);
  ASHLAR_REQUIRE(step_ != Step::kNone, Code::kNotFound, "no step is under way");
  ASHLAR_REQUIRE(thread_ == std::this_thread::get_id(), Code::kBusy,
                 "another thread's step is under way");
  guard_.reset();
  const Step ended = std::exchange(step_, Step::kNone);
  return ended == Step::kReplay ? replays_.back()->rewind() : end_run(ended, plan_ms);
}

Status StepSession::end_run(Step ended, std::uint32_t plan_ms) noexcept {
  Result<replay::Recording> run = recorder_->take();
  // What it saw allocated is upstream's, and freed there from now on.
  router_->detach(*recorder_);
  recorder_.reset();
  // A planned step does not need what this one leaves idle. A trim that fails leaves more resident, and nothing else.
  static_cast<void>(trim());
  if (!run.is_ok()) return run.status();
  if (ended == Step::kRecord) return plan_run(std::move(run).value(), plan_ms);
  std::string text;
  const replay::Recording& recorded = *recording_;
  const bool has_room = with_host_memory([&] {
    const auto found = replay::first_difference(recorded, run.value());
    if (found) text = replay::text_of(*found);
  });
  if (!has_room) return kNoHostMemory;
  difference_ = std::move(text);
  return Status::ok();
}

Status StepSession::plan_run(replay::Recording run, std::uint32_t plan_ms) noexcept {
  Status sound;
  plan::Plan plan;
  StepPlan worth;
  const bool has_room = with_host_memory([&] {
    sound = replay::check_recording(run);
    if (!sound.is_ok()) return;
    plan::PlanOptions options;
    options.time_limit = std::chrono::milliseconds(plan_ms);
    plan = plan::make_plan(replay::problem_of(run), options);
    worth = worth_of(run, plan);
  });
  if (!has_room || !has_room_for_one(replays_)) return kNoHostMemory;
  if (!sound.is_ok()) return sound;
  auto made = parts_.make_replay != nullptr ? parts_.make_replay(*base_, stream_, run, plan)
                                            : replay::Replay::create(*base_, stream_, run, plan);
  if (!made.is_ok()) return made.status();
  if (const Status attached = router_->attach(*made.value()); !attached.is_ok()) return attached;
  replays_.push_back(std::move(made).value());
  plan_ = worth;
  recording_ = std::move(run);
  difference_.clear();
  drop_idle_replays();
  return Status::ok();
}

Status StepSession::trim() noexcept {
  const Status trimmed = memory_->caching().trim(memory_->device());
  if (!trimmed.is_ok()) return trimmed;
  return empty_free_blocks(memory_->caching(), memory_->device());
}

void StepSession::drop_idle_replays() noexcept {
  if (replays_.empty()) return;
  const replay::Replay* const used = replays_.back().get();
  std::erase_if(replays_, [this, used](const std::unique_ptr<replay::Replay>& each) {
    if (each.get() == used || each->live() != 0) return false;
    router_->detach(*each);
    return true;
  });
}

std::string StepSession::difference() const {
  const MutexGuard guard(lock_);
  return difference_;
}

StepPlan StepSession::plan() const noexcept {
  const MutexGuard guard(lock_);
  return plan_;
}

replay::ReplayCounts StepSession::counts() const noexcept {
  const MutexGuard guard(lock_);
  return replays_.empty() ? replay::ReplayCounts{} : replays_.back()->counts();
}

}  // namespace ashlar::torch_cpu
