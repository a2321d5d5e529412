// Sample traces on a GPU: Ashlar beside cuMemAlloc and cuMemAllocAsync.
//
//   ashlar_gpu_bench [--simulated] [--repeats N] TRACE...   a line of JSON for each trace: ns per event, medians
//   ashlar_gpu_bench --events TRACE                         the trace as lines `bytes slot stream`, bytes 0 a free: for
//                                                           bench/gpu/torch_replay.py
//
// An event is an allocation or a free, by the host's clock; no kernel runs. Each allocator replays the trace once to warm up, and
// then in each repeat once, in turns, so that the quotient of two is of one moment. Behind each pass, untimed, the GPU is waited for.
// Each keeps its memory meanwhile: the sample traces take up to 16 GiB.
// --simulated: over the driver's functions of a simulated GPU, whose times mean nothing and are not printed.
// Exit 77, with one line that says why, where there is no driver or no GPU; 1 where the GPU cannot be opened; 2: usage, or a trace that cannot be read.
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "bench/cases/event_program.h"
#include "bench/gpu/driver_adapters.h"
#include "props/on_gpu/no_gpu.h"
#include "src/tool/trace_file.h"

namespace ashlar::bench {
namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  bool is_simulated = false;
  bool prints_events = false;
  unsigned repeats = 7;
  std::vector<std::string> traces;
};

bool read_options(int count, char** words, Options* options) {
  for (int i = 1; i < count; ++i) {
    const std::string_view word = words[i];
    if (word == "--simulated") {
      options->is_simulated = true;
    } else if (word == "--events") {
      options->prints_events = true;
    } else if (word == "--repeats" && i + 1 < count) {
      const char* const text = words[++i];
      const auto [end, failed] = std::from_chars(text, text + std::strlen(text), options->repeats);
      if (failed != std::errc() || *end != '\0' || options->repeats == 0) return false;
    } else if (word.substr(0, 2) == "--") {
      return false;
    } else {
      options->traces.emplace_back(word);
    }
  }
  return !options->traces.empty();
}

/// The stream of each event: a free's is its allocation's.
std::vector<std::uint32_t> streams_of(const Program& program) {
  std::vector<std::uint32_t> of_slot(program.slots), streams;
  streams.reserve(program.events.size());
  for (const Event& event : program.events) {
    if (event.bytes != 0) of_slot[event.slot] = event.stream;
    streams.push_back(of_slot[event.slot]);
  }
  return streams;
}

/// An allocator with what it has live, and its times.
template <class Adapter>
class Replay {
 public:
  Replay(GpuForBench& gpu, const Program& program, const std::vector<std::uint32_t>& streams)
      : adapter_(gpu), program_(program), streams_(streams), blocks_(program.slots) {}

  /// Nanoseconds for each event.
  double pass() {
    const Clock::time_point begun = Clock::now();
    for (std::size_t i = 0; i < program_.events.size(); ++i) {
      const Event& event = program_.events[i];
      if (event.bytes == 0) adapter_.free(blocks_[event.slot], streams_[i]);
      else blocks_[event.slot] = adapter_.allocate(event.bytes, streams_[i]);
    }
    const std::chrono::duration<double, std::nano> taken = Clock::now() - begun;
    return taken.count() / static_cast<double>(program_.events.size());
  }

 private:
  Adapter adapter_;
  const Program& program_;
  const std::vector<std::uint32_t>& streams_;
  std::vector<typename Adapter::Handle> blocks_;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

struct Times {
  std::vector<double> ashlar, alloc, async;
};

Times measure(GpuForBench& gpu, const Program& program, unsigned repeats) {
  const std::vector<std::uint32_t> streams = streams_of(program);
  Replay<AshlarOnGpu> ashlar(gpu, program, streams);
  Replay<MemAlloc> alloc(gpu, program, streams);
  Replay<MemAllocAsync> async(gpu, program, streams);
  Times times;
  const auto pass = [&](auto& replay, std::vector<double>* into) {
    const double ns = replay.pass();
    if (!gpu.session.device().synchronize().is_ok()) give_up("the GPU", "an error");
    if (into != nullptr) into->push_back(ns);
  };
  pass(ashlar, nullptr);
  pass(alloc, nullptr);
  pass(async, nullptr);
  for (unsigned n = 0; n < repeats; ++n) {
    pass(ashlar, &times.ashlar);
    pass(alloc, &times.alloc);
    pass(async, &times.async);
  }
  return times;
}

double quotient(const std::vector<double>& of, const std::vector<double>& by) {
  std::vector<double> each;
  each.reserve(of.size());
  for (std::size_t i = 0; i < of.size(); ++i) each.push_back(of[i] / by[i]);
  return median(each);
}

void print(const std::string& trace, const Program& program, const Times& times) {
  const std::string file = trace.substr(trace.find_last_of('/') + 1);
  std::printf(
      "{\"trace\": \"%s\", \"events\": %zu, \"ashlar_ns\": %.1f, \"cuMemAlloc_ns\": %.1f, "
      "\"cuMemAllocAsync_ns\": %.1f, \"ashlar_by_cuMemAlloc\": %.4f, "
      "\"ashlar_by_cuMemAllocAsync\": %.4f}\n",
      file.substr(0, file.find(".trace")).c_str(), program.events.size(), median(times.ashlar),
      median(times.alloc), median(times.async), quotient(times.ashlar, times.alloc),
      quotient(times.ashlar, times.async));
  std::fflush(stdout);
}

int run_on_gpu(const Options& options, const std::vector<Program>& programs) {
  props::SimulatedMood mood;
  mood.has_own_time = mood.has_pages = true;
  mood.memory = Bytes{};
  if (const Status opened = props::GpuSession::open(options.is_simulated, mood); !opened.is_ok())
    return props::end_without_gpu(opened, options.is_simulated);
  props::GpuSession& session = props::GpuSession::get();
  session.enter();
  GpuForBench gpu{session, {}, {}};
  if (const Status loaded = gpu.memory.load(session.library()); !loaded.is_ok())
    give_up("the driver", loaded.why());
  for (unsigned s = 0; s < kStreamsMax; ++s) gpu.streams.push_back(session.create_stream());
  std::size_t events = 0;
  for (std::size_t i = 0; i < programs.size(); ++i) {
    const Times times = measure(gpu, programs[i], options.repeats);
    events += programs[i].events.size();
    if (!options.is_simulated) print(options.traces[i], programs[i], times);
  }
  for (const Stream& each : gpu.streams) session.destroy_stream(each);
  const std::string faults = session.take_faults();
  session.leave();
  props::GpuSession::close();
  if (!faults.empty()) std::fprintf(stderr, "%s\n", faults.c_str());
  if (options.is_simulated)
    std::printf("%zu traces, %zu events, by each of 3 allocators\n", programs.size(), events);
  return faults.empty() ? 0 : 1;
}

int run(int count, char** words) {
  Options options;
  if (!read_options(count, words, &options)) {
    std::fprintf(stderr, "usage: %s [--simulated] [--repeats N] [--events] TRACE...\n", words[0]);
    return 2;
  }
  std::vector<Program> programs;
  for (const std::string& path : options.traces) {
    std::string error;
    const auto trace = tool::read_trace(path, &error);
    if (!trace) {
      std::fprintf(stderr, "%s\n", error.c_str());
      return 2;
    }
    programs.push_back(lay_out(*trace));
  }
  if (!options.prints_events) return run_on_gpu(options, programs);
  for (const Program& program : programs) {
    const std::vector<std::uint32_t> streams = streams_of(program);
    for (std::size_t i = 0; i < program.events.size(); ++i)
      std::printf("%llu %u %u\n", static_cast<unsigned long long>(program.events[i].bytes),
                  program.events[i].slot, streams[i]);
  }
  return 0;
}

}  // namespace
}  // namespace ashlar::bench

int main(int count, char** words) { return ashlar::bench::run(count, words); }
