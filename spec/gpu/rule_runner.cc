#include "spec/gpu/rule_runner.h"

#include <optional>
#include <vector>

#include "spec/gpu/rule_ops.h"
#include "spec/ops/opcode_table.h"
#include "spec/ops/text.h"

namespace ashlar::spec {
namespace {

bool is_header(std::uint8_t s) {
  return s == slot::kDevice || s == slot::kSeed || s == slot::kQueueDepth ||
         s == slot::kHardwareQueues;
}

}  // namespace

SimGpuOptions asked_options(const OpFile& file) {
  SimGpuOptions options;
  std::vector<Bytes> capacities;
  for (const Op& op : file.ops) {
    switch (op.slot) {
      case slot::kDevice:
        if (op.arg[0] >= 8) break;
        if (capacities.size() <= op.arg[0]) capacities.resize(op.arg[0] + 1);
        capacities[op.arg[0]] = Bytes{op.arg[1]};
        break;
      case slot::kSeed: options.seed = op.arg[0]; break;
      case slot::kQueueDepth: options.queue_depth = static_cast<std::uint32_t>(op.arg[0]); break;
      case slot::kHardwareQueues:
        options.hardware_queues = static_cast<std::uint32_t>(op.arg[0]);
        break;
      default: break;
    }
  }
  if (!capacities.empty()) options.capacities = capacities;
  return options;
}

RuleReport run_rule(const OpFile& file, const RuleMachineMaker& make) {
  const std::unique_ptr<RuleMachine> machine = make(asked_options(file));
  if (machine == nullptr) return RuleReport{RuleVerdict::kNotRun, 0, "no such machine"};
  return run_rule(file, *machine);
}

// An op's answer is kept until an `expect` after it judges it. If the next op comes first, the answer
// must be ok.
RuleReport run_rule(const OpFile& file, RuleMachine& machine) {
  RuleOps run(machine);
  std::optional<Status> answer;  // of the last op that was not skipped
  bool judged = true;
  std::string faults;
  std::size_t last = 0;
  const auto line_of = [&](std::size_t i) { return i < file.lines.size() ? file.lines[i] : 0; };
  const auto differs = [&](std::size_t i, const std::string& why) {
    return RuleReport{RuleVerdict::kDiffers, line_of(i), why};
  };
  const auto left_over = [&]() -> std::string {
    if (!judged && answer && !answer->is_ok()) {
      return std::string("answered ") + code_name(answer->code()) + " (" + answer->why() +
             "), not ok";
    }
    return faults.empty() ? "" : "reported " + faults;
  };
  for (std::size_t i = 0; i < file.ops.size(); ++i) {
    const Op& op = file.ops[i];
    if (op.slot == slot::kNop || is_header(op.slot)) continue;
    if (op.slot == slot::kExpect) {
      judged = true;
      if (answer && answer->code() != static_cast<Code>(op.arg[0])) {
        return differs(i, print_op(file.ops[last]) + ": answered " + code_name(answer->code()) +
                              " (" + answer->why() + ")");
      }
      continue;
    }
    if (op.slot == slot::kExpectFault) {
      if (!answer || !machine.reports_faults()) continue;
      const std::size_t at = (" " + faults).find(" " + op.text + " ");
      if (at == std::string::npos) return differs(i, "no such fault; there was: " + faults);
      faults.erase(at, op.text.size() + 1);
      continue;
    }
    const std::string before = left_over();
    if (!before.empty()) return differs(last, print_op(file.ops[last]) + ": " + before);
    answer = run(op);
    if (answer && answer->code() == Code::kUnsupported &&
        machine.device(0).traits().has_virtual_memory) {
      return RuleReport{RuleVerdict::kNotRun, line_of(i), "this machine cannot " + print_op(op)};
    }
    judged = false;
    last = i;
    if (machine.reports_faults()) faults = machine.take_faults();
  }
  const std::string after = left_over();
  return after.empty() ? RuleReport{} : differs(last, print_op(file.ops[last]) + ": " + after);
}

}  // namespace ashlar::spec
