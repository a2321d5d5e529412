// Fuzz target: the caching allocator on a simulated machine, every answer judged by the model, on the byte form of ops.
//
// Every input is a legal sequence: allocations, frees, uses, kernels, progress, captures, dying streams, failing drivers,
// lost devices, misuse, configurations. The mutator works on whole ops. A divergence prints the sequence as `.ops` text,
// the clause and both maps, and aborts. Does not prove: anything about several threads.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <vector>

#include "fuzz/op_mutator.h"
#include "props/adapters/cache_subject.h"
#include "props/sequences/cache_sequences.h"
#include "spec/lockstep/cache_lockstep.h"
#include "spec/ops/bytes.h"
#include "spec/ops/text.h"

namespace {

using namespace ashlar;

constexpr std::size_t kOpsMax = 2000;

// Every clause is judged in every input. Most have the map walked at two neighbouring calls of every kSparse, and at the end,
// where almost all that went wrong before still shows, in three quarters of the time; one length of sixteen has it walked at
// every call. The answers to calls, the device's calls, stream order and ownership are judged at every call of every input.
constexpr std::uint32_t kSparse = 4;
constexpr std::size_t kDenseLengths = 16;
constexpr std::size_t kDenseLength = 5;  // odd: the longest that an engine makes is round, and common

/// ASHLAR_FUZZ_WALK_EVERY=1 has every input judged in full at every call: stored inputs are replayed so, and a finding is
/// minimised so, for a shorter input may be judged otherwise.
std::uint32_t walk_every(std::size_t size) {
  static const char* const asked = std::getenv("ASHLAR_FUZZ_WALK_EVERY");
  if (asked != nullptr) return static_cast<std::uint32_t>(std::strtoul(asked, nullptr, 10));
  return size % kDenseLengths == kDenseLength ? 1 : kSparse;
}

[[noreturn]] void diverge(const spec::OpFile& file, const spec::LockstepResult& result) {
  std::fprintf(stderr, "%s%s: %s\nat op %llu, %s, with ASHLAR_FUZZ_WALK_EVERY=%u\n%s", spec::print_ops(file).c_str(),
               result.divergence.clause.c_str(), result.divergence.text.c_str(),
               static_cast<unsigned long long>(result.op_index), result.op_text.c_str(), result.walk_every,
               result.maps.c_str());
  std::abort();
}

/// How long the inputs are that the engine runs: without it, executions a second say nothing.
struct Tally {
  std::uint64_t inputs = 0;
  std::uint64_t ops = 0;
  ~Tally() {
    if (inputs == 0) return;
    std::fprintf(stderr, "stat::average_ops_per_input:     %llu\n", static_cast<unsigned long long>(ops / inputs));
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
  options.walk_every = options.stats_every = walk_every(size);
  const spec::LockstepResult result = spec::CacheLockstep::run(file, options);
  if (!result.is_good()) diverge(file, result);
  tally.inputs += 1;
  tally.ops += result.ops;
  file.ops.clear();  // an op's text left behind looks like a leak, for which the engine runs the input again
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t size_max,
                                               unsigned seed) {
  return fuzz::mutate(spec::Subject::kCache, data, size, size_max, seed);
}

extern "C" std::size_t LLVMFuzzerCustomCrossOver(const std::uint8_t* a, std::size_t a_size, const std::uint8_t* b,
                                                 std::size_t b_size, std::uint8_t* out, std::size_t size_max,
                                                 unsigned seed) {
  return fuzz::cross_over({a, a_size}, {b, b_size}, out, size_max, seed);
}
