// The commands behind main.cc. Each takes its options as parsed from the command line, prints its
// result, and returns the exit code.
//
// Thread safety: one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/tool/audited_process.h"
#include "src/tool/plan_limits.h"

namespace ashlar::tool {

inline constexpr int kExitDone = 0;
inline constexpr int kExitFailed = 1;  ///< a check failed
inline constexpr int kExitUsage = 2;
inline constexpr int kExitUnreadable = 3;  ///< an input cannot be read, or an output not written
inline constexpr int kExitNoMemory = 4;    ///< this computer's memory is used up
/// The exit codes as every help page ends with them. Of several causes the largest code counts.
inline constexpr char kExitCodesText[] =
    "Exit codes: 0 done; 1 a check failed (a divergence, an out-of-memory, a capacity not met; of\n"
    "`check`, a file in which nothing ran); 2 the command line or a configuration is wrong; 3 an\n"
    "input cannot be read or an output not written; 4 this computer's memory is used up; 128 + N\n"
    "ended by signal N. With several inputs all are tried, and the largest code counts.\n";

/// `ashlar replay`.
struct TraceRunCommand {
  std::vector<std::string> traces;
  std::optional<std::uint32_t> trace_device;  ///< of snapshots
  std::string device = "sim";
  std::string capacity;
  std::string conf;
  bool check = false;
  std::uint32_t lag = 0;
  std::string policy;  ///< names of policies, or all; empty: no comparison
  bool planned = false;
  std::string plan;     ///< with --planned: a plan file; empty: the trace is planned
  PlanLimits limits;    ///< with --planned
  std::string perturb;  ///< sizes, allocations, or empty
  double alter = 0;
  std::optional<std::uint64_t> seed;
  std::string json;
  std::string report;
};
int run_traces(const TraceRunCommand& command);

/// `ashlar convert`.
struct ConvertCommand {
  std::string input;
  std::string output;
  std::string to;  ///< trace, pickle, json, rmm or perfetto; empty: what the output's ending says
  std::optional<std::uint32_t> trace_device;  ///< of a snapshot
  std::optional<std::size_t> limit_events;
};
int run_convert(const ConvertCommand& command);

/// `ashlar check`.
struct OpsCommand {
  std::vector<std::string> files;
  std::uint32_t rounds = 0;  ///< 0: each file once, without judging rounds
};
int run_check(const OpsCommand& command);

/// `ashlar reduce`.
struct ReduceCommand {
  std::string file;
  std::string output;
  std::uint32_t rounds = 0;
};
int run_reduce(const ReduceCommand& command);

/// `ashlar plan`.
struct PlanCommand {
  std::string problem;
  std::string from_trace;
  std::optional<std::uint32_t> trace_device;  ///< of a snapshot
  std::vector<std::string> capacities;        ///< SIZE for all spaces, or NAME=SIZE for one
  std::string alignment;                      ///< of --from-trace; empty: the allocator's granule
  PlanLimits limits;
  unsigned threads = 1;
  std::string warm_start;
  std::string verify;
  std::string output;
  std::string json;
  std::string report;
};
int run_plan(const PlanCommand& command);

/// `ashlar graph`.
struct GraphCommand {
  std::vector<std::string> graphs;
  std::string json;
  std::string report;
};
int run_graph(const GraphCommand& command);

/// `ashlar schedule`.
struct ScheduleCommand {
  std::vector<std::string> graphs;
  std::string placement = "auto";  ///< half, alternate or auto
  std::uint32_t backends = 2;
  bool is_verbose = false;
  std::string json;
};
int run_schedule(const ScheduleCommand& command);

/// `ashlar audit`.
struct AuditCommand {
  AuditedNames names;
  std::vector<std::string> files;  ///< `.ops`; none: random worlds
  std::uint64_t ops = 100'000;
  std::uint64_t seed = 1;
  std::string cases;  ///< the folder for minimal `.ops` files; empty: none are written
  std::string json;
};
int run_audit(const AuditCommand& command);

}  // namespace ashlar::tool
