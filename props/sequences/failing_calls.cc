// See failing_calls.h.
#include "props/sequences/failing_calls.h"

#include <ashlar/device/device.h>

#include <algorithm>
#include <array>
#include <set>
#include <vector>

#include "props/adapters/caching_allocator_subject.h"
#include "props/sequences/cache_sequences.h"
#include "spec/lockstep/cache_lockstep.h"
#include "spec/ops/opcode_table.h"
#include "spec/ops/random.h"

namespace ashlar::props {
namespace {

namespace slot = spec::slot;
using spec::Op;
using Calls = std::array<std::uint64_t, device::kCallKinds>;

enum class Ending : std::uint8_t { kHealed, kAtOnce, kTrimmed };

/// Planned for the n-th call of a kind.
struct Failure {
  std::uint64_t kind;
  std::uint64_t n;
  spec::FailMode mode;
  std::uint64_t code;  ///< index into kFailureCodes
};

Op make_op(std::uint8_t s, std::array<std::uint64_t, spec::kArgsMax> arg) {
  Op op;
  op.slot = s;
  op.arg = arg;
  return op;
}

/// Adds what frees everything, and finishes all work. Returns the devices.
std::set<std::uint64_t> free_everything(std::vector<Op>* ops) {
  std::set<std::uint64_t> pointers;
  std::set<std::uint64_t> streams = {0};
  std::set<std::uint64_t> devices = {0};
  for (const Op& op : *ops) {
    if (op.slot == slot::kAlloc) pointers.insert(op.arg[0]);
    if (op.slot == slot::kStreamCreate) streams.insert(op.arg[0]);
    if (op.slot == slot::kDevice) devices.insert(op.arg[0]);
  }
  for (const std::uint64_t s : streams) ops->push_back(make_op(slot::kCaptureEnd, {s}));
  for (const std::uint64_t p : pointers) ops->push_back(make_op(slot::kFree, {p}));
  for (const std::uint64_t d : devices) ops->push_back(make_op(slot::kDrain, {d}));
  return devices;
}

Calls calls_so_far(spec::CacheLockstep& lockstep) {
  Calls calls{};
  for (unsigned kind = 0; kind < device::kCallKinds; ++kind)
    calls[kind] = lockstep.gpu()->account().of(static_cast<device::CallKind>(kind)).calls;
  return calls;
}

/// Fails the calls of one file with one end.
class FaultLoop {
 public:
  FaultLoop(spec::OpFile file, Ending ending, const FaultChoice& choice, FaultTally* tally)
      : file_(std::move(file)), choice_(choice), tally_(*tally), random_(choice.seed) {
    file_.lines.clear();
    std::erase_if(file_.ops, [](const Op& op) { return op.slot == slot::kEndNow; });
    options_.factory = caching_allocator_factory();
    const auto is_set_up = [](const Op& op) {
      return op.slot == slot::kConf || op.slot == slot::kDevice || op.slot == slot::kSeed ||
             op.slot == slot::kObserve;
    };
    first_ = std::find_if_not(file_.ops.begin(), file_.ops.end(), is_set_up) - file_.ops.begin();
    std::size_t end = file_.ops.size();
    if (ending != Ending::kHealed) {
      std::set<std::uint64_t> devices;
      if (ending == Ending::kTrimmed) devices = free_everything(&file_.ops);
      end = file_.ops.size();
      for (const std::uint64_t d : devices) file_.ops.push_back(make_op(slot::kTrim, {d}));
      file_.ops.push_back(make_op(slot::kEndNow, {}));
    }
    count_calls(end, ending == Ending::kHealed);
  }

  std::string run() {
    for (std::uint64_t kind = 0; kind < device::kCallKinds && text_.empty(); ++kind) {
      for (std::uint64_t n = 1; n <= calls_[kind] && text_.empty(); ++n) fail_call(kind, n);
    }
    return text_;
  }

 private:
  /// `end`: the index of the first op of the end. A healed end makes its calls without failures.
  void count_calls(std::size_t end, bool is_healed) {
    spec::CacheLockstep lockstep(options_);
    for (std::size_t i = 0; i < end; ++i) lockstep.step(file_.ops[i]);
    if (lockstep.gpu() != nullptr) before_end_ = calls_ = calls_so_far(lockstep);
    for (std::size_t i = end; i < file_.ops.size(); ++i) lockstep.step(file_.ops[i]);
    if (!lockstep.finish().is_good()) text_ = judge_sequence(file_);
    if (!is_healed) calls_ = calls_so_far(lockstep);
  }

  void fail_call(std::uint64_t kind, std::uint64_t n) {
    const std::uint64_t any = random_.below(spec::kFailureCodes.size());
    for (std::uint64_t i = 0; i < choice_.codes; ++i) {
      for (const spec::FailMode mode : {spec::FailMode::kOnce, spec::FailMode::kOn})
        judge({{kind, n, mode, (any + i) % spec::kFailureCodes.size()}});
    }
    for (unsigned i = 0; i < choice_.partners; ++i) {
      const Failure other = draw();
      if (other.kind != kind || other.n != n) judge({{kind, n, spec::FailMode::kOnce, any}, other});
    }
  }

  /// Any call that the file makes.
  Failure draw() {
    std::uint64_t at = 0;
    for (const std::uint64_t count : calls_) at += count;
    at = random_.below(at);  // the caller knows of a call
    std::uint64_t kind = 0;
    for (; at >= calls_[kind]; ++kind) at -= calls_[kind];
    return {kind, at + 1, spec::FailMode::kOnce, random_.below(spec::kFailureCodes.size())};
  }

  void judge(const std::vector<Failure>& failures) {
    if (!text_.empty()) return;
    spec::OpFile failing = file_;
    for (const Failure& each : failures) {
      const std::uint64_t mode = each.mode == spec::FailMode::kOnce ? 0 : 1;
      failing.ops.insert(failing.ops.begin() + first_,
                         make_op(slot::kFailAs, {each.kind, each.n, mode, each.code}));
    }
    const spec::LockstepResult result = spec::CacheLockstep::run(failing, options_);
    if (!result.is_good()) text_ = judge_sequence(failing);
    if (result.planned_failures < failures.size()) {
      ++tally_.unreached;
    } else if (failures.size() == 1) {
      ++tally_.single;
      tally_.at_end += failures[0].n > before_end_[failures[0].kind];
    } else {
      ++tally_.pairs;
    }
  }

  spec::OpFile file_;
  FaultChoice choice_;
  FaultTally& tally_;
  spec::Random random_;
  spec::CacheLockstep::Options options_;
  std::ptrdiff_t first_ = 0;  ///< the first op after the settings
  Calls calls_{};             ///< in a run without failures
  Calls before_end_{};        ///< of these, before the last trim and the destructor
  std::string text_;
};

}  // namespace

std::uint64_t driver_calls(const spec::OpFile& file) {
  spec::CacheLockstep::Options options;
  options.factory = caching_allocator_factory();
  spec::CacheLockstep lockstep(options);
  for (const Op& op : file.ops) lockstep.step(op);
  std::uint64_t sum = 0;
  if (lockstep.gpu() != nullptr) {
    for (const std::uint64_t calls : calls_so_far(lockstep)) sum += calls;
  }
  lockstep.finish();
  return sum;
}

std::string fail_each_call(const spec::OpFile& file, const FaultChoice& choice, FaultTally* tally) {
  for (const Ending ending : {Ending::kHealed, Ending::kAtOnce, Ending::kTrimmed}) {
    const std::string text = FaultLoop(file, ending, choice, tally).run();
    if (!text.empty()) return text;
  }
  return {};
}

}  // namespace ashlar::props
