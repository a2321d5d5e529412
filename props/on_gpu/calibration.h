// The verdicts on the simulator's rules: spec/gpu/rules.json.
//
// Thread safety: pure functions of files.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "spec/gpu/rule_machine.h"

namespace ashlar::props {

enum class DriverVerdict { kAgrees, kDiffers, kNeverRun };
const char* verdict_name(DriverVerdict verdict);  ///< "agrees", "differs", "never run"

struct RuleEntry {
  std::string rule;  ///< the case's file name without its ending
  std::string page;  ///< that its head cites
  DriverVerdict verdict = DriverVerdict::kNeverRun;
  std::string why;          ///< what differed, or why it was never run
  bool has_failed = false;  ///< a GPU that is there could not be opened for it
};

struct Calibration {
  std::string gpu;     ///< its name; empty: none was at hand
  std::string driver;  ///< its version
  std::vector<RuleEntry> rules;
};

/// The cases of a folder, in order, each with the page that it cites. Their verdicts are still to come.
std::vector<RuleEntry> list_rules(const std::string& folder);
/// Why a driver is not asked that rule; empty: it is.
std::string reason_not_to_ask(const std::string& rule);
/// Runs the case in this process; `entry` gets the verdict. Its machine, whose end may take for ever; null if there was none.
std::unique_ptr<spec::RuleMachine> run_rule_here(const std::string& path, bool is_simulated,
                                                 RuleEntry* entry);

std::string to_json(const Calibration& calibration);

}  // namespace ashlar::props
