// What the benchmarks measured, repetition by repetition, and the medians of it.
//
// Thread safety: none.
#pragma once

#include <istream>
#include <map>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

namespace ashlar::bench {

/// The sound repetitions of one benchmark.
struct Samples {
  std::vector<double> cpu_ns;  ///< per operation
  std::map<std::string, std::vector<double>> counters;
  std::size_t left_out = 0;  ///< repetitions that were unsound, or failed
};
/// By the name a case registered: `case/parameter/adapter`.
using Measured = std::map<std::string, Samples>;

/// Prints nothing but a dot per repetition on stderr (an x for one that is left out), and keeps
/// every sound repetition.
class Collector : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>& runs) override;
  const Measured& measured() const { return measured_; }

 private:
  Measured measured_;
};

/// A measured value; empty if it was not measured.
using Figure = std::optional<double>;

/// Empty if there are no values.
Figure median(std::vector<double> values);
/// The median of a benchmark's CPU time per operation.
Figure cpu_ns(const Measured& measured, const std::string& name);
/// The median of the counter `which`; empty if the benchmark has no counter of that name.
Figure counter(const Measured& measured, const std::string& name, const std::string& which);
Figure over(Figure a, Figure b);

/// Writes the medians of the CPU times as lines `name<tab>ns`. read_medians() reads such lines;
/// each is then a benchmark's only sample.
void write_medians(std::ostream& out, const Measured& measured);
Measured read_medians(std::istream& in);

}  // namespace ashlar::bench
