// Sample traces on a GPU: Ashlar beside cuMemAlloc and cuMemAllocAsync.
//
//   ashlar_gpu_bench [--simulated [--memory MIB]] [--repeats N] TRACE...   a line of JSON for each trace: ns per event, medians
//   ashlar_gpu_bench --events TRACE                         the trace as lines `bytes slot stream`, bytes 0 a free: for
//                                                           bench/gpu/torch_replay.py
//
// An event is an allocation or a free, by the host's clock; no kernel runs. Each allocator replays the trace once to warm up, and
// then in each repeat once, in turns, so that the quotient of two is of one moment. Behind each pass, untimed, the GPU is waited for.
// Each keeps its memory meanwhile: the sample traces take up to 16 GiB. A trace for which too little of the GPU's memory is free is
// not run, and its line says so; the same if memory is refused in spite of that.
// --simulated: over the driver's functions of a simulated GPU (with so much memory; without --memory there is no limit), whose times
// mean nothing and are not printed.
// Exit 77, with one line that says why, where there is no driver or no GPU; 1 where the GPU cannot be opened; 2: usage, or a trace that cannot be read.
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <map>
#include <optional>
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
  unsigned memory_mib = 0;  ///< of the simulated GPU; 0: no limit
  std::vector<std::string> traces;
};

bool read_number(const char* text, unsigned* into) {
  const auto [end, failed] = std::from_chars(text, text + std::strlen(text), *into);
  return failed == std::errc() && *end == '\0' && *into != 0;
}

bool read_options(int count, char** words, Options* options) {
  for (int i = 1; i < count; ++i) {
    const std::string_view word = words[i];
    if (word == "--simulated") {
      options->is_simulated = true;
    } else if (word == "--events") {
      options->prints_events = true;
    } else if (word == "--repeats" && i + 1 < count) {
      if (!read_number(words[++i], &options->repeats)) return false;
    } else if (word == "--memory" && i + 1 < count) {
      if (!read_number(words[++i], &options->memory_mib)) return false;
    } else if (word.substr(0, 2) == "--") {
      return false;
    } else {
      options->traces.emplace_back(word);
    }
  }
  return !options->traces.empty() && (options->memory_mib == 0 || options->is_simulated);
}

/// The most bytes that are live at a time.
std::uint64_t peak_of(const Program& program) {
  std::vector<std::uint64_t> of_slot(program.slots);
  std::uint64_t live = 0, peak = 0;
  for (const Event& event : program.events) {
    live = live + event.bytes - (event.bytes == 0 ? of_slot[event.slot] : 0);
    of_slot[event.slot] = event.bytes;
    peak = std::max(peak, live);
  }
  return peak;
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

  /// Nanoseconds for each event. None if the GPU has too little memory: then nothing is live.
  std::optional<double> pass() {
    const Clock::time_point begun = Clock::now();
    for (std::size_t i = 0; i < program_.events.size(); ++i) {
      const Event& event = program_.events[i];
      if (event.bytes == 0) {
        adapter_.free(blocks_[event.slot], streams_[i]);
        continue;
      }
      blocks_[event.slot] = adapter_.allocate(event.bytes, streams_[i]);
      if (blocks_[event.slot] == Handle()) [[unlikely]] {
        free_live(i);
        return std::nullopt;
      }
    }
    const std::chrono::duration<double, std::nano> taken = Clock::now() - begun;
    return taken.count() / static_cast<double>(program_.events.size());
  }

 private:
  using Handle = typename Adapter::Handle;

  /// Frees what the first so many events have left live.
  void free_live(std::size_t events) {
    std::map<std::uint32_t, std::uint32_t> stream_of;
    for (std::size_t i = 0; i < events; ++i) {
      const Event& event = program_.events[i];
      if (event.bytes == 0) stream_of.erase(event.slot);
      else stream_of[event.slot] = streams_[i];
    }
    for (const auto& [slot, stream] : stream_of) adapter_.free(blocks_[slot], stream);
  }

  Adapter adapter_;
  const Program& program_;
  const std::vector<std::uint32_t>& streams_;
  std::vector<Handle> blocks_;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

struct Times {
  std::vector<double> ashlar, alloc, async;
  const char* refused = nullptr;  ///< to whom the GPU had no more memory to give
};

void wait_for(GpuForBench& gpu) {
  if (!gpu.session.device().synchronize().is_ok()) give_up("the GPU", "an error");
}

Times measure(GpuForBench& gpu, const Program& program, unsigned repeats) {
  const std::vector<std::uint32_t> streams = streams_of(program);
  Replay<AshlarOnGpu> ashlar(gpu, program, streams);
  Replay<MemAlloc> alloc(gpu, program, streams);
  Replay<MemAllocAsync> async(gpu, program, streams);
  Times times;
  const auto pass = [&]<class Adapter>(Replay<Adapter>& replay, std::vector<double>* into) {
    if (times.refused != nullptr) return;
    const std::optional<double> ns = replay.pass();
    wait_for(gpu);
    if (!ns) times.refused = Adapter::kName;
    else if (into != nullptr) into->push_back(*ns);
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

std::string name_of(const std::string& trace) {
  const std::string file = trace.substr(trace.find_last_of('/') + 1);
  return file.substr(0, file.find(".trace"));
}

void print(const std::string& trace, const Program& program, const Times& times) {
  std::printf(
      "{\"trace\": \"%s\", \"events\": %zu, \"ashlar_ns\": %.1f, \"cuMemAlloc_ns\": %.1f, "
      "\"cuMemAllocAsync_ns\": %.1f, \"ashlar_by_cuMemAlloc\": %.4f, "
      "\"ashlar_by_cuMemAllocAsync\": %.4f}\n",
      name_of(trace).c_str(), program.events.size(), median(times.ashlar), median(times.alloc),
      median(times.async), quotient(times.ashlar, times.alloc),
      quotient(times.ashlar, times.async));
  std::fflush(stdout);
}

void print_skipped(const std::string& trace, const Program& program, const std::string& why) {
  std::printf("{\"trace\": \"%s\", \"events\": %zu, \"skipped\": \"%s\"}\n", name_of(trace).c_str(),
              program.events.size(), why.c_str());
  std::fflush(stdout);
}

std::string in_mib(std::uint64_t bytes) { return std::to_string(bytes >> 20) + " MiB"; }

/// Why the GPU has too little memory for what three allocators keep of it; empty: it has enough.
std::string reason_to_skip(GpuForBench& gpu, const Program& program) {
  wait_for(gpu);  // a pool gives back then what the last trace had
  const Result<device::MemoryInfo> info = gpu.session.device().memory_info();
  if (!info.is_ok()) give_up("the GPU", info.status().why());
  const std::uint64_t peak = peak_of(program), free = info.value().free.count();
  if (free >= peak + peak + peak / 2) return "";
  return in_mib(free) + " are free, less than 2.5 times the trace's " + in_mib(peak);
}

/// Whether the trace was measured; else a line says why not.
bool run_trace(GpuForBench& gpu, const Options& options, const std::string& trace,
               const Program& program) {
  std::string why = reason_to_skip(gpu, program);
  Times times;
  if (why.empty()) times = measure(gpu, program, options.repeats);
  if (times.refused != nullptr) why = std::string(times.refused) + " was refused memory";
  if (!why.empty()) print_skipped(trace, program, why);
  else if (!options.is_simulated) print(trace, program, times);
  return why.empty();
}

int run_on_gpu(const Options& options, const std::vector<Program>& programs) {
  props::SimulatedMood mood;
  mood.has_own_time = mood.has_pages = true;
  mood.memory = Bytes{std::uint64_t{options.memory_mib} << 20};
  if (const Status opened = props::GpuSession::open(options.is_simulated, mood); !opened.is_ok())
    return props::end_without_gpu(opened, options.is_simulated);
  props::GpuSession& session = props::GpuSession::get();
  session.enter();
  GpuForBench gpu{session, {}, {}};
  if (const Status loaded = gpu.memory.load(session.library()); !loaded.is_ok())
    give_up("the driver", loaded.why());
  for (unsigned s = 0; s < kStreamsMax; ++s) gpu.streams.push_back(session.create_stream());
  std::size_t traces = 0, events = 0;
  for (std::size_t i = 0; i < programs.size(); ++i) {
    if (!run_trace(gpu, options, options.traces[i], programs[i])) continue;
    ++traces;
    events += programs[i].events.size();
  }
  for (const Stream& each : gpu.streams) session.destroy_stream(each);
  const std::string faults = session.take_faults();
  session.leave();
  props::GpuSession::close();
  if (!faults.empty()) std::fprintf(stderr, "%s\n", faults.c_str());
  if (options.is_simulated)
    std::printf("%zu traces, %zu events, by each of 3 allocators\n", traces, events);
  return faults.empty() ? 0 : 1;
}

int run(int count, char** words) {
  Options options;
  if (!read_options(count, words, &options)) {
    std::fprintf(stderr,
                 "usage: %s [--simulated [--memory MIB]] [--repeats N] [--events] TRACE...\n",
                 words[0]);
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
