// See churn_sequences.h.
#include "props/sequences/churn_sequences.h"

#include <algorithm>
#include <array>
#include <vector>

#include "props/adapters/caching_allocator_subject.h"
#include "spec/lockstep/cache_rounds.h"
#include "spec/ops/opcode_table.h"
#include "spec/ops/random.h"
#include "spec/ops/text.h"
#include "spec/reduce/reduce.h"

namespace ashlar::props {

namespace {

namespace slot = spec::slot;
using spec::Op;

constexpr const char* kOwn[] = {"reuse:own", "reuse:own,wait_ms:0"};
constexpr const char* kLending[] = {"", "reuse:completed,wait_ms:0", "wait_ms:0", "reuse:ordered",
                                    "reuse:ordered,wait_ms:0"};
constexpr std::uint64_t kStaying = 3;           ///< streams s0, s1, s2 stay
constexpr std::uint64_t kFirstOfThread = 5;     ///< s5 and s6 are another thread's default streams
constexpr std::uint64_t kFirstComing = 10;      ///< s10 and on come and go
constexpr std::uint64_t kRoundRunsMax = 2'000;  ///< runs of a reduction: each is many rounds
constexpr std::uint64_t kLivesMax = 6;          ///< streams that come in one round

class RoundWriter {
 public:
  RoundWriter(const ChurnShape& shape, std::uint64_t seed)
      : shape_(shape), random_(seed), devices_(shape.has_two_devices ? 2 : 1) {}

  spec::OpFile churn() {
    set_up(random_.below(1000));
    const std::uint64_t lives = 1 + random_.below(kLivesMax);
    for (std::uint64_t life = 0; life < lives; ++life) add_life(kFirstComing + life);
    add_step(1 + random_.below(4));
    interleave();
    return std::move(file_);
  }

  spec::OpFile settle() {
    set_up(random_.below(250) * 4);
    const std::uint64_t parts = 1 + random_.below(3);
    for (std::uint64_t part = 0; part < parts; ++part) add_step(1 + random_.below(8));
    interleave();
    return std::move(file_);
  }

 private:
  using Ops = std::vector<Op>;

  static void put(Ops* ops, std::uint8_t s, std::array<std::uint64_t, spec::kArgsMax> arg) {
    Op op;
    op.slot = s;
    op.arg = arg;
    ops->push_back(std::move(op));
  }

  void set_up(std::uint64_t seed) {
    Op conf;
    conf.slot = slot::kConf;
    conf.text = shape_.has_lenders ? kLending[random_.below(std::size(kLending))]
                                   : kOwn[random_.below(std::size(kOwn))];
    const char* const blocks = shape_.has_split_limit ? "max_split_size_mb:21"
                               : random_.one_in(2)    ? "backing:segments"
                                                      : "backing:pages";
    conf.text += std::string(conf.text.empty() ? "" : ",") + blocks;
    file_.ops.push_back(conf);
    put(&file_.ops, slot::kSeed, {seed});
    for (std::uint64_t d = 0; d < devices_; ++d) put(&file_.ops, slot::kDevice, {d, 0});
    for (std::uint64_t s = 1; s < kStaying; ++s)
      put(&file_.ops, slot::kStreamCreate, {s, s % devices_});
    if (!shape_.has_thread_streams) return;
    put(&file_.ops, slot::kThread, {1});
    for (std::uint64_t d = 0; d < devices_; ++d)
      put(&file_.ops, slot::kThreadStream, {kFirstOfThread + d, d});
    put(&file_.ops, slot::kThread, {2});
  }

  std::uint64_t of_thread() { return kFirstOfThread + random_.below(devices_); }
  std::uint64_t staying() { return random_.below(kStaying); }
  std::uint64_t size() {
    switch (random_.below(4)) {
      case 0: return 1 + random_.below(16u << 10);
      case 1: return 1 + random_.below(1u << 20);
      case 2: return (std::uint64_t{1} << 20) + random_.below(9u << 20);
      default: return (std::uint64_t{10} << 20) + random_.below(24u << 20);
    }
  }

  /// A use of p by s: announced, or a kernel's.
  void add_use(Ops* ops, std::uint64_t p, std::uint64_t s) {
    if (shape_.has_thread_streams && random_.one_in(4)) put(ops, slot::kUse, {p, of_thread()});
    if (!shape_.has_uses) return;
    if (random_.one_in(2)) put(ops, slot::kKernel, {s, p, random_.below(3)});
    if (random_.one_in(2)) put(ops, slot::kUse, {p, s});
  }
  void add_free(Ops* ops, std::uint64_t p, std::uint64_t s) {
    const bool is_thread = shape_.has_thread_streams && random_.one_in(4);
    if (is_thread) put(ops, slot::kFreeOn, {p, of_thread()});
    else if (shape_.has_uses && random_.one_in(4)) put(ops, slot::kFreeOn, {p, s});
    else put(ops, slot::kFree, {p});
  }
  void add_progress(Ops* ops, std::uint64_t s) {
    if (random_.one_in(3)) put(ops, slot::kStep, {s, 1 + random_.below(4)});
    else if (random_.one_in(4)) put(ops, slot::kDrain, {random_.below(devices_)});
  }

  /// The end of s; sometimes while another stream captures, sometimes with its work unfinished.
  void add_end(Ops* ops, std::uint64_t s) {
    const bool captures = shape_.has_captures && random_.one_in(4);
    const std::uint64_t other = staying();
    if (captures) put(ops, slot::kCaptureBegin, {other, random_.below(3)});
    add_progress(ops, s);
    const bool is_lost = shape_.has_destroys && random_.one_in(3);
    put(ops, is_lost ? slot::kStreamDestroy : slot::kStreamRetire, {s});
    if (captures) put(ops, slot::kCaptureEnd, {other});
  }

  /// One stream comes, has memory of its own or uses that of others, and goes.
  void add_life(std::uint64_t s) {
    parts_.emplace_back();
    Ops* const ops = &parts_.back();
    put(ops, slot::kStreamCreate, {s, random_.below(devices_)});
    const bool is_only_named = shape_.has_uses && random_.one_in(3);
    std::vector<std::uint64_t> held;
    const std::uint64_t blocks = 1 + random_.below(3);
    for (std::uint64_t i = 0; i < blocks; ++i) {
      const std::uint64_t p = next_++;
      const std::uint64_t owner = is_only_named ? staying() : s;
      const std::uint64_t user = is_only_named ? s : staying();
      put(ops, slot::kAlloc, {p, size(), owner});
      if (is_only_named || random_.one_in(2)) add_use(ops, p, user);
      add_progress(ops, owner);
      if (!shape_.has_late_frees || random_.one_in(2)) add_free(ops, p, user);
      else held.push_back(p);
    }
    add_end(ops, s);
    for (const std::uint64_t p : held) {
      if (random_.one_in(4)) add_use(ops, p, staying());
      add_free(ops, p, staying());
    }
  }

  /// What streams that stay do in every round.
  void add_step(std::uint64_t blocks) {
    parts_.emplace_back();
    Ops* const ops = &parts_.back();
    std::vector<std::uint64_t> held;
    for (std::uint64_t i = 0; i < blocks; ++i) {
      const std::uint64_t p = next_++;
      const std::uint64_t s = staying();
      put(ops, slot::kAlloc, {p, size(), s});
      if (random_.one_in(3)) add_use(ops, p, staying());
      add_progress(ops, s);
      held.push_back(p);
      if (random_.one_in(3)) free_one(ops, &held);
    }
    while (!held.empty()) free_one(ops, &held);
  }
  void free_one(Ops* ops, std::vector<std::uint64_t>* held) {
    const std::uint64_t p = take(held);  // before staying(), whatever the compiler: both draw
    add_free(ops, p, staying());
  }
  std::uint64_t take(std::vector<std::uint64_t>* held) {
    std::swap((*held)[random_.below(held->size())], held->back());
    const std::uint64_t p = held->back();
    held->pop_back();
    return p;
  }

  /// The parts' ops, each part's in its order.
  void interleave() {
    std::vector<std::size_t> at(parts_.size(), 0);
    while (true) {
      std::vector<std::size_t> open;
      for (std::size_t i = 0; i < parts_.size(); ++i) {
        if (at[i] < parts_[i].size()) open.push_back(i);
      }
      if (open.empty()) return;
      const std::size_t part = open[random_.below(open.size())];
      file_.ops.push_back(parts_[part][at[part]++]);
    }
  }

  const ChurnShape shape_;
  spec::Random random_;
  const std::uint64_t devices_;
  spec::OpFile file_;
  std::vector<Ops> parts_;
  std::uint64_t next_ = 0;
};

}  // namespace

ChurnShape churn_shape_from(std::uint64_t bits) {
  ChurnShape shape;
  shape.has_uses = (bits & 1) != 0;
  shape.has_late_frees = (bits & 2) != 0;
  shape.has_two_devices = (bits & 4) != 0;
  shape.has_captures = (bits & 8) != 0;
  shape.has_destroys = (bits & 16) != 0;
  shape.has_split_limit = (bits & 32) != 0;
  shape.has_lenders = (bits & 64) != 0;
  shape.has_thread_streams = (bits & 128) != 0;
  return shape;
}

spec::OpFile churning_round(const ChurnShape& shape, std::uint64_t seed) {
  return RoundWriter(shape, seed).churn();
}
spec::OpFile settling_round(const ChurnShape& shape, std::uint64_t seed) {
  return RoundWriter(shape, seed).settle();
}

spec::CacheLockstep::Options long_run_options() {
  spec::CacheLockstep::Options options;
  options.factory = caching_allocator_factory();
  options.walk_every = 64;
  options.stats_every = 64;
  return options;
}

std::string judge_rounds(const spec::OpFile& round, std::uint32_t rounds,
                         const spec::CacheLockstep::Options& options) {
  const spec::LockstepResult result = spec::run_rounds(round, rounds, options);
  if (result.is_good()) return {};
  const auto clause = [&](const spec::OpFile& ops) {
    return spec::run_rounds(ops, rounds, options).divergence.clause;
  };
  const spec::Reduction reduced = spec::reduce_ops(round, clause, kRoundRunsMax);
  const spec::LockstepResult again = spec::run_rounds(reduced.file, rounds, options);
  return spec::print_ops(reduced.file) + "# " + again.divergence.clause + ": " +
         again.divergence.text + "\n# at " + again.op_text + ", of " + std::to_string(rounds) +
         " rounds\n";
}

}  // namespace ashlar::props
