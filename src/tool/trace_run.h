// Replaying a trace: what is asked, what comes out.
//
// A replay is up to four kinds of pass over the same events, each with an allocator of its own:
//   account   on the simulated or the host device: bytes, calls, waits, failures, the picture for
//             the report;
//   capacity  (--capacity auto) account passes that stop at the first failure, to find the smallest
//             device;
//   check     (--check) the lockstep driver: the allocator beside its executable model on the
//             simulated device;
//   timing    on a device that costs nothing: nanoseconds per event of the allocator alone.
// With --planned a replay of a plan stands before the allocator in each, and is what is checked,
// during the account pass.
// Thread safety: plain values; one replay a thread.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <ashlar/cache/config.h>
#include <ashlar/cache/snapshot.h>
#include <ashlar/device/device.h>

#include "src/tool/planned.h"
#include "src/tool/trace.h"

namespace ashlar::tool {

/// The device behind the account pass.
enum class Backing : std::uint8_t { kSim, kHost };

struct TraceRunOptions {
  Backing backing = Backing::kSim;
  Bytes capacity = Bytes::max();  ///< of the device; max: unlimited
  bool find_capacity = false;     ///< --capacity auto
  cache::Config config;
  std::string conf_text;  ///< what config was parsed from
  bool check = false;
  /// streams finish their work so many events after it was enqueued
  std::uint32_t lag = 0;
  bool wants_picture = false;  ///< keep the timeline and the map for the report
  bool is_planned = false;     ///< --planned: record, plan, and serve the trace from segments
  double alter = 0;            ///< --alter: how much of it, for that
  std::uint64_t seed = 1;      ///< likewise
  /// what an account or a timing pass is to allocate through; null: the allocator
  const PlannedTrace* planned = nullptr;
};

/// Bytes after each event.
struct Timeline {
  std::vector<std::uint64_t> requested;
  std::vector<std::uint64_t> allocated;
  std::vector<std::uint64_t> reserved;
};

/// What the account pass saw.
struct Account {
  Bytes peak_requested;
  Bytes peak_allocated;
  Bytes peak_reserved;
  std::uint64_t ooms = 0;
  std::uint64_t waits = 0;
  std::array<std::uint64_t, device::kCallKinds> driver_calls{};
  std::uint64_t driver_ns = 0;    ///< modelled
  std::uint64_t max_call_ns = 0;  ///< modelled
  /// broken promises: of the allocator to the device, or bytes that were overwritten
  std::uint64_t faults = 0;
  std::string first_trouble;  ///< one line on the first fault or failure, or empty
  Timeline timeline;          ///< empty unless asked for
  PlannedFigures planned;
  /// at the first event where the live bytes are at their peak; likewise
  cache::Snapshot map;
  std::uint64_t map_event = 0;
};

/// What the check pass saw.
struct CheckOutcome {
  std::uint64_t steps = 0;  ///< ops driven in lockstep
  /// ops on blocks that there are not: of no bytes, or out of memory
  std::uint64_t skipped_steps = 0;
  std::uint64_t ooms = 0;
  std::uint64_t divergences = 0;
  std::uint32_t walk_period = 0;  ///< k: the whole map is walked every k-th step
  /// clause -> how often it was checked
  std::vector<std::pair<std::string, std::uint64_t>> checks;
  std::string first_divergence;  ///< text with both maps, or empty
};

/// With --planned.
struct PlannedOutcome {
  std::uint64_t managed = 0;  ///< allocations that the plans place
  Bytes peak;                 ///< of the plans
  Bytes lower_bound;          ///< no plan has less
  double plan_seconds = 0;
  std::uint64_t altered = 0;     ///< events
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

  std::uint64_t divergences() const { return account.faults + (check ? check->divergences : 0); }
  /// peak requested over peak reserved; with --capacity auto, over the capacity found. 1 when
  /// nothing was asked for.
  double utilisation() const;
  std::uint64_t ooms() const { return std::max(account.ooms, check ? check->ooms : 0); }
  bool passed() const { return ooms() == 0 && divergences() == 0; }
};

/// Runs every pass that the options ask for.
TraceRunResult replay(const Trace& trace, const std::string& file, const TraceRunOptions& options);

/// The account pass. With `stop_at_failure` it ends at the first out-of-memory.
Account account_pass(const Trace& trace, const TraceRunOptions& options, Bytes capacity,
                     bool stop_at_failure = false);

struct Timing {
  double ns_per_event = 0;
  std::uint32_t passes = 0;
};
/// Times the allocator alone on a NullDevice: the ids are resolved to array slots beforehand; one
/// allocator; a warm-up pass and then at least five timed passes, each over the whole trace from an
/// empty allocator (everything is freed in between, outside the clock, so that what a pass meets is
/// the cache a repeated step meets); the median. With `planned`, through a replay for each of its
/// streams, rewound between passes within the clock.
Timing timing_pass(const Trace& trace, const cache::Config& config,
                   const PlannedTrace* planned = nullptr);

/// The smallest device, in steps of 2 MiB, on which an account pass has no out-of-memory, found by
/// bisection between the trace's peak of live bytes and what the unlimited run reserved. Bisection
/// assumes that what runs on a device also runs on every larger one; a caching allocator does not
/// promise that, so the figure is a capacity at which the trace runs and 2 MiB below which it does
/// not, not proof that no smaller one exists.
Bytes find_capacity(const Trace& trace, const TraceRunOptions& options, Bytes peak_reserved);

/// The check pass.
CheckOutcome check_pass(const Trace& trace, const TraceRunOptions& options, Bytes capacity);

}  // namespace ashlar::tool
