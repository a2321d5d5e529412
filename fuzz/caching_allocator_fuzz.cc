// Fuzz target: the caching allocator on a simulated machine, every answer judged by the model, on
// the byte form of ops.
//
// Every input is a legal sequence: allocations, frees, uses, kernels, progress, captures, dying
// streams, failing drivers, lost devices, misuse, configurations. The mutator works on whole ops. A
// divergence prints the sequence as `.ops` text, the clause and both maps, and aborts.
// Does not prove: anything about several threads.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <vector>

#include "fuzz/op_mutator.h"
#include "props/adapters/caching_allocator_subject.h"
#include "props/sequences/cache_sequences.h"
#include "spec/lockstep/cache_lockstep.h"
#include "spec/ops/bytes.h"
#include "spec/ops/text.h"

namespace {

using namespace ashlar;

constexpr std::size_t kOpsMax = 2000;

/// Every clause is judged in every input, and the map is walked at every call. To save time,
/// statistics are read at every second call only (they are totals, so an error stays visible), and
/// the frees that end the world are followed by one walk. With ASHLAR_FUZZ_IN_FULL set, both are
/// done at every call; stored inputs are run that way.
bool is_in_full() {
  static const bool asked = std::getenv("ASHLAR_FUZZ_IN_FULL") != nullptr;
  return asked;
}

[[noreturn]] void diverge(const spec::OpFile& file, const spec::LockstepResult& result) {
  std::fprintf(stderr, "%s%s: %s\nat op %llu, %s\n%s", spec::print_ops(file).c_str(),
               result.divergence.clause.c_str(), result.divergence.text.c_str(),
               static_cast<unsigned long long>(result.op_index), result.op_text.c_str(),
               result.maps.c_str());
  std::abort();
}

/// The average length of the inputs that the engine runs: executions per second mean little without
/// it.
struct Tally {
  std::uint64_t inputs = 0;
  std::uint64_t ops = 0;
  ~Tally() {
    if (inputs == 0) return;
    std::fprintf(stderr, "stat::average_ops_per_input:     %llu\n",
                 static_cast<unsigned long long>(ops / inputs));
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static spec::OpFile file;
  static const spec::CacheFactory factory = props::caching_allocator_factory();
  static Tally tally;
  file.ops.reserve(kOpsMax);
  props::byte_sequence(std::span(data, size), kOpsMax, &file);
  spec::CacheLockstep::Options options;
  options.factory = factory;
  options.stats_every = is_in_full() ? 1 : 2;
  options.defers_last_walks = !is_in_full();
  const spec::LockstepResult result = spec::CacheLockstep::run(file, options);
  if (!result.is_good()) diverge(file, result);
  tally.inputs += 1;
  // without the ops that byte_sequence adds
  tally.ops += result.ops - std::min<std::uint64_t>(result.ops, props::kOpsAdded);
  // The text of an op kept here would look like a leak, and the engine would run the input again.
  file.ops.clear();
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t size_max, unsigned seed) {
  return fuzz::mutate(spec::Subject::kCache, data, size, size_max, seed);
}

extern "C" std::size_t LLVMFuzzerCustomCrossOver(const std::uint8_t* a, std::size_t a_size,
                                                 const std::uint8_t* b, std::size_t b_size,
                                                 std::uint8_t* out, std::size_t size_max,
                                                 unsigned seed) {
  return fuzz::cross_over({a, a_size}, {b, b_size}, out, size_max, seed);
}
