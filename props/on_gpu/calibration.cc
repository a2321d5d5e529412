#include "props/on_gpu/calibration.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>

#include <nlohmann/json.hpp>

#include "props/on_gpu/driver_machine.h"
#include "props/on_gpu/no_gpu.h"
#include "spec/gpu/rule_runner.h"
#include "spec/ops/text.h"

namespace ashlar::props {
namespace {

struct NotAsked {
  std::string_view rule;
  const char* why;
};

constexpr const char* kDeadHandle =
    "a dead handle may not be shown to a driver: what happens is undefined";
constexpr const char* kNoFaults =
    "its outcome is a report of misuse, or a fault of a kernel at a moment of the simulated "
    "machine's: no driver has either";
constexpr NotAsked kNotAsked[] = {
    {"06-event-dead-handle", kDeadHandle},
    {"18-stream-dead-handle", kDeadHandle},
    {"53-released-handle-is-dead", kDeadHandle},
    {"41-free-under-a-kernel", kNoFaults},
    {"45-access-before-touch", kNoFaults},
    {"46-new-mapping-has-no-access", kNoFaults},
    {"55-unmap-is-no-fence", kNoFaults},
    {"82-driver-unloaded", "a driver is unloaded by the process's end alone"},
};

std::string contents(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

std::string page_of(const std::string& text) {
  const std::size_t begin = text.find("https://");
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_first_of(" \n", begin) - begin);
}

}  // namespace

const char* verdict_name(DriverVerdict verdict) {
  switch (verdict) {
    case DriverVerdict::kAgrees: return "agrees";
    case DriverVerdict::kDiffers: return "differs";
    default: return "never run";
  }
}

std::vector<RuleEntry> list_rules(const std::string& folder) {
  std::vector<RuleEntry> rules;
  for (const auto& each : std::filesystem::directory_iterator(folder)) {
    if (each.path().extension() != ".ops") continue;
    RuleEntry entry;
    entry.rule = each.path().stem().string();
    entry.page = page_of(contents(each.path().string()));
    rules.push_back(std::move(entry));
  }
  std::sort(rules.begin(), rules.end(),
            [](const RuleEntry& a, const RuleEntry& b) { return a.rule < b.rule; });
  return rules;
}

std::string reason_not_to_ask(const std::string& rule) {
  const auto known = std::find_if(std::begin(kNotAsked), std::end(kNotAsked),
                                  [&](const NotAsked& each) { return each.rule == rule; });
  return known == std::end(kNotAsked) ? "" : known->why;
}

std::unique_ptr<spec::RuleMachine> run_rule_here(const std::string& path, bool is_simulated,
                                                 RuleEntry* entry) {
  spec::OpFile file;
  spec::TextError error;
  if (!spec::parse_ops(contents(path), &file, &error)) {
    entry->why = "line " + std::to_string(error.line) + ": " + error.reason;
    return nullptr;
  }
  Status opened;
  auto machine = make_driver_machine(spec::asked_options(file), is_simulated, &opened);
  if (machine == nullptr) {
    entry->why = opened.why();
    entry->has_failed = !is_without_gpu(opened);
    return nullptr;
  }
  const spec::RuleReport report = spec::run_rule(file, *machine);
  switch (report.verdict) {
    case spec::RuleVerdict::kAgrees: entry->verdict = DriverVerdict::kAgrees; return machine;
    case spec::RuleVerdict::kDiffers: entry->verdict = DriverVerdict::kDiffers; break;
    default: entry->verdict = DriverVerdict::kNeverRun;
  }
  const std::string line = report.line == 0 ? "" : "line " + std::to_string(report.line) + ": ";
  entry->why = line + report.why;
  return machine;
}

std::string to_json(const Calibration& calibration) {
  nlohmann::ordered_json json;
  json["gpu"] = nullptr;
  json["driver"] = nullptr;
  if (!calibration.gpu.empty()) json["gpu"] = calibration.gpu;
  if (!calibration.driver.empty()) json["driver"] = calibration.driver;
  json["rules"] = nlohmann::ordered_json::array();
  for (const RuleEntry& each : calibration.rules) {
    nlohmann::ordered_json rule = {
        {"rule", each.rule}, {"page", each.page}, {"verdict", verdict_name(each.verdict)}};
    if (!each.why.empty()) rule["why"] = each.why;
    json["rules"].push_back(std::move(rule));
  }
  return json.dump(1) + "\n";
}

}  // namespace ashlar::props
