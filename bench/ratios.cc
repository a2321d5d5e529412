#include "bench/ratios.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iomanip>
#include <optional>
#include <sstream>

namespace ashlar::bench {
namespace {

using Figure = std::optional<double>;

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

Figure cpu_ns(const Measured& measured, const std::string& name) {
  const auto found = measured.find(name);
  return found == measured.end() ? Figure{} : median(found->second.cpu_ns);
}

/// The median of a counter's repetitions, where the benchmark has one of that name.
Figure counter(const Measured& measured, const std::string& name, const std::string& which) {
  const auto found = measured.find(name);
  if (found == measured.end()) return {};
  const auto values = found->second.counters.find(which);
  return values == found->second.counters.end() ? Figure{} : median(values->second);
}

Figure over(Figure a, Figure b) { return a && b ? Figure(*a / *b) : Figure{}; }

std::string number(double value, int digits) {
  char text[32];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

std::string or_nothing(Figure value, int digits) { return value ? number(*value, digits) : "-"; }

Row at_most(const std::string& figure, Figure value, double limit, const std::string& note = "") {
  if (!value) return {figure, "not measured", "<= " + number(limit, 2), "null"};
  return {figure, number(*value, 2) + note, "<= " + number(limit, 2), *value <= limit ? "true" : "false"};
}

Row at_least(const std::string& figure, Figure value, double limit, const std::string& note = "") {
  if (!value) return {figure, "not measured", ">= " + number(limit, 2), "null"};
  return {figure, number(*value, 2) + note, ">= " + number(limit, 2), *value >= limit ? "true" : "false"};
}

Row scaling_row(const Measured& measured, const std::string& what) {
  const auto ours = [&](const char* name) { return counter(measured, "threads-" + what + "/ashlar", name); };
  return at_least("two threads on two streams, " + what + ": throughput, x one thread's", ours("scaling"), 1.6,
                  " (" + or_nothing(ours("two_streams_ns"), 1) + " ns / " + or_nothing(ours("alone_ns"), 1) +
                      " ns; empty harness " + or_nothing(counter(measured, "threads-" + what + "/empty", "scaling"), 2) +
                      ")");
}

Row growth_row(const Measured& measured) {
  const std::string figure = "p99.9 of a hit while another thread grows by 1 GiB, x its own alone";
  const auto found = measured.find("growth/1GiB/ashlar");
  if (found == measured.end()) return at_most(figure, {}, 5);
  // Each repetition's two halves were measured in the same moment: the median of their ratios.
  const auto& counters = found->second.counters;
  std::vector<double> ratios;
  for (std::size_t i = 0; i < counters.at("p999_alone").size(); ++i) {
    ratios.push_back(counters.at("p999_growing")[i] / counters.at("p999_alone")[i]);
  }
  return at_most(figure, median(ratios), 5,
                 " (" + number(median(counters.at("p999_growing")), 0) + " ns / " +
                     number(median(counters.at("p999_alone")), 0) + " ns)");
}

/// ns per event of each trace, for one adapter.
std::vector<double> replays(const Measured& measured, const std::string& adapter) {
  std::vector<double> traces;
  for (const auto& [name, samples] : measured) {
    if (name.rfind("replay/", 0) != 0 || name.substr(name.rfind('/') + 1) != adapter) continue;
    traces.push_back(median(samples.cpu_ns) / samples.counters.at("events").front());
  }
  return traces;
}

}  // namespace

void Collector::ReportRuns(const std::vector<Run>& runs) {
  for (const Run& run : runs) {
    if (run.run_type != Run::RT_Iteration || run.error_occurred) continue;
    Samples& samples = measured_[run.run_name.function_name];
    const auto iterations = static_cast<double>(run.iterations);
    samples.cpu_ns.push_back(run.cpu_accumulated_time / iterations * 1e9);
    for (const auto& [name, counter] : run.counters) samples.counters[name].push_back(counter.value);
    std::fputc('.', stderr);
  }
}

std::vector<Row> figures(const Measured& measured) {
  const auto cpu = [&](const std::string& name) { return cpu_ns(measured, name); };
  std::vector<Row> rows;
  const auto beside = [&](const std::string& what, double limit) {
    const Figure ours = cpu(what + "/ashlar"), cub = cpu(what + "/cub");
    rows.push_back(at_most(what + ": free + malloc, x CUB", over(ours, cub), limit,
                           " (" + or_nothing(ours, 1) + " ns / " + or_nothing(cub, 1) + " ns; floor " +
                               or_nothing(cpu(what + "/floor"), 1) + " ns)"));
  };
  beside("pair/1MiB", 0.7);
  beside("mix/10^4", 0.25);
  const Figure floor_growth = over(cpu("mix/10^5/floor"), cpu("mix/10^2/floor"));
  rows.push_back(at_most("mix: time per op at 10^5 live, x that at 10^2 (3, or the floor's own)",
                         over(cpu("mix/10^5/ashlar"), cpu("mix/10^2/ashlar")), std::max(3.0, floor_growth.value_or(0)),
                         " (" + or_nothing(cpu("mix/10^5/ashlar"), 1) + " ns / " +
                             or_nothing(cpu("mix/10^2/ashlar"), 1) + " ns; floor " +
                             or_nothing(floor_growth, 2) + "; a load from 16 MiB " +
                             or_nothing(cpu("load/16MiB/empty"), 0) + " ns)"));
  for (const char* what : {"pair", "mix"}) rows.push_back(scaling_row(measured, what));
  rows.push_back(growth_row(measured));
  const std::vector<double> traces = replays(measured, "ashlar");
  rows.push_back(at_most("replay: ns per event, median of the traces", traces.empty() ? Figure{} : median(traces), 40,
                         " over " + std::to_string(traces.size()) + " traces"));
  return rows;
}

void print_medians(std::ostream& out, const Measured& measured) {
  const char* const adapters[] = {"ashlar", "pool", "floor", "cub", "malloc", "empty"};
  std::vector<std::string> cases;
  for (const auto& [name, samples] : measured) {
    const std::string one = name.substr(0, name.rfind('/'));
    if (std::find(cases.begin(), cases.end(), one) == cases.end()) cases.push_back(one);
  }
  const auto print_line = [&](const std::string& title, auto&& cell) {
    out << std::left << std::setw(50) << title << std::right;
    for (const char* adapter : adapters) out << std::setw(12) << cell(adapter);
    out << '\n';
  };
  print_line("median ns (threads-*: by the clock)", [](const char* adapter) { return adapter; });
  for (const std::string& one : cases) {
    if (one.rfind("growth/", 0) == 0) continue;
    if (one.rfind("threads-", 0) == 0) {
      for (const char* part : {"alone_ns", "two_streams_ns", "one_stream_ns"}) {
        print_line(one + " " + part, [&](const char* adapter) {
          return or_nothing(counter(measured, std::string(one).append("/").append(adapter), part), 1);
        });
      }
      continue;
    }
    print_line(one, [&](const char* adapter) {
      const std::string name = one + "/" + adapter;
      const Figure events = counter(measured, name, "events");
      return or_nothing(over(cpu_ns(measured, name), events ? events : Figure(1)), 1);
    });
  }
  for (const char* adapter : {"ashlar", "cub"}) {
    const auto found = measured.find(std::string("growth/1GiB/") + adapter);
    if (found == measured.end()) continue;
    out << found->first << ":";
    for (const auto& [name, values] : found->second.counters) out << ' ' << name << ' ' << number(median(values), 0);
    out << '\n';
  }
}

void print_figures(std::ostream& out, const std::vector<Row>& rows) {
  out << std::left;
  for (const Row& row : rows) {
    out << std::setw(80) << row.figure << std::setw(84) << row.value << std::setw(10) << row.target
        << (row.met == "true" ? "met" : row.met == "false" ? "MISSED" : "") << '\n';
  }
}

void print_rows(std::ostream& out, const std::vector<Row>& rows, const std::string& command) {
  const auto quoted = [](const std::string& text) {  // our own texts: printable, and without backslashes
    std::ostringstream json;
    json << std::quoted(text);
    return json.str();
  };
  for (const Row& row : rows) {
    out << "{\"figure\":" << quoted(row.figure) << ",\"value\":" << quoted(row.value)
        << ",\"target\":" << quoted(row.target) << ",\"met\":" << row.met
        << ",\"command\":" << quoted(command) << "}\n";
  }
}

}  // namespace ashlar::bench
