// The benchmark cases, each in a file of its own: registers its benchmarks with Google Benchmark.
//
// Names are `case/parameter/adapter`; tables and ratios are made from them (ratios.cc).
#pragma once

#include <string>
#include <vector>

namespace ashlar::bench {

void register_pair();
void register_mix();
void register_threads();
void register_growth();
/// The generated workloads' traces, on their streams.
void register_generated();
/// The traces of bench/data and, where it is present, of the shared data beside the project. Names those it skips.
void register_replay(const std::vector<std::string>& folders);

}  // namespace ashlar::bench
