#include "bench/measured.h"

#include <algorithm>
#include <cstdio>

#include "bench/cases/repetition.h"

namespace ashlar::bench {

void Collector::ReportRuns(const std::vector<Run>& runs) {
  for (const Run& run : runs) {
    if (run.run_type != Run::RT_Iteration) continue;
    Samples& samples = measured_[run.run_name.function_name];
    const auto left_out = run.counters.find(kLeftOut);
    if (run.error_occurred || run.iterations == 0 ||
        (left_out != run.counters.end() && left_out->second.value != 0)) {
      samples.left_out += 1;
      std::fputc('x', stderr);
      continue;
    }
    const auto iterations = static_cast<double>(run.iterations);
    samples.cpu_ns.push_back(run.cpu_accumulated_time / iterations * 1e9);
    for (const auto& [name, counter] : run.counters) {
      if (name != kLeftOut) samples.counters[name].push_back(counter.value);
    }
    std::fputc('.', stderr);
  }
}

Figure median(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

Figure cpu_ns(const Measured& measured, const std::string& name) {
  const auto found = measured.find(name);
  return found == measured.end() ? Figure{} : median(found->second.cpu_ns);
}

Figure counter(const Measured& measured, const std::string& name, const std::string& which) {
  const auto found = measured.find(name);
  if (found == measured.end()) return {};
  const auto values = found->second.counters.find(which);
  return values == found->second.counters.end() ? Figure{} : median(values->second);
}

Figure over(Figure a, Figure b) { return a && b ? Figure(*a / *b) : Figure{}; }

void write_medians(std::ostream& out, const Measured& measured) {
  out.precision(17);
  for (const auto& [name, samples] : measured) {
    if (const Figure ns = median(samples.cpu_ns)) out << name << '\t' << *ns << '\n';
  }
}

Measured read_medians(std::istream& in) {
  Measured measured;
  double ns = 0;
  for (std::string name; std::getline(in, name, '\t') && in >> ns; in >> std::ws)
    measured[name].cpu_ns.push_back(ns);
  return measured;
}

}  // namespace ashlar::bench
