// Makes tables, ratios and rows for ci/report of what the benchmarks measured.
//
// Thread safety: none.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "bench/measured.h"

namespace ashlar::bench {

/// A part of the benchmarks in a program that another compiler has built.
struct OtherCompiler {
  std::string name;
  std::string why_not;  ///< why it measured nothing; empty where it did
  Measured measured;
};

/// One figure with its target. `met` is "true", "false", or "null" where it was not measured, which
/// no row for ci/report passes for met.
struct Row {
  std::string figure, value, target, met;
};

/// The figures that have a target, from the medians of the repetitions.
std::vector<Row> figures(const Measured& measured, const std::vector<OtherCompiler>& others);

/// Medians per case and adapter, as text; how many repetitions were left out; and what this
/// library's took when others built it.
void print_medians(std::ostream& out, const Measured& measured);
void print_left_out(std::ostream& out, const Measured& measured);
void print_compilers(std::ostream& out, const Measured& measured,
                     const std::vector<OtherCompiler>& others);
/// The figures as a text table, and as one JSON object a line with `command` in each.
void print_figures(std::ostream& out, const std::vector<Row>& rows);
void print_rows(std::ostream& out, const std::vector<Row>& rows, const std::string& command);

}  // namespace ashlar::bench
