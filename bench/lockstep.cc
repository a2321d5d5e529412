// How fast the caching allocator runs in lockstep with its model, every clause checked at every
// step.
//
//   ashlar_lockstep_rate [SECONDS]     default 3, for each of the two cases
//
// One line per case: the case, checked ops per second of CPU time, blocks live on average.
// `worlds`: worlds of 200 ops and at most 64 live blocks each, of every shape; making and ending a
// world is included. `long`: one world of 20 000 ops of the plain shape, nearly always full. The
// ops are drawn before the clock starts. Exit 1 at a divergence: then there is nothing to measure.
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <set>
#include <vector>

#include "props/adapters/caching_allocator_subject.h"
#include "props/sequences/cache_sequences.h"
#include "spec/lockstep/cache_lockstep.h"
#include "spec/ops/opcode_table.h"

namespace {

using namespace ashlar;

double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

/// Of every shape but those that end the device early: what is left of such a sequence is answered
/// without work.
std::vector<spec::OpFile> draw(std::uint32_t ops, std::uint64_t count) {
  std::vector<spec::OpFile> files;
  for (std::uint64_t seed = 0; seed < count; ++seed) {
    props::SequenceShape shape = props::shape_from(seed % 256);
    shape.ops = ops;
    files.push_back(props::random_sequence(shape, seed));
  }
  return files;
}

/// Blocks that a name stands for, on average over the ops.
double live_on_average(const std::vector<spec::OpFile>& files) {
  std::uint64_t ops = 0, sum = 0;
  for (const spec::OpFile& file : files) {
    std::set<std::uint64_t> live;
    for (const spec::Op& op : file.ops) {
      if (op.slot == spec::slot::kAlloc) live.insert(op.arg[0]);
      if (op.slot == spec::slot::kFree || op.slot == spec::slot::kFreeOn) live.erase(op.arg[0]);
      sum += live.size();
      ops += 1;
    }
  }
  return static_cast<double>(sum) / static_cast<double>(ops);
}

bool measure(const char* name, const std::vector<spec::OpFile>& files, double seconds) {
  spec::CacheLockstep::Options options;
  options.factory = props::caching_allocator_factory();
  std::uint64_t ops = 0;
  const double start = cpu_seconds();
  double spent = 0;
  for (std::size_t i = 0; spent < seconds; i = (i + 1) % files.size()) {
    const spec::LockstepResult result = spec::CacheLockstep::run(files[i], options);
    if (!result.is_good()) {
      std::fprintf(stderr, "%s: %s\n", result.divergence.clause.c_str(),
                   result.divergence.text.c_str());
      return false;
    }
    ops += result.ops;
    spent = cpu_seconds() - start;
  }
  std::printf("%s %.0f %.0f\n", name, static_cast<double>(ops) / spent, live_on_average(files));
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  props::SequenceShape long_one;
  long_one.ops = 20'000;
  const double seconds = argc > 1 ? std::atof(argv[1]) : 3;
  return measure("worlds", draw(200, 256), seconds) &&
                 measure("long", {props::random_sequence(long_one, 1)}, seconds)
             ? 0
             : 1;
}
