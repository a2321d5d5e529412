// Compares two checkouts' allocators in one process, in turns of milliseconds. bench/paired runs it.
//
//   ashlar_paired OTHER.so THIS.so COPY.so [TRACE...]
//
// Each is a shared object of side.cc; COPY.so is a copy of THIS.so. A case is run by two of them in
// turn, other first, then this first, and so on; each round gives a quotient of two neighbouring
// slices. This beside its copy shows what the machine and the place of the code in memory do.
// One line per case: the medians in ns; the median quotient with its quartiles; the same of the copy;
// `slower` if the lower quartile lies above the copy's upper one, `faster` the other way round.
// A case is made anew kWorlds times, so that no single layout of its memory decides.
// Exit 0 when it could measure, whatever it found; 2 usage.
#include <dlfcn.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "bench/cases/event_program.h"
#include "bench/sides/side.h"
#include "bench/sleeping_thread.h"
#include "src/tool/trace_file.h"

namespace ashlar::bench {
namespace {

constexpr unsigned kWorlds = 3;
constexpr unsigned kRounds = 60;
constexpr double kSliceNs = 4e6;

using Make = std::function<SideCase*(const Side&)>;

const Side& load(const char* path) {
  void* object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  const void* side = object == nullptr ? nullptr : dlsym(object, "ashlar_bench_side");
  if (side == nullptr) {
    std::fprintf(stderr, "ashlar_paired: %s\n", dlerror());
    std::exit(2);
  }
  return *static_cast<const Side*>(side);
}

double cpu_ns() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

double timed(const Side& side, SideCase* of, std::uint64_t turns) {
  const double begin = cpu_ns();
  side.run(of, turns);
  return (cpu_ns() - begin) / static_cast<double>(turns);
}

/// The part of the values below which `fraction` of them lie.
double quantile(std::vector<double> values, double fraction) {
  const auto at = static_cast<std::ptrdiff_t>(fraction * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + at, values.end());
  return values[static_cast<std::size_t>(at)];
}

struct Compared {
  std::vector<double> first_ns, second_ns, quotients;  ///< second over first
};

Compared compare(const Side& first, const Side& second, const Make& make) {
  Compared result;
  for (unsigned world = 0; world < kWorlds; ++world) {
    SideCase* const a = make(first);
    SideCase* const b = make(second);
    const double once = timed(first, a, 1);
    const double ns = timed(first, a, static_cast<std::uint64_t>(std::max(1.0, 1e5 / once)));
    const auto turns = static_cast<std::uint64_t>(std::max(1.0, kSliceNs / ns));
    for (unsigned round = 0; round < kRounds; ++round) {
      double first_ns = 0;
      if (round % 2 == 0) first_ns = timed(first, a, turns);
      const double second_ns = timed(second, b, turns);
      if (round % 2 != 0) first_ns = timed(first, a, turns);
      result.first_ns.push_back(first_ns);
      result.second_ns.push_back(second_ns);
      result.quotients.push_back(second_ns / first_ns);
    }
    first.destroy(a);
    second.destroy(b);
  }
  return result;
}

/// `ops` are the operations of a turn.
void print_case(const std::string& name, double ops, const Side& other, const Side& self,
                const Side& copy, const Make& make) {
  const Compared both = compare(other, self, make);
  const Compared noise = compare(self, copy, make);
  const double low = quantile(both.quotients, 0.25), high = quantile(both.quotients, 0.75);
  const double noise_low = quantile(noise.quotients, 0.25);
  const double noise_high = quantile(noise.quotients, 0.75);
  const char* mark = low > noise_high ? "slower" : high < noise_low ? "faster" : "";
  std::printf("%-40s %9.2f %9.2f %7.3f (%.3f .. %.3f)   %.3f (%.3f .. %.3f) %s\n", name.c_str(),
              quantile(both.first_ns, 0.5) / ops, quantile(both.second_ns, 0.5) / ops,
              quantile(both.quotients, 0.5), low, high, quantile(noise.quotients, 0.5), noise_low,
              noise_high, mark);
  std::fflush(stdout);
}

int run(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: ashlar_paired OTHER.so THIS.so COPY.so [TRACE...]\n");
    return 2;
  }
  const SleepingThread sleeping;
  const Side &other = load(argv[1]), &self = load(argv[2]), &copy = load(argv[3]);
  std::printf("%-40s %9s %9s %7s %-18s   %s\n", "median CPU ns of an operation", "other", "this",
              "ratio", "(quartiles)", "this beside its copy");
  const auto print = [&](const std::string& name, double ops, const Make& make) {
    print_case(name, ops, other, self, copy, make);
  };
  for (const std::uint64_t kib : {4, 1024, 32768}) {
    print("pair/" + std::to_string(kib) + " KiB", 1,
          [kib](const Side& side) { return side.make_pair(kib * 1024); });
  }
  for (const std::size_t live : {100, 1'000, 10'000, 100'000, 1'000'000}) {
    print("mix/" + std::to_string(live) + " blocks", 1,
          [live](const Side& side) { return side.make_mix(live); });
  }
  for (int i = 4; i < argc; ++i) {
    std::string error;
    const auto trace = tool::read_trace(argv[i], &error);
    if (!trace) {
      std::fprintf(stderr, "ashlar_paired: %s\n", error.c_str());
      return 2;
    }
    const Program program = lay_out(*trace);
    const std::string name = std::filesystem::path(argv[i]).filename().string();
    print("replay/" + name.substr(0, name.find(".trace")),
          static_cast<double>(program.events.size()),
          [&program](const Side& side) { return side.make_replay(&program); });
  }
  return 0;
}

}  // namespace
}  // namespace ashlar::bench

int main(int argc, char** argv) { return ashlar::bench::run(argc, argv); }
