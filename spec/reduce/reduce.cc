// See reduce.h.
#include "spec/reduce/reduce.h"

#include <algorithm>
#include <iterator>

#include "spec/ops/opcode_table.h"

namespace ashlar::spec {

namespace {

/// Which sizes may change.
enum class SizeRule : std::uint8_t {
  kEach,      ///< each by itself: they are compared with nothing in the file
  kTogether,  ///< all alike: some are capacities
  kNone,      ///< the configuration has sizes, which ops cannot be scaled with
};

SizeRule size_rule(const OpFile& file) {
  constexpr std::uint8_t kCapacities[] = {slot::kDevice,     slot::kCapacity, slot::kAddresses,
                                          slot::kLimit,      slot::kMakeRoom, slot::kExpectReserved,
                                          slot::kExpectFree, slot::kPoolGrow, slot::kPoolReserve};
  SizeRule rule = SizeRule::kEach;
  for (const Op& op : file.ops) {
    if (op.slot == slot::kConf && op.text.find_first_of("123456789") != std::string::npos)
      return SizeRule::kNone;
    if (std::find(std::begin(kCapacities), std::end(kCapacities), op.slot) != std::end(kCapacities))
      rule = SizeRule::kTogether;
  }
  return rule;
}

class Reducer {
 public:
  Reducer(const OpFile& file, const FailingClause& run, std::uint64_t runs_max)
      : run_(run), runs_max_(runs_max) {
    result_.file = file;
    result_.file.lines.clear();
    const FailureStory story = run(file);
    result_.clause = story.clause;
    shape_ = story.shape;
    result_.runs = 1;
  }

  Reduction reduce() {
    if (result_.clause.empty()) return result_;
    for (bool changed = true; changed && !is_spent();) {
      changed = drop_chunks();
      changed = shrink_numbers() || changed;
    }
    result_.is_minimal = !is_spent();
    return result_;
  }

 private:
  bool is_spent() const { return result_.runs >= runs_max_; }

  enum class Keep : std::uint8_t { kClause, kShape };

  /// Keeps the candidate if it fails the same clause, and with kShape in the same shape.
  bool accept(OpFile candidate, Keep keep) {
    if (is_spent()) return false;
    ++result_.runs;
    FailureStory story = run_(candidate);
    if (story.clause != result_.clause) return false;
    if (keep == Keep::kShape && story.shape != shape_) return false;
    shape_ = std::move(story.shape);
    result_.file = std::move(candidate);
    return true;
  }

  /// ddmin's complements: drops chunks of half, a quarter, ... one op, starting at the end, since
  /// later ops depend on earlier ones.
  bool drop_chunks() {
    bool changed = false;
    for (std::size_t chunk = std::max<std::size_t>(result_.file.ops.size() / 2, 1); !is_spent();
         chunk /= 2) {
      for (std::size_t end = result_.file.ops.size(); end > 0 && !is_spent();) {
        const std::size_t begin = end > chunk ? end - chunk : 0;
        OpFile candidate = result_.file;
        candidate.ops.erase(candidate.ops.begin() + static_cast<std::ptrdiff_t>(begin),
                            candidate.ops.begin() + static_cast<std::ptrdiff_t>(end));
        changed = accept(std::move(candidate), Keep::kClause) || changed;
        end = std::min(begin, result_.file.ops.size());
      }
      if (chunk == 1) break;
    }
    return changed;
  }

  bool try_number(std::size_t op, unsigned arg, std::uint64_t value) {
    if (result_.file.ops[op].arg[arg] <= value) return false;
    OpFile candidate = result_.file;
    candidate.ops[op].arg[arg] = value;
    return accept(std::move(candidate), Keep::kShape);
  }

  /// Halves every size, until the case no longer fails in its shape.
  bool shrink_sizes_together() {
    bool changed = false;
    while (!is_spent()) {
      OpFile candidate = result_.file;
      bool is_smaller = false;
      for (Op& op : candidate.ops) {
        for (unsigned arg = 0; arg < kArgsMax; ++arg) {
          if (op_info(op.slot).args[arg] != ArgKind::kBytes || op.arg[arg] <= 1) continue;
          op.arg[arg] -= op.arg[arg] / 2;  // rounded up: none becomes 0
          is_smaller = true;
        }
      }
      if (!is_smaller || !accept(std::move(candidate), Keep::kShape)) return changed;
      changed = true;
    }
    return changed;
  }

  bool shrink_numbers() {
    switch (size_rule(result_.file)) {
      case SizeRule::kNone: return shrink_each(false);
      case SizeRule::kEach: return shrink_each(true);
      case SizeRule::kTogether: break;
    }
    const bool changed = shrink_sizes_together();
    return shrink_each(false) || changed;
  }

  /// Tries for each size familiar round ones, then halves; for each count 0, 1, 2, then halves.
  bool shrink_each(bool with_sizes) {
    constexpr std::uint64_t kSizes[] = {1,        512,       1u << 20, (1u << 20) + 1,
                                        2u << 20, 10u << 20, 20u << 20};
    constexpr std::uint64_t kCounts[] = {0, 1, 2};
    bool changed = false;
    for (std::size_t i = 0; i < result_.file.ops.size() && !is_spent(); ++i) {
      const OpInfo& info = op_info(result_.file.ops[i].slot);
      for (unsigned arg = 0; arg < kArgsMax; ++arg) {
        bool shrunk = false;
        if (with_sizes && info.args[arg] == ArgKind::kBytes) {
          for (const std::uint64_t size : kSizes) shrunk = shrunk || try_number(i, arg, size);
        } else if (info.args[arg] == ArgKind::kCount) {
          for (const std::uint64_t count : kCounts) shrunk = shrunk || try_number(i, arg, count);
        } else {
          continue;
        }
        while (!is_spent() && try_number(i, arg, result_.file.ops[i].arg[arg] / 2)) shrunk = true;
        changed = changed || shrunk;
      }
    }
    return changed;
  }

  const FailingClause& run_;
  std::uint64_t runs_max_;
  Reduction result_;
  std::string shape_;  // of result_
};

}  // namespace

Reduction reduce_ops(const OpFile& file, const FailingClause& run, std::uint64_t runs_max) {
  return Reducer(file, run, runs_max).reduce();
}

}  // namespace ashlar::spec
