// ashlar_generate WORKLOAD [--seed N] [--steps N] [--trace FILE] [--ops FILE]
//
// Writes a generated workload (workloads.h) as an allocation trace (gzipped when FILE ends in .gz)
// and as ops. Exit 2 for a wrong command line, 3 when a file cannot be written.
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "bench/generators/arguments.h"
#include "bench/generators/workloads.h"
#include "spec/ops/text.h"
#include "src/tool/files.h"

namespace {

using namespace ashlar;

int usage(const char* why) {
  std::fprintf(
      stderr,
      "ashlar_generate: %s\n"
      "usage: ashlar_generate WORKLOAD [--seed N] [--steps N] [--trace FILE] [--ops FILE]\n",
      why);
  for (const bench::Workload& workload : bench::workloads()) {
    std::fprintf(stderr, "  %-16s %s (%u steps)\n", workload.name, workload.about, workload.steps);
  }
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return usage("which workload?");
  const bench::Workload* workload = bench::find_workload(argv[1]);
  if (workload == nullptr) return usage("no such workload");
  std::uint64_t seed = 1;
  std::uint32_t steps = workload->steps;
  std::string trace_path, ops_path;
  for (int i = 2; i < argc; i += 2) {
    const std::string_view flag = argv[i];
    if (i + 1 == argc) return usage("a flag without its value");
    const std::string_view value = argv[i + 1];
    bool is_good = true;
    if (flag == "--seed") {
      is_good = bench::parse_number(value, &seed);
    } else if (flag == "--steps") {
      is_good = bench::parse_number(value, &steps);
    } else if (flag == "--trace") {
      trace_path = value;
    } else if (flag == "--ops") {
      ops_path = value;
    } else {
      return usage("an unknown flag");
    }
    if (!is_good) return usage("not a number");
  }
  bench::WorkloadRecorder recorder(workload->name, seed);
  workload->generate(recorder, steps);
  std::string error;
  if ((!trace_path.empty() && !tool::write_trace(recorder.trace(), trace_path, &error)) ||
      (!ops_path.empty() && !tool::write_file(ops_path, spec::print_ops(recorder.ops()),
                                              tool::KnownFile::kOps, &error))) {
    std::fprintf(stderr, "ashlar_generate: %s\n", error.c_str());
    return 3;
  }
  return 0;
}
