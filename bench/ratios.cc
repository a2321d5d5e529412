#include "bench/ratios.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iomanip>
#include <sstream>

namespace ashlar::bench {
namespace {

std::string number(double value, int digits) {
  char text[32];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

#if defined(__clang__)
const std::string kThisCompiler = "clang++ " + std::to_string(__clang_major__);
#else
const std::string kThisCompiler = "g++ " + std::to_string(__GNUC__);
#endif

std::string or_nothing(Figure value, int digits) { return value ? number(*value, digits) : "-"; }

Row at_most(const std::string& figure, Figure value, double limit, const std::string& note = "") {
  if (!value || !std::isfinite(*value))
    return {figure, "not measured", "<= " + number(limit, 2), "null"};
  return {figure, number(*value, 2) + note, "<= " + number(limit, 2),
          *value <= limit ? "true" : "false"};
}

Row at_least(const std::string& figure, Figure value, double limit, const std::string& note = "") {
  if (!value || !std::isfinite(*value))
    return {figure, "not measured", ">= " + number(limit, 2), "null"};
  return {figure, number(*value, 2) + note, ">= " + number(limit, 2),
          *value >= limit ? "true" : "false"};
}

/// What ours takes for an operation, in CUB's time.
Row beside_cub_row(const Measured& measured, const std::string& what, double limit,
                   const std::string& more = "") {
  const Figure ours = cpu_ns(measured, what + "/ashlar"), cub = cpu_ns(measured, what + "/cub");
  return at_most(what + ": free + malloc, x CUB", over(ours, cub), limit,
                 " (" + or_nothing(ours, 1) + " ns / " + or_nothing(cub, 1) + " ns; floor " +
                     or_nothing(cpu_ns(measured, what + "/floor"), 1) + " ns" + more + ")");
}

/// The same of a program that another compiler built, with this one's time beside.
Row other_compiler_row(const Measured& measured, const OtherCompiler& other,
                       const std::string& what, double limit) {
  Row row = beside_cub_row(
      other.measured, what, limit,
      "; " + kThisCompiler + " " + or_nothing(cpu_ns(measured, what + "/ashlar"), 1) + " ns");
  row.figure = "built by " + other.name + ", " + row.figure;
  if (row.met == "null" && !other.why_not.empty()) row.value += ": " + other.why_not;
  return row;
}

/// How many of a benchmark's repetitions the medians are without; nothing where there are none.
std::string left_out_note(const Measured& measured, const std::string& name) {
  const auto found = measured.find(name);
  if (found == measured.end() || found->second.left_out == 0) return "";
  const std::size_t left_out = found->second.left_out;
  return std::to_string(left_out) + " of " +
         std::to_string(left_out + found->second.cpu_ns.size()) + " repetitions left out";
}

Row scaling_row(const Measured& measured, const std::string& what, const std::string& adapter,
                double limit) {
  const std::string name = "threads-" + what + "/" + adapter;
  const auto ours = [&](const char* which) { return counter(measured, name, which); };
  const std::string left_out = left_out_note(measured, name);
  Row row = at_least(
      (adapter == "ashlar" ? "two threads on two streams, " : adapter + ": two threads, ") + what +
          ": throughput, x one thread's",
      ours("scaling"), limit,
      " (" + or_nothing(ours("two_streams_ns"), 1) + " ns / " + or_nothing(ours("alone_ns"), 1) +
          " ns; empty harness " +
          or_nothing(counter(measured, "threads-" + what + "/empty", "scaling"), 2) +
          (left_out.empty() ? "" : "; " + left_out) + ")");
  if (row.met == "null" && !left_out.empty()) row.value += ": " + left_out;
  return row;
}

/// What page-locked memory's allocator takes for an operation, in the device allocator's time.
Row pinned_row(const Measured& measured, const std::string& what) {
  const Figure pinned = cpu_ns(measured, what + "/pinned"),
               ashlar = cpu_ns(measured, what + "/ashlar");
  return at_most("pinned, " + what + ": free + allocate, x the device allocator's",
                 over(pinned, ashlar), 1.2,
                 " (" + or_nothing(pinned, 1) + " ns / " + or_nothing(ashlar, 1) + " ns)");
}

/// The limit is three, or what the bare floor's grows by.
Row mix_growth_row(const Measured& measured, const std::string& mix) {
  const std::string name = mix + "-growth/10^2..10^5/";
  const auto ours = [&](const char* which) { return counter(measured, name + "ashlar", which); };
  const Figure floor = counter(measured, name + "floor", "growth");
  return at_most(mix + ": time per op at 10^5 live, x that at 10^2 (3, or the floor's own)",
                 ours("growth"), std::max(3.0, floor.value_or(0)),
                 " (" + or_nothing(ours("many_ns"), 1) + " ns / " + or_nothing(ours("few_ns"), 1) +
                     " ns; floor " + or_nothing(floor, 2) + "; a load from 16 MiB " +
                     or_nothing(cpu_ns(measured, "load/16MiB/empty"), 0) + " ns)");
}

/// The median of the quotients of two counters of a repetition.
Figure median_quotient(const Samples& samples, const std::string& a, const std::string& b) {
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
    if (const Figure ns = median(samples.cpu_ns))
      traces.push_back(*ns / samples.counters.at("events").front());
  }
  return traces;
}

}  // namespace

std::vector<Row> figures(const Measured& measured, const std::vector<OtherCompiler>& others) {
  constexpr double kPairLimit = 0.7, kMixLimit = 0.25;
  std::vector<Row> rows;
  rows.push_back(beside_cub_row(measured, "pair/1MiB", kPairLimit));
  for (const char* mix : {"mix/10^4", "mix-plain/10^4", "mix-64MiB/10^4", "mix-plain-64MiB/10^4"})
    rows.push_back(beside_cub_row(measured, mix, kMixLimit));
  for (const OtherCompiler& other : others) {
    rows.push_back(other_compiler_row(measured, other, "pair/1MiB", kPairLimit));
    for (const char* mix : {"mix/10^4", "mix-plain/10^4"})
      rows.push_back(other_compiler_row(measured, other, mix, kMixLimit));
  }
  for (const char* mix : {"mix", "mix-plain"}) rows.push_back(mix_growth_row(measured, mix));
  for (const char* what : {"pair", "mix"})
    rows.push_back(scaling_row(measured, what, "ashlar", 1.6));
  for (const char* what :
       {"pair/4KiB", "pair/1MiB", "pair/32MiB", "mix/10^2", "mix/10^3", "mix/10^4", "mix/10^5"})
    rows.push_back(pinned_row(measured, what));
  for (const char* what : {"pair", "mix"})
    rows.push_back(scaling_row(measured, what, "pinned", 1.7));
  rows.push_back(growth_row(measured));
  const std::vector<double> traces = replays(measured, "ashlar");
  rows.push_back(at_most("replay: ns per event, median of the traces", median(traces), 40,
                         " over " + std::to_string(traces.size()) + " traces"));
  return rows;
}

void print_medians(std::ostream& out, const Measured& measured) {
  const char* const adapters[] = {"ashlar", "pinned", "planned", "pool",
                                  "floor",  "cub",    "malloc",  "empty"};
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
    if (one.rfind("growth/", 0) == 0 || one.find("-growth/") != std::string::npos)
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
      out << ' ' << name << ' ' << or_nothing(median(values), 0);
    out << '\n';
  }
}

void print_left_out(std::ostream& out, const Measured& measured) {
  for (const auto& [name, samples] : measured) {
    const std::string note = left_out_note(measured, name);
    if (!note.empty())
      out << name << ": " << note << ": a thread was kept from its core in each try\n";
  }
}

void print_compilers(std::ostream& out, const Measured& measured,
                     const std::vector<OtherCompiler>& others) {
  for (const OtherCompiler& other : others) {
    if (!other.why_not.empty()) {
      out << other.name << ": not measured: " << other.why_not << '\n';
      continue;
    }
    const auto print_line = [&](const std::string& title, auto&&... cells) {
      out << std::left << std::setw(50) << title << std::right;
      ((out << std::setw(12) << cells), ...);
      out << '\n';
    };
    print_line("median ns by compiler", kThisCompiler, other.name);
    for (const auto& [name, samples] : other.measured) {
      if (name.substr(name.rfind('/') + 1) == "ashlar")
        print_line(name, or_nothing(cpu_ns(measured, name), 1),
                   or_nothing(median(samples.cpu_ns), 1));
    }
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
