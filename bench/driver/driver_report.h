// DriverReport: what ashlar_driver_facts found, and its three ways of saying so.
//
// Thread safety: none.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

namespace ashlar::bench {

/// Times of one call in microseconds, of `calls` calls.
struct CallTimes {
  std::size_t calls = 0;
  double median_us = 0;
  double p90_us = 0;
  double mean_us = 0;
  double max_us = 0;
  std::string error;  ///< the driver's, if a call failed
};

struct CostRow {
  std::string call;
  std::string of;  ///< size, or circumstances
  CallTimes idle;
  CallTimes busy;
  /// Of `probes` calls beside a running kernel that uses none of their memory, those that returned
  /// only when it had ended.
  unsigned waited = 0;
  unsigned probes = 0;
};

enum class FactVerdict : unsigned char { kHolds, kDoesNot, kMeasured, kNotRun };

/// A statement as the simulated GPU has it, and whether the driver behaves so.
struct DriverFact {
  std::string topic;
  std::string rule;  ///< the number of the case in props/rules, or empty
  std::string statement;
  FactVerdict verdict = FactVerdict::kNotRun;
  std::string answers;  ///< the driver's
};

/// How one call answers while a stream captures: a cell for each capture mode and thread. A cell has a
/// letter for each mode of the calling thread (global, thread-local, relaxed): `.` permitted, `x`
/// refused and the capture invalidated, `r` refused and the capture unharmed, `i` permitted and the
/// capture invalidated.
struct CaptureRow {
  std::string call;
  std::vector<std::string>
      cells;  ///< global own, other; thread-local own, other; relaxed own, other
  std::vector<std::string> simulated;  ///< what the simulated GPU says
  std::string errors;
};

struct DriverReport {
  std::string card;
  int version = 0;
  std::string driver;  ///< of the kernel module, where it says so
  std::string command;
  std::vector<CostRow> costs;
  std::vector<DriverFact> facts;
  std::vector<CaptureRow> captures;

  /// Adds a fact, and shows it on stderr.
  void fact(std::string topic, std::string rule, std::string statement, FactVerdict verdict,
            std::string answers);
  void fact(std::string topic, std::string rule, std::string statement, bool holds,
            std::string answers) {
    fact(std::move(topic), std::move(rule), std::move(statement),
         holds ? FactVerdict::kHolds : FactVerdict::kDoesNot, std::move(answers));
  }
};

const char* verdict_name(FactVerdict verdict);

/// Tables of Markdown, which are the plain output too.
void print_markdown(const DriverReport& report, std::FILE* out);
void print_json(const DriverReport& report, std::FILE* out);

}  // namespace ashlar::bench
