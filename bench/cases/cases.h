// The benchmark cases, each in a file of its own: registers its benchmarks with Google Benchmark.
//
// Names are `case/parameter/adapter`; tables and ratios are made from them (ratios.cc).
#pragma once

#include <string>
#include <vector>

namespace ashlar::bench {

void register_loads();
void register_pair();
void register_mix();
void register_threads();
void register_growth();
/// The generated workloads' traces, on their streams.
void register_generated();
/// The traces of these folders, where they are present. Those named in a folder's elsewhere.txt and
/// found in none of them are said to be skipped, on stderr.
void register_replay(const std::vector<std::string>& folders);

}  // namespace ashlar::bench
