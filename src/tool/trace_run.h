// A trace run: runs an allocation trace through the allocator. Its options and its results.
//
// A run makes up to four kinds of pass over the same events, each with an allocator of its own:
//   account   on the simulated or the host device: counts bytes, calls, waits and failures, and keeps
//             the picture for the report;
//   capacity  (--capacity auto, settled) account passes that stop at the first failure, to find the
//             smallest device;
//   check     (--check) on the simulated device: the allocator in lockstep with its executable model;
//   timing    on a device that costs nothing: nanoseconds per event of the allocator alone.
// With --planned a replay of a plan serves each pass and has the allocator as its upstream; the check
// is then of the replay, during the account pass.
// Thread safety: plain values; one run to a thread.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ashlar/cache/config.h>
#include <ashlar/cache/snapshot.h>
#include <ashlar/device/device.h>

#include "src/tool/alter.h"
#include "src/tool/map_records.h"
#include "src/tool/planned.h"
#include "src/tool/policy_outcome.h"
#include "src/tool/policy_pass.h"
#include "src/tool/trace.h"

namespace ashlar::tool {

/// The device behind the account pass.
enum class ReplayDevice : std::uint8_t { kSim, kHost };

struct TraceRunOptions {
  ReplayDevice backing = ReplayDevice::kSim;
  Bytes capacity = Bytes::max();  ///< of the device; max: unlimited
  bool find_capacity = false;     ///< --capacity auto
  bool find_settled = false;      ///< --capacity settled
  cache::Config config;
  std::string conf_text;  ///< what config was parsed from
  bool check = false;
  std::uint32_t lag = 0;       ///< streams finish their work this many events after it was enqueued
  bool wants_picture = false;  ///< keep the timeline and the map for the report
  bool is_planned = false;     ///< --planned: record, plan, and serve the trace from segments
  PlanLimits limits;           ///< of that planning
  const plan::Plan* given_plan = nullptr;  ///< --plan: see with_plan(); null: plan the trace
  std::optional<Perturb> perturb;          ///< --perturb: what was done to the trace
  double alter = 0;        ///< --alter: the part of the events that is altered after planning
  std::uint64_t seed = 1;  ///< --seed: of the alterations and the sizes
  std::vector<PolicyKind> policies;  ///< --policy: run side by side
  /// the plans that account and timing passes are served by; null: none, the allocator serves
  const PlannedTrace* planned = nullptr;
};

/// Bytes after each event.
struct Timeline {
  std::vector<std::uint64_t> requested;
  std::vector<std::uint64_t> allocated;
  std::vector<std::uint64_t> reserved;
};

/// What a repetition of a step (repeat.h) did.
struct StepFigures {
  std::uint64_t driver_calls = 0;
  std::uint64_t addresses = 0;  ///< a hash of those it was given, in order
};

/// What the account pass saw.
struct Account {
  Bytes peak_requested;
  Bytes peak_allocated;
  Bytes peak_reserved;
  std::uint64_t ooms = 0;
  std::uint64_t waits = 0;
  std::array<std::uint64_t, device::kCallKinds> driver_calls{};
  std::uint64_t driver_ns = 0;     ///< modelled
  std::vector<StepFigures> steps;  ///< one for each repetition
  std::uint64_t max_call_ns = 0;   ///< modelled
  /// violations: of the device's contract by the allocator, or live bytes that were overwritten
  std::uint64_t faults = 0;
  std::string first_trouble;  ///< one line on the first fault or failure, or empty
  Timeline timeline;          ///< empty unless asked for
  PlannedFigures planned;
  cache::Snapshot map;          ///< at map_event; empty unless asked for
  MapRecords records;           ///< of the map at every event; empty unless asked for
  std::uint64_t map_event = 0;  ///< the first event at which the live bytes are at their peak
};

/// What the check pass saw.
struct CheckOutcome {
  std::uint64_t steps = 0;  ///< ops driven in lockstep
  /// ops on allocations that have no block: of zero bytes, or out of memory
  std::uint64_t skipped_steps = 0;
  std::uint64_t ooms = 0;
  std::uint64_t divergences = 0;
  std::uint32_t walk_period = 0;  ///< k: the whole map is walked every k-th step
  /// clause -> how often it was checked
  std::vector<std::pair<std::string, std::uint64_t>> checks;
  std::string first_divergence;  ///< text with both maps, or empty
};

/// What was planned, with --planned.
struct PlannedOutcome {
  std::uint64_t managed = 0;  ///< allocations that the plans place
  Bytes peak;                 ///< the sum of the plans'
  Bytes lower_bound;          ///< the sum of the plans': no plans have a lower peak; 0: not known
  double plan_seconds = 0;
  std::uint64_t altered = 0;     ///< how many events were altered
  std::string first_difference;  ///< of the altered run from the recorded one, or empty
};

struct TraceRunResult {
  std::string trace;
  std::string file;
  std::uint64_t events = 0;  ///< allocations and frees
  std::uint64_t allocations = 0;
  std::optional<Bytes> stated_peak_live;
  Bytes capacity = Bytes::max();
  bool capacity_was_found = false;
  double ns_per_event = 0;
  std::uint32_t timing_passes = 0;
  Account account;
  std::optional<CheckOutcome> check;
  std::optional<PlannedOutcome> planned;
  std::shared_ptr<const PlannedTrace> plans;  ///< for the report; null unless it is asked for
  std::vector<PolicyOutcome> policies;  ///< with --policy: side by side, in the order asked for

  std::uint64_t divergences() const { return account.faults + (check ? check->divergences : 0); }
  /// The peak of requested bytes divided by the peak of reserved bytes; with --capacity auto, by the
  /// capacity found. 1 if nothing was allocated.
  double utilisation() const;
  std::uint64_t ooms() const { return std::max(account.ooms, check ? check->ooms : 0); }
  bool passed() const { return ooms() == 0 && divergences() == 0; }
};

/// Runs every pass that the options ask for.
TraceRunResult run_trace(const Trace& trace, const std::string& file,
                         const TraceRunOptions& options);

/// Makes an account pass. With `stop_at_failure` it ends at the first out-of-memory.
Account account_pass(const Trace& trace, const TraceRunOptions& options, Bytes capacity,
                     bool stop_at_failure = false);

struct Timing {
  double ns_per_event = 0;
  std::uint32_t passes = 0;
};
/// Makes a timing pass: the allocator alone, on a NullDevice, with ids resolved to array slots
/// beforehand. One allocator makes a warm-up pass and then at least five timed passes over the whole
/// trace; the result is their median. Between passes everything is freed, which is not timed, so that
/// a pass begins with the cached memory that a repeated step begins with. With `planned`, a replay
/// for each stream serves; it is rewound at the end of each pass, which is timed.
Timing timing_pass(const Trace& trace, const cache::Config& config,
                   const PlannedTrace* planned = nullptr);

/// The smallest device on which an account pass has no out-of-memory: smallest_capacity() between the
/// trace's peak of live bytes and what the unlimited run reserved.
Bytes find_capacity(const Trace& trace, const TraceRunOptions& options, Bytes peak_reserved);

/// Is the repeated step settled by its kSettledBy-th repetition: no out-of-memory, and from then on no
/// driver call, and so no wait either?
bool is_settled(const Account& account);
/// After how many repetitions its addresses come again from then on: 1 if they stay the same, 0 if they come in no cycle
/// that is seen twice. More than 1 is natural where a step frees, behind its own allocations, what an earlier one left.
unsigned address_period(const Account& account);
/// The smallest device on which the repeated trace is settled, as find_capacity(); nothing if it is not on
/// an unlimited one.
std::optional<Bytes> find_settled_capacity(const Trace& repeated, const TraceRunOptions& options);

/// Runs the trace under the policies that the options name and adds a row for each to the result: its figures
/// on the device that the options ask for, and the smallest device on which it runs.
void compare_policies(const Trace& trace, const TraceRunOptions& options, TraceRunResult* result);

/// Makes a check pass and the second pass for C10.
CheckOutcome check_pass(const Trace& trace, const TraceRunOptions& options, Bytes capacity);

}  // namespace ashlar::tool
