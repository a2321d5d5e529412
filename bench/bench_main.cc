// ashlar_bench [--ratios] [--rows=FILE] [--traces=FOLDER]... [--benchmark_...]
//
// Without --ratios: Google Benchmark's own output and flags. With it: repetitions are collected and
// printed as a table of medians and a table of the figures that have a target; --rows writes those
// as JSON rows for ci/report. Measures, and never fails because a target is missed. Exit 2 for an
// unknown flag, 3 when a file cannot be written.
#include <cstdio>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "bench/cases/cases.h"
#include "bench/ratios.h"
#include "bench/sleeping_thread.h"

namespace {

struct Options {
  bool has_ratios = false;
  std::string rows;
  std::vector<std::string> traces;
};

/// Takes our flags out of argv, and leaves Google Benchmark's.
Options take_options(int* argc, char** argv) {
  Options options;
  int kept = 1;
  for (int i = 1; i < *argc; ++i) {
    const std::string flag = argv[i];
    if (flag == "--ratios") {
      options.has_ratios = true;
    } else if (flag.rfind("--rows=", 0) == 0) {
      options.rows = flag.substr(7);
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
  namespace bench = ashlar::bench;
  [[maybe_unused]] const bench::SleepingThread same_conditions_for_every_case;
  const Options options = take_options(&argc, argv);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
#if ASHLAR_ASSERTIONS
  std::fputs("ashlar_bench: built with assertions on: its figures mean nothing\n", stderr);
#endif
  bench::register_loads();
  bench::register_pair();
  bench::register_mix();
  bench::register_threads();
  bench::register_growth();
  bench::register_generated();
  bench::register_replay(options.traces);
  if (!options.has_ratios) {
    benchmark::RunSpecifiedBenchmarks();
    return 0;
  }
  bench::Collector collector;
  benchmark::RunSpecifiedBenchmarks(&collector);
  std::fputc('\n', stderr);
  const std::vector<bench::Row> rows = bench::figures(collector.measured());
  bench::print_medians(std::cout, collector.measured());
  std::cout << '\n';
  bench::print_figures(std::cout, rows);
  if (!options.rows.empty()) {
    std::ofstream file(options.rows);
    bench::print_rows(file, rows, "bench/ratios");
    if (!file.flush()) {
      std::fprintf(stderr, "%s: cannot be written\n", options.rows.c_str());
      return 3;
    }
  }
  return 0;
}
