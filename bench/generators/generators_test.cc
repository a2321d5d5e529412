// Workload: the generated workloads themselves. The suites and benchmarks that replay them rely on
// three things: a seed always gives the same file, the file is well formed, and the program in it
// keeps the caller's side of the contract.
//
// Does not prove that the workloads resemble real programs; each generator's file says why they do.
#include <algorithm>
#include <map>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "bench/generators/workloads.h"
#include "props/adapters/caching_allocator_subject.h"
#include "spec/lockstep/cache_lockstep.h"
#include "spec/ops/opcode_table.h"
#include "spec/ops/text.h"

namespace ashlar::bench {
namespace {

constexpr std::uint32_t kSteps = 5;
// for workloads of more than 1000 steps, each of which is short
constexpr std::uint32_t kSmallSteps = 300;

class Generators : public testing::TestWithParam<Workload> {
 protected:
  std::uint32_t steps() const {
    return std::min(GetParam().steps, GetParam().steps > 1000 ? kSmallSteps : kSteps);
  }
  WorkloadRecorder record(std::uint64_t seed) const {
    WorkloadRecorder recorder(GetParam().name, seed);
    GetParam().generate(recorder, steps());
    return recorder;
  }
};

TEST_P(Generators, GiveTheSameFilesForTheSameSeed) {
  WorkloadRecorder first = record(7), second = record(7);
  EXPECT_EQ(tool::format_trace(first.trace()), tool::format_trace(second.trace()));
  EXPECT_EQ(spec::print_ops(first.ops()), spec::print_ops(second.ops()));
}

TEST_P(Generators, GiveOtherFilesForAnotherSeed) {
  WorkloadRecorder first = record(7), second = record(8);
  EXPECT_NE(spec::print_ops(first.ops()), spec::print_ops(second.ops()));
}

TEST_P(Generators, WriteTracesThatParseToWhatWasRecorded) {
  WorkloadRecorder recorder = record(1);
  std::string error;
  const auto parsed = tool::parse_trace(tool::format_trace(recorder.trace()), "generated", &error);
  ASSERT_TRUE(parsed) << error;
  EXPECT_EQ(parsed->allocations, recorder.trace().allocations);
  EXPECT_EQ(parsed->frees, recorder.trace().frees);
  EXPECT_EQ(parsed->peak_live, recorder.trace().peak_live);
  EXPECT_GT(parsed->streams.size(), 1u) << "one stream only: the public traces have that already";
}

TEST_P(Generators, WriteOpsThatParseToWhatWasRecorded) {
  const WorkloadRecorder recorder = record(1);
  spec::OpFile parsed;
  spec::TextError error;
  ASSERT_TRUE(spec::parse_ops(spec::print_ops(recorder.ops()), &parsed, &error))
      << error.line << ": " << error.reason;
  EXPECT_EQ(parsed.subject, spec::Subject::kCache);
  EXPECT_EQ(parsed.ops, recorder.ops().ops);
}

/// The simulated GPU distinguishes a caller's fault from the allocator's.
TEST_P(Generators, RecordLawfulProgramsThatTheAllocatorRunsInStepWithItsModel) {
  spec::CacheLockstep::Options options;
  options.factory = props::caching_allocator_factory();
  options.walk_every = 64;
  const spec::LockstepResult result = spec::CacheLockstep::run(record(3).ops(), options);
  EXPECT_TRUE(result.is_good()) << result.divergence.text << "\nat op " << result.op_index << ": "
                                << result.op_text;
  EXPECT_EQ(result.caller_faults, 0u);
  EXPECT_EQ(result.skipped, 0u);
  EXPECT_EQ(result.ooms, 0u);
}

/// Walks a program with a vector clock per stream and one for the host. It finds two faults of a
/// program that the test above does not: a use that is not announced (the lockstep announces it in
/// the program's place), and a race of two kernels on one live block (the lockstep judges reuse
/// only).
class Clocks {
 public:
  /// By stream: how much of its work is known to come before.
  using Clock = std::map<std::uint64_t, std::uint64_t>;

  void record(std::uint64_t event, std::uint64_t stream) { events_[event] = streams_[stream]; }
  void wait(std::uint64_t stream, std::uint64_t event) { merge(streams_[stream], events_[event]); }
  void sync(std::uint64_t event) { merge(host_, events_[event]); }
  /// Enqueues one piece of work, ordered after all work that its stream and the host know of.
  /// Returns its clock.
  const Clock& enqueue(std::uint64_t stream) {
    Clock& clock = streams_[stream];
    merge(clock, host_);
    ++clock[stream];
    return clock;
  }
  /// Whether all of `work` comes before what has the clock `by`.
  static bool is_seen(const Clock& by, const Clock& work) {
    return std::all_of(work.begin(), work.end(), [&](const auto& entry) {
      const auto found = by.find(entry.first);
      return found != by.end() && found->second >= entry.second;
    });
  }
  static void merge(Clock& into, const Clock& from) {
    for (const auto& [stream, tick] : from) into[stream] = std::max(into[stream], tick);
  }

 private:
  std::map<std::uint64_t, Clock> streams_, events_;
  Clock host_;
};

TEST_P(Generators, OrderEveryAccessBehindTheOnesItDependsOnAndAnnounceOtherStreams) {
  namespace slot = spec::slot;
  struct Known {
    std::uint64_t stream = 0;
    Clocks::Clock written, touched;
    std::set<std::uint64_t> users, announced;
  };
  Clocks clocks;
  std::map<std::uint64_t, Known> live;
  const WorkloadRecorder recorder = record(3);
  for (const spec::Op& op : recorder.ops().ops) {
    const std::string text = spec::print_op(op);
    switch (op.slot) {
      case slot::kAlloc:  // is treated as a write on the block's own stream
        live[op.arg[0]] = {op.arg[2], clocks.enqueue(op.arg[2]), {}, {}, {}};
        break;
      case slot::kKernel: {
        ASSERT_TRUE(live.count(op.arg[1])) << text;
        Known& known = live[op.arg[1]];
        const Clocks::Clock& now = clocks.enqueue(op.arg[0]);
        const bool is_read = op.arg[2] == static_cast<std::uint64_t>(KernelTouch::kRead);
        EXPECT_TRUE(Clocks::is_seen(now, known.written)) << text << ": races with a write";
        EXPECT_TRUE(is_read || Clocks::is_seen(now, known.touched))
            << text << ": races with a read";
        Clocks::merge(known.touched, {{op.arg[0], now.at(op.arg[0])}});
        if (!is_read) known.written = {{op.arg[0], now.at(op.arg[0])}};
        if (op.arg[0] != known.stream) known.users.insert(op.arg[0]);
        break;
      }
      case slot::kRecord: clocks.record(op.arg[0], op.arg[1]); break;
      case slot::kWait: clocks.wait(op.arg[0], op.arg[1]); break;
      case slot::kSync: clocks.sync(op.arg[0]); break;
      case slot::kUse: live[op.arg[0]].announced.insert(op.arg[1]); break;
      case slot::kFree:
      case slot::kFreeOn: {
        Known& known = live[op.arg[0]];
        if (op.slot == slot::kFreeOn) known.announced.insert(op.arg[1]);
        EXPECT_EQ(known.users, known.announced) << text;
        live.erase(op.arg[0]);
        break;
      }
      default: break;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, Generators, testing::ValuesIn(workloads()),
                         [](const auto& instance) { return std::string(instance.param.name); });

}  // namespace
}  // namespace ashlar::bench
