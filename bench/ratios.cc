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
  return {figure, number(*value, 2) + note, "<= " + number(limit, 2),
          *value <= limit ? "true" : "false"};
}

Row at_least(const std::string& figure, Figure value, double limit, const std::string& note = "") {
  if (!value) return {figure, "not measured", ">= " + number(limit, 2), "null"};
  return {figure, number(*value, 2) + note, ">= " + number(limit, 2),
          *value >= limit ? "true" : "false"};
}

Row scaling_row(const Measured& measured, const std::string& what) {
  const auto ours = [&](const char* name) {
    return counter(measured, "threads-" + what + "/ashlar", name);
  };
  return at_least(
      "two threads on two streams, " + what + ": throughput, x one thread's", ours("scaling"), 1.6,
      " (" + or_nothing(ours("two_streams_ns"), 1) + " ns / " + or_nothing(ours("alone_ns"), 1) +
          " ns; empty harness " +
          or_nothing(counter(measured, "threads-" + what + "/empty", "scaling"), 2) + ")");
}

/// The limit is three, or what the bare floor's grows by.
Row mix_growth_row(const Measured& measured) {
  const std::string name = "mix-growth/10^2..10^5/";
  const auto ours = [&](const char* which) { return counter(measured, name + "ashlar", which); };
  const Figure floor = counter(measured, name + "floor", "growth");
  return at_most("mix: time per op at 10^5 live, x that at 10^2 (3, or the floor's own)",
                 ours("growth"), std::max(3.0, floor.value_or(0)),
                 " (" + or_nothing(ours("many_ns"), 1) + " ns / " + or_nothing(ours("few_ns"), 1) +
                     " ns; floor " + or_nothing(floor, 2) + "; a load from 16 MiB " +
                     or_nothing(cpu_ns(measured, "load/16MiB/empty"), 0) + " ns)");
}

/// The median of the quotients of two counters of a repetition.
double median_quotient(const Samples& samples, const std::string& a, const std::string& b) {
  std::vector<double> quotients;
  for (std::size_t i = 0; i < samples.counters.at(a).size(); ++i) {
    quotients.push_back(samples.counters.at(a)[i] / samples.counters.at(b)[i]);
  }
  return median(quotients);
}

/// The worse of how slow the hits are, and how late.
Row growth_row(const Measured& measured) {
  const std::string figure =
      "p99.9 of a hit while another thread grows by 1 GiB, x its own alone: how slow or how late";
  const std::string name = "growth/1GiB/ashlar";
  const Figure growths = counter(measured, name, "growths");
  if (growths.value_or(0) == 0) return at_most(figure, {}, 5);  // without any it has seen nothing
  const Samples& samples = measured.at(name);
  const auto pair = [&](const std::string& what) {
    return or_nothing(counter(measured, name, what + "_growing"), 0) + " ns / " +
           or_nothing(counter(measured, name, what + "_alone"), 0) + " ns";
  };
  return at_most(figure,
                 std::max(median_quotient(samples, "p999_growing", "p999_alone"),
                          median_quotient(samples, "p999_late_growing", "p999_late_alone")),
                 5,
                 " (" + pair("p999") + "; late by " + pair("p999_late") + "; " +
                     or_nothing(growths, 0) + " growths meanwhile)");
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
    for (const auto& [name, counter] : run.counters)
      samples.counters[name].push_back(counter.value);
    std::fputc('.', stderr);
  }
}

std::vector<Row> figures(const Measured& measured) {
  const auto cpu = [&](const std::string& name) { return cpu_ns(measured, name); };
  std::vector<Row> rows;
  const auto beside = [&](const std::string& what, double limit) {
    const Figure ours = cpu(what + "/ashlar"), cub = cpu(what + "/cub");
    rows.push_back(at_most(what + ": free + malloc, x CUB", over(ours, cub), limit,
                           " (" + or_nothing(ours, 1) + " ns / " + or_nothing(cub, 1) +
                               " ns; floor " + or_nothing(cpu(what + "/floor"), 1) + " ns)"));
  };
  beside("pair/1MiB", 0.7);
  beside("mix/10^4", 0.25);
  rows.push_back(mix_growth_row(measured));
  for (const char* what : {"pair", "mix"}) rows.push_back(scaling_row(measured, what));
  rows.push_back(growth_row(measured));
  const std::vector<double> traces = replays(measured, "ashlar");
  rows.push_back(at_most("replay: ns per event, median of the traces",
                         traces.empty() ? Figure{} : median(traces), 40,
                         " over " + std::to_string(traces.size()) + " traces"));
  return rows;
}

void print_medians(std::ostream& out, const Measured& measured) {
  const char* const adapters[] = {"ashlar", "planned", "pool", "floor", "cub", "malloc", "empty"};
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
    if (one.rfind("growth/", 0) == 0 || one.rfind("mix-growth/", 0) == 0)
      continue;  // quotients: among the figures
    if (one.rfind("threads-", 0) == 0) {
      for (const char* part : {"alone_ns", "two_streams_ns", "one_stream_ns"}) {
        print_line(one + " " + part, [&](const char* adapter) {
          return or_nothing(counter(measured, std::string(one).append("/").append(adapter), part),
                            1);
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
    for (const auto& [name, values] : found->second.counters)
      out << ' ' << name << ' ' << number(median(values), 0);
    out << '\n';
  }
}

void print_figures(std::ostream& out, const std::vector<Row>& rows) {
  out << std::left;
  for (const Row& row : rows) {
    out << std::setw(92) << row.figure << std::setw(84) << row.value << std::setw(10) << row.target
        << (row.met == "true"    ? "met"
            : row.met == "false" ? "MISSED"
                                 : "")
        << '\n';
  }
}

void print_rows(std::ostream& out, const std::vector<Row>& rows, const std::string& command) {
  // our own texts: printable, and without backslashes
  const auto quoted = [](const std::string& text) {
    std::ostringstream json;
    json << std::quoted(text);
    return json.str();
  };
  for (const Row& row : rows) {
    out << "{\"figure\":" << quoted(row.figure) << ",\"value\":" << quoted(row.value)
        << ",\"target\":" << quoted(row.target)
        << ",\"met\":" << (row.met == "true" ? "true" : "false")
        << ",\"command\":" << quoted(command) << "}\n";
  }
}

}  // namespace ashlar::bench
