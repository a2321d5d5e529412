// The benchmark cases. Each function registers the benchmarks of one case with Google Benchmark.
//
// Names are `case/parameter/adapter`; tables and ratios are made from them (ratios.cc).
#pragma once

#include <string>
#include <vector>

namespace ashlar::bench {

void register_loads();
void register_pair();
void register_pin();
/// A case with a number of repetitions of its own runs at most `repetitions_max` of them.
void register_mix(int repetitions_max);
void register_threads(int repetitions_max);
void register_growth(int repetitions_max);
/// The traces of the generated workloads, on their streams.
void register_generated();
/// The traces in these folders. A trace that some folder's elsewhere.txt names, and that none of
/// the folders has, is reported on stderr as skipped.
void register_replay(const std::vector<std::string>& folders);

}  // namespace ashlar::bench
