// Collects what the benchmarks measured, and prints it as tables, ratios and rows for ci/report.
//
// Thread safety: none.
#pragma once

#include <map>
#include <ostream>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

namespace ashlar::bench {

/// The repetitions of one benchmark.
struct Samples {
  std::vector<double> cpu_ns;  ///< per operation
  std::map<std::string, std::vector<double>> counters;
};
/// By the name a case registered: `case/parameter/adapter`.
using Measured = std::map<std::string, Samples>;

/// Prints nothing but a dot per repetition on stderr, and keeps every repetition.
class Collector : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>& runs) override;
  const Measured& measured() const { return measured_; }

 private:
  Measured measured_;
};

/// One figure with its target. `met` is "true", "false", or "null" where it was not measured, which
/// no row for ci/report passes for met.
struct Row {
  std::string figure, value, target, met;
};

/// The figures that have a target, from the medians of the repetitions.
std::vector<Row> figures(const Measured& measured);

/// Medians per case and adapter, as text.
void print_medians(std::ostream& out, const Measured& measured);
/// The figures as a text table, and as one JSON object a line with `command` in each.
void print_figures(std::ostream& out, const std::vector<Row>& rows);
void print_rows(std::ostream& out, const std::vector<Row>& rows, const std::string& command);

}  // namespace ashlar::bench
