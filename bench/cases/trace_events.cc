// Replay of the sample traces, and of the generated ones (several streams): ns per event, allocator
// time only.
//
// An event is an allocation or a free; what a trace leaves live is freed at the end of a pass, and
// those frees are events too. One pass warms up (and grows), each iteration is one further pass.
// Reading and laying out the trace is not timed. The floor's, CUB's and ours run over a device that
// costs nothing; malloc's memory is never touched.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include <benchmark/benchmark.h>

#include <ashlar/cache/caching_upstream.h>
#include <ashlar/plan/planner.h>
#include <ashlar/replay/recorder.h>
#include <ashlar/replay/replay.h>

#include "bench/cases/adapters.h"
#include "bench/cases/cases.h"
#include "bench/cases/event_program.h"
#include "bench/generators/workloads.h"
#include "src/tool/trace_file.h"

namespace ashlar::bench {
namespace {

template <class Adapter>
void replay(benchmark::State& state, const Program& program) {
  Adapter adapter;
  std::vector<typename Adapter::Handle> blocks(program.slots);
  pass(adapter, program, blocks);
  for (auto _ : state) pass(adapter, program, blocks);
  state.counters["events"] = static_cast<double>(program.events.size());
}

/// The same program through a replay of its plan, rewound after each pass. Its streams count as
/// one.
class PlannedAdapter {
 public:
  static constexpr const char* kName = "planned";
  using Handle = Address;

  explicit PlannedAdapter(const Program& program)
      : upstream_(*direct_.allocator), way_(&upstream_) {
    replay::Recorder recorder(upstream_, direct_.streams[0]);
    way_ = &recorder;
    std::vector<Handle> blocks(program.slots);
    pass(*this, program, blocks);
    auto recording = recorder.take();
    if (!recording.is_ok()) give_up(kName, recording.status().why());
    plan::PlanOptions options;
    options.work = 0;
    const plan::Plan plan = plan::make_plan(replay::problem_of(recording.value()), options);
    auto made = replay::Replay::create(upstream_, direct_.streams[0], recording.value(), plan);
    if (!made.is_ok()) give_up(kName, made.status().why());
    replay_ = std::move(made).value();
    way_ = replay_.get();
  }
  Handle allocate(std::uint64_t bytes, unsigned) {
    const Result<Address> got = way_->allocate(Bytes{bytes}, direct_.streams[0]);
    if (!got.is_ok()) give_up(kName, got.status().why());
    return got.value();
  }
  void free(Handle handle) {
    const Status status = way_->free(handle);
    if (!status.is_ok()) give_up(kName, status.why());
  }
  void rewind() {
    if (!replay_->rewind().is_ok()) give_up(kName, "no segment");
  }
  std::uint64_t fallbacks() const { return replay_->counts().fallbacks(); }

 private:
  AshlarAdapter direct_;
  cache::CachingUpstream upstream_;
  Upstream* way_;
  std::unique_ptr<replay::Replay> replay_;
};

void replay_planned(benchmark::State& state, const Program& program) {
  PlannedAdapter adapter(program);
  std::vector<Address> blocks(program.slots);
  for (auto _ : state) {
    pass(adapter, program, blocks);
    adapter.rewind();
  }
  if (adapter.fallbacks() != 0)
    give_up(PlannedAdapter::kName, "a run equal to the recording fell back");
  state.counters["events"] = static_cast<double>(program.events.size());
}

void register_trace(const std::string& name, const tool::Trace& trace) {
  const auto program = std::make_shared<Program>(lay_out(trace));
  for_each_shared_adapter([&](auto tag) {
    using Adapter = typename decltype(tag)::type;
    if (std::is_same_v<Adapter, PinnedAdapter>) return;  // the traces are of device memory
    benchmark::RegisterBenchmark(
        (name + "/" + Adapter::kName).c_str(),
        [program](benchmark::State& state) { replay<Adapter>(state, *program); });
  });
  benchmark::RegisterBenchmark(
      (name + "/" + PlannedAdapter::kName).c_str(),
      [program](benchmark::State& state) { replay_planned(state, *program); });
}

}  // namespace

void register_generated() {
  for (const Workload& workload : workloads()) {
    WorkloadRecorder recorder(workload.name, 1);
    workload.generate(recorder, workload.steps);
    register_trace(std::string("replay-generated/") + workload.name, recorder.trace());
  }
}

void register_replay(const std::vector<std::string>& folders) {
  namespace fs = std::filesystem;
  std::vector<fs::path> paths;
  for (const std::string& folder : folders) {
    std::error_code error;
    if (!fs::is_directory(folder, error)) continue;
    for (const auto& entry : fs::directory_iterator(folder)) {
      const std::string name = entry.path().filename().string();
      if (name.ends_with(".trace.gz") || name.ends_with(".trace")) paths.push_back(entry.path());
    }
  }
  const auto name_of = [](const fs::path& path) {
    const std::string name = path.filename().string();
    return name.substr(0, name.find(".trace"));
  };
  // A trace that is in two folders is replayed once, from the first.
  std::stable_sort(paths.begin(), paths.end(),
                   [&](const auto& a, const auto& b) { return name_of(a) < name_of(b); });
  const auto is_same = [&](const auto& a, const auto& b) { return name_of(a) == name_of(b); };
  paths.erase(std::unique(paths.begin(), paths.end(), is_same), paths.end());
  for (const std::string& folder : folders) {
    std::ifstream elsewhere(folder + "/elsewhere.txt");
    for (std::string name; std::getline(elsewhere, name);) {
      const bool is_here = std::any_of(paths.begin(), paths.end(),
                                       [&](const auto& path) { return name_of(path) == name; });
      if (!is_here) std::fprintf(stderr, "skipped: the trace %s is not here\n", name.c_str());
    }
  }
  for (const fs::path& path : paths) {
    std::string error;
    const auto trace = tool::read_trace(path.string(), &error);
    if (!trace) give_up("replay", error.c_str());
    register_trace("replay/" + name_of(path), *trace);
  }
}

}  // namespace ashlar::bench
