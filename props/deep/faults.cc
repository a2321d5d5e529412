// The deep fault loop: failing calls (props/sequences/failing_calls.h) over many seeded sequences of
// every shape and over windows of real traces. ci/deep runs it.
//
//   ashlar_faults --seeds N [--first SEED] [--traces PATH] [--windows N] [--share I] [--shares N]
//
// Of each `.trace.gz` in the folder PATH, or of the file PATH, N windows of its events are taken,
// evenly spaced; every second one runs on a device that is hardly large enough. With --shares every N-th
// sequence and window from the I-th is run, I from 0, so that N processes do all. Prints one line at
// the end: `single pairs at_end unreached windows`. The first divergence ends it: its reduced `.ops`
// is printed; exit 1. Exit 2: usage. Exit 3: a trace cannot be read.
// Thread safety: one thread.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "props/sequences/cache_sequences.h"
#include "props/sequences/failing_calls.h"
#include "spec/ops/opcode_table.h"
#include "src/tool/trace_file.h"

namespace ashlar::props {
namespace {

namespace slot = spec::slot;

constexpr std::size_t kWindowEvents = 80;
constexpr FaultChoice kChoice{.codes = 2, .partners = 3};

struct Options {
  std::uint64_t first = 1;
  std::uint64_t seeds = 0;
  std::string traces;
  std::uint64_t windows = 2;
  std::uint64_t share = 0;
  std::uint64_t shares = 1;
};

/// Writes a window of a trace as ops: its streams, some uses on another stream, and progress.
class WindowWriter {
 public:
  spec::OpFile write(const tool::Trace& trace, std::size_t first, bool is_tight) {
    const std::size_t end = std::min(first + kWindowEvents, trace.events.size());
    put(slot::kSeed, {first});
    put(slot::kDevice, {0, 0});
    const std::size_t streams = std::max<std::size_t>(trace.streams.size(), 2);
    for (std::uint64_t s = 1; s < streams; ++s) put(slot::kStreamCreate, {s, 0});
    for (std::size_t i = first; i < end; ++i) put_event(trace.events[i], streams);
    if (is_tight) file_.ops[1].arg[1] = peak_ + peak_ / 8 + (std::uint64_t{24} << 20);
    return std::move(file_);
  }

 private:
  void put(std::uint8_t s, std::array<std::uint64_t, spec::kArgsMax> arg) {
    spec::Op op;
    op.slot = s;
    op.arg = arg;
    file_.ops.push_back(std::move(op));
  }

  void put_event(const tool::TraceEvent& event, std::size_t streams) {
    if (event.kind == tool::TraceEvent::Kind::kAllocate) {
      const std::uint64_t p = event.slot;
      put(slot::kAlloc, {p, event.size.count(), event.stream});
      size_of_[p] = event.size.count();
      live_ += event.size.count();
      peak_ = std::max(peak_, live_);
      const std::uint64_t other = (event.stream + 1) % streams;
      if (size_of_.size() % 3 == 0) put(slot::kUse, {p, other});
      if (size_of_.size() % 3 == 0) put(slot::kKernel, {other, p, 0});
    } else if (event.kind == tool::TraceEvent::Kind::kFree) {
      const auto size = size_of_.find(event.slot);
      if (size == size_of_.end()) return;  // of an allocation before the window
      put(slot::kFree, {event.slot});
      live_ -= size->second;
    }
    if (file_.ops.size() % 7 == 0) put(slot::kStep, {file_.ops.size() % streams, 2});
  }

  spec::OpFile file_;
  std::unordered_map<std::uint64_t, std::uint64_t> size_of_;
  std::uint64_t live_ = 0;
  std::uint64_t peak_ = 0;
};

bool fail_calls(const spec::OpFile& file, std::uint64_t seed, const std::string& what,
                FaultTally* tally) {
  FaultChoice choice = kChoice;
  choice.seed = seed;
  const std::string text = fail_each_call(file, choice, tally);
  if (!text.empty()) std::fprintf(stderr, "%s: %s\n", what.c_str(), text.c_str());
  return text.empty();
}

bool fail_seeds(const Options& options, FaultTally* tally) {
  for (std::uint64_t seed = options.first; seed < options.first + options.seeds; ++seed) {
    if (seed % options.shares != options.share) continue;
    SequenceShape shape = any_shape(seed);
    shape.has_failures = false;  // no other failures
    shape.ops = 40 + static_cast<std::uint32_t>(seed % 3) * 20;
    shape.streams = 2 + static_cast<std::uint32_t>(seed % 4);
    if (!fail_calls(random_sequence(shape, seed), seed, "seed " + std::to_string(seed), tally))
      return false;
  }
  return true;
}

/// The file, or the folder's traces, by name.
std::vector<std::string> traces_in(const std::string& path) {
  if (!std::filesystem::is_directory(path)) return {path};
  constexpr std::string_view kEnding = ".trace.gz";
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    std::string name = entry.path().string();
    if (std::string_view(name).ends_with(kEnding)) paths.push_back(std::move(name));
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

/// Exit status.
int fail_traces(const Options& options, FaultTally* tally, std::uint64_t* windows) {
  std::uint64_t number = 0;
  for (const std::string& path : traces_in(options.traces)) {
    std::string error;
    const std::optional<tool::Trace> trace = tool::read_trace(path, &error);
    if (!trace) {
      std::fprintf(stderr, "%s\n", error.c_str());
      return 3;
    }
    for (std::uint64_t i = 0; i < options.windows; ++i) {
      if (number++ % options.shares != options.share) continue;
      const std::size_t first = trace->events.size() * i / options.windows;
      const std::string what = path + ", event " + std::to_string(first);
      const spec::OpFile file = WindowWriter().write(*trace, first, i % 2 == 1);
      if (!fail_calls(file, first, what, tally)) return 1;
      ++*windows;
    }
  }
  return 0;
}

bool parse(int argc, char** argv, Options* options) {
  for (int i = 1; i < argc; i += 2) {
    if (i + 1 == argc) return false;
    const std::string name = argv[i];
    char* end = nullptr;
    if (name == "--seeds") options->seeds = std::strtoull(argv[i + 1], &end, 10);
    else if (name == "--first") options->first = std::strtoull(argv[i + 1], &end, 10);
    else if (name == "--windows") options->windows = std::strtoull(argv[i + 1], &end, 10);
    else if (name == "--share") options->share = std::strtoull(argv[i + 1], &end, 10);
    else if (name == "--shares") options->shares = std::strtoull(argv[i + 1], &end, 10);
    else if (name == "--traces") options->traces = argv[i + 1];
    else return false;
    if (end != nullptr && (end == argv[i + 1] || *end != '\0')) return false;
  }
  return (options->seeds != 0 || !options->traces.empty()) && options->share < options->shares;
}

int run(const Options& options) {
  FaultTally tally;
  std::uint64_t windows = 0;
  if (!fail_seeds(options, &tally)) return 1;
  if (!options.traces.empty()) {
    if (const int status = fail_traces(options, &tally, &windows); status != 0) return status;
  }
  for (const std::uint64_t count : {tally.single, tally.pairs, tally.at_end, tally.unreached})
    std::printf("%llu ", static_cast<unsigned long long>(count));
  std::printf("%llu\n", static_cast<unsigned long long>(windows));
  return 0;
}

}  // namespace
}  // namespace ashlar::props

int main(int argc, char** argv) {
  ashlar::props::Options options;
  if (!ashlar::props::parse(argc, argv, &options)) {
    std::fprintf(stderr,
                 "usage: ashlar_faults [--seeds N] [--first SEED] [--traces PATH] [--windows N] "
                 "[--share I] [--shares N]\n");
    return 2;
  }
  return ashlar::props::run(options);
}
