// ashlar_bench [--ratios] [--once] [--rows=FILE] [--medians=FILE] [--beside=COMPILER=FILE]...
//              [--without=COMPILER=WHY]... [--traces=FOLDER]... [--benchmark_...]
//
// Without --ratios: Google Benchmark's own output and flags. With it: repetitions are collected and
// printed as a table of medians and a table of the figures that have a target; --rows writes those
// as JSON rows for ci/report, --medians the medians. --beside shows the medians that a program built
// by another compiler wrote to FILE, --without says why there are none. --once: no case is repeated,
// to see that all of them run. Measures, and never fails because a target is missed. Exit 2 for an
// unknown flag, 3 when a file cannot be read or written.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

#include "bench/cases/cases.h"
#include "bench/ratios.h"
#include "bench/sleeping_thread.h"

namespace {

namespace bench = ashlar::bench;

struct Options {
  bool has_ratios = false;
  int repetitions_max = std::numeric_limits<int>::max();
  std::string rows;
  std::string medians;
  std::vector<bench::OtherCompiler> others;
  std::vector<std::string> traces;
};

[[noreturn]] void fail(const std::string& file, const char* why) {
  std::fprintf(stderr, "%s: %s\n", file.c_str(), why);
  std::exit(3);
}

/// COMPILER=REST of a flag, in two.
std::pair<std::string, std::string> split(const std::string& text) {
  const std::size_t at = text.find('=');
  return {text.substr(0, at), at == std::string::npos ? "" : text.substr(at + 1)};
}

bench::OtherCompiler read_other(const std::string& text) {
  const auto [name, path] = split(text);
  std::ifstream file(path);
  bench::OtherCompiler other{name, "", bench::read_medians(file)};
  if (other.measured.empty()) fail(path, "has no medians");
  return other;
}

template <class Print>
void write_file(const std::string& path, Print&& print) {
  std::ofstream file(path);
  print(file);
  if (!file.flush()) fail(path, "cannot be written");
}

/// Takes our flags out of argv, and leaves Google Benchmark's.
Options take_options(int* argc, char** argv) {
  Options options;
  int kept = 1;
  for (int i = 1; i < *argc; ++i) {
    const std::string flag = argv[i];
    if (flag == "--ratios") {
      options.has_ratios = true;
    } else if (flag == "--once") {
      options.repetitions_max = 1;
    } else if (flag.rfind("--rows=", 0) == 0) {
      options.rows = flag.substr(7);
    } else if (flag.rfind("--medians=", 0) == 0) {
      options.medians = flag.substr(10);
    } else if (flag.rfind("--beside=", 0) == 0) {
      options.others.push_back(read_other(flag.substr(9)));
    } else if (flag.rfind("--without=", 0) == 0) {
      const auto [name, why] = split(flag.substr(10));
      options.others.push_back({name, why.empty() ? "not here" : why, {}});
    } else if (flag.rfind("--traces=", 0) == 0) {
      options.traces.push_back(flag.substr(9));
    } else {
      argv[kept++] = argv[i];
    }
  }
  *argc = kept;
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  [[maybe_unused]] const bench::SleepingThread same_conditions_for_every_case;
  const Options options = take_options(&argc, argv);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
#if ASHLAR_ASSERTIONS
  std::fputs("ashlar_bench: built with assertions on: its figures mean nothing\n", stderr);
#endif
  bench::register_loads();
  bench::register_pair();
  bench::register_pin();
  bench::register_mix(options.repetitions_max);
  bench::register_threads(options.repetitions_max);
  bench::register_growth(options.repetitions_max);
  bench::register_generated();
  bench::register_replay(options.traces);
  if (!options.has_ratios) {
    benchmark::RunSpecifiedBenchmarks();
    return 0;
  }
  bench::Collector collector;
  benchmark::RunSpecifiedBenchmarks(&collector);
  std::fputc('\n', stderr);
  const bench::Measured& measured = collector.measured();
  const std::vector<bench::Row> rows = bench::figures(measured, options.others);
  bench::print_medians(std::cout, measured);
  bench::print_left_out(std::cout, measured);
  bench::print_compilers(std::cout, measured, options.others);
  std::cout << '\n';
  bench::print_figures(std::cout, rows);
  if (!options.rows.empty()) {
    write_file(options.rows,
               [&](std::ostream& out) { bench::print_rows(out, rows, "bench/ratios"); });
  }
  if (!options.medians.empty())
    write_file(options.medians, [&](std::ostream& out) { bench::write_medians(out, measured); });
  return 0;
}
