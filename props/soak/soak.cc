// The soak: worlds drawn from seeds, one after another, for as long as asked. ci/soak runs it.
//
//   ashlar_soak --seconds S [--first SEED] [--stride N] [--dir FOLDER]   for S seconds
//   ashlar_soak --worlds N  [--first SEED] ...                           N worlds
//   ashlar_soak --worlds 1 --first SEED                                  one world again
//
// A world's seed draws its sort: a sequence of any shape, walked at every call or seldom, on a
// machine with or without latency; a sequence in which the host refuses an allocation; rounds of
// streams that come and go; a step that has to settle; one whose pages serve several places; threads
// over real memory; a program on page-locked memory.
// Prints one line at the end: `worlds ops failures`; before it, in builds with assertions, how many worlds
// reached remembered places and loans, without those of threads. A failure ends the run with exit 1; its seed
// and reduced `.ops` are in FOLDER/seed-SEED.ops, and are printed. Exit 2: usage. Where the process
// dies or hangs, FOLDER/FIRST.now holds `seed worlds ops` of the world under way.
//
// Links host_memory/refusing_host.cc, which replaces the operators new and the host's pages.
// Thread safety: one thread; a world of threads makes its own.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "props/adapters/caching_allocator_subject.h"
#include "props/cache/thread_stress.h"
#include "props/host_memory/refusing_run.h"
#include "props/pinned/pinned_world.h"
#include "props/sequences/cache_sequences.h"
#include "props/sequences/churn_sequences.h"
#include "props/sequences/place_reach.h"
#include "props/sequences/step_sequences.h"
#include "spec/lockstep/cache_rounds.h"
#include "spec/ops/random.h"
#include "spec/ops/text.h"
#include "spec/reduce/reduce.h"

namespace ashlar::props {
namespace {

/// What became of a world: its ops, and a failure as `.ops` text, empty if there is none.
struct WorldResult {
  std::uint64_t ops = 0;
  std::string failure;
};

using Run = std::function<spec::LockstepResult(const spec::OpFile&)>;

/// Runs the file, and reduces it where it fails.
WorldResult run_and_reduce(const spec::OpFile& file, const std::string& how, const Run& run) {
  const spec::LockstepResult result = run(file);
  if (result.is_good()) return {result.ops, {}};
  const spec::Reduction reduced =
      spec::reduce_ops(file, [&](const spec::OpFile& ops) { return run(ops).divergence.clause; });
  const spec::LockstepResult again = run(reduced.file);
  return {result.ops, spec::print_ops(reduced.file) + "# " + how + "\n# " +
                          again.divergence.clause + ": " + again.divergence.text + "\n# at " +
                          again.op_text + "\n"};
}

std::string how_judged(const spec::CacheLockstep::Options& options) {
  return "walk_every " + std::to_string(options.walk_every) + ", stats_every " +
         std::to_string(options.stats_every) + ", entries_per_ms " +
         std::to_string(options.machine.entries_per_ms);
}

WorldResult run_sequence(spec::Random& random) {
  SequenceShape shape = shape_from(random.below(8192));
  shape.ops = 100 + static_cast<std::uint32_t>(random.below(1500));
  shape.streams = 2 + static_cast<std::uint32_t>(random.below(6));
  shape.live_max = 8 + static_cast<std::uint32_t>(random.below(120));
  spec::CacheLockstep::Options options;
  options.factory = caching_allocator_factory();
  if (random.one_in(2)) {
    options.walk_every = 1 + static_cast<std::uint32_t>(random.below(64));
    options.stats_every = 1 + static_cast<std::uint32_t>(random.below(16));
  }
  // With the default waits only: a trim that may not wait says on a slow machine that its own events
  // are not done, which C28 reports.
  if (random.one_in(3)) shape.has_conf = false;
  if (!shape.has_conf)
    options.machine.entries_per_ms = 1 + static_cast<std::uint32_t>(random.below(4));
  return run_and_reduce(
      random_sequence(shape, random.next()), how_judged(options),
      [&](const spec::OpFile& ops) { return spec::CacheLockstep::run(ops, options); });
}

/// A step that repeats, of which pages serve several places.
WorldResult run_stepping(spec::Random& random) {
  StepShape shape = step_shape_from(random.below(512));
  if (!random.one_in(8)) shape.has_large_places = false;  // their pages take long to map
  spec::CacheLockstep::Options options;
  options.factory = caching_allocator_factory();
  if (random.one_in(2)) options.walk_every = 1 + static_cast<std::uint32_t>(random.below(64));
  if (random.one_in(4))
    options.machine.entries_per_ms = 1 + static_cast<std::uint32_t>(random.below(4));
  return run_and_reduce(
      stepping_sequence(shape, random.next()), how_judged(options),
      [&](const spec::OpFile& ops) { return spec::CacheLockstep::run(ops, options); });
}

/// One allocation of the library's records, the n-th after the allocator was made, is refused.
WorldResult run_refusal(spec::Random& random) {
  const bool is_stepping = random.one_in(4);
  const std::uint64_t n = 1 + random.below(60);
  const auto sequence = [&] {
    if (is_stepping)
      return stepping_sequence(step_shape_from(random.below(512) & ~std::uint64_t{66}),
                               random.next());
    SequenceShape shape = shape_from(random.below(1024) & ~std::uint64_t{2});
    shape.has_pins = random.one_in(4);
    shape.ops = 300;
    shape.streams = 6;
    return random_sequence(shape, random.next());
  };
  return run_and_reduce(sequence(), "the host's allocation " + std::to_string(n) + " is refused",
                        [n](const spec::OpFile& file) { return run_refusing(file, n); });
}

/// Of the shapes whose books are known to stay bounded.
WorldResult run_churn(spec::Random& random) {
  ChurnShape shape;
  do shape = churn_shape_from(random.below(256));
  while (!is_known_bounded(shape));
  const std::uint32_t rounds = 60 + static_cast<std::uint32_t>(random.below(600));
  return run_and_reduce(
      churning_round(shape, random.next()), std::to_string(rounds) + " rounds",
      [&](const spec::OpFile& ops) { return spec::run_rounds(ops, rounds, long_run_options()); });
}

WorldResult run_settling(spec::Random& random) {
  ChurnShape shape;
  do shape = churn_shape_from(random.below(256));
  while (!has_to_settle(shape));
  constexpr std::uint32_t kRounds = 4 * spec::kSettledRounds;
  return run_and_reduce(
      settling_round(shape, random.next()), std::to_string(kRounds) + " rounds",
      [](const spec::OpFile& ops) { return spec::run_rounds(ops, kRounds, long_run_options()); });
}

WorldResult run_threads(spec::Random& random) {
  Stress::World world;
  world.capacity = random.one_in(2) ? Bytes::max() : Bytes{(64 + random.below(128)) << 20};
  const std::uint64_t threads = 2 + random.below(3);
  for (std::uint64_t t = 0; t < threads; ++t)
    world.stream_of_thread.push_back(static_cast<unsigned>(random.below(4)));
  world.seed = random.next();
  const auto ops = static_cast<std::uint64_t>(world.rounds) * threads;
  host = {};
  host.is_off = true;  // its counters are one thread's
  if (world.seed % 2 == 1) world.backing = cache::Backing::kPages;
  if (world.seed % 4 == 1) world.place_context = 1;
  Stress stress(std::move(world));
  stress.run();
  const std::string found = stress.find_imbalance();
  host = {};
  return {ops, found.empty() ? found
                             : "# a world of " + std::to_string(threads) +
                                   " threads, which no .ops can say: " + found + "\n"};
}

/// A program on the allocator of page-locked memory.
WorldResult run_pinned(spec::Random& random) {
  std::vector<std::uint8_t> bytes(100 + random.below(1500));
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random.next() >> 32);
  InputBytes input(bytes.data(), bytes.size());
  PinnedWorld world(input);
  const std::string found = world.run();
  return {world.steps(), found.empty() ? found : "# page-locked memory: " + found + "\n"};
}

WorldResult run_world(std::uint64_t seed) {
  spec::Random random(seed);
  switch (random.below(16)) {
    case 0:
    case 1: return run_churn(random);
    case 2:
    case 3: return run_settling(random);
    case 4: return random.one_in(2) ? run_threads(random) : run_pinned(random);
    case 5:
    case 6: return run_refusal(random);
    case 7:
    case 8:
    case 9: return run_stepping(random);
    default: return run_sequence(random);
  }
}

struct SoakOptions {
  double seconds = 0;
  std::uint64_t worlds = ~std::uint64_t{0};
  std::uint64_t first = 1;
  std::uint64_t stride = 1;
  std::string dir = ".";
};

bool parse(int argc, char** argv, SoakOptions* options) {
  bool is_bounded = false;
  for (int i = 1; i < argc; i += 2) {
    if (i + 1 == argc) return false;
    const std::string name = argv[i];
    char* end = nullptr;
    if (name == "--seconds") options->seconds = std::strtod(argv[i + 1], &end);
    else if (name == "--worlds") options->worlds = std::strtoull(argv[i + 1], &end, 10);
    else if (name == "--first") options->first = std::strtoull(argv[i + 1], &end, 10);
    else if (name == "--stride") options->stride = std::strtoull(argv[i + 1], &end, 10);
    else if (name == "--dir") options->dir = argv[i + 1];
    else return false;
    if (end != nullptr && (end == argv[i + 1] || *end != '\0')) return false;
    is_bounded = is_bounded || name == "--seconds" || name == "--worlds";
  }
  return is_bounded;
}

int soak(const SoakOptions& options) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  const auto is_over = [&] {
    return options.seconds > 0 &&
           std::chrono::duration<double>(Clock::now() - start).count() >= options.seconds;
  };
  std::filesystem::create_directories(options.dir);
  const std::string now = options.dir + "/" + std::to_string(options.first) + ".now";
  std::uint64_t worlds = 0;
  std::uint64_t ops = 0;
  PlaceReach reach;
  for (std::uint64_t seed = options.first; worlds < options.worlds && !is_over();
       seed += options.stride) {
    std::ofstream(now) << seed << " " << worlds << " " << ops << "\n";
    const WorldResult result = run_world(seed);
    reach.note_world();
    ops += result.ops;
    ++worlds;
    if (result.failure.empty()) continue;
    const std::string path = options.dir + "/seed-" + std::to_string(seed) + ".ops";
    std::ofstream(path) << result.failure << "# ashlar_soak --worlds 1 --first " << seed << "\n";
    std::fprintf(stderr, "seed %llu fails: %s\n%s", static_cast<unsigned long long>(seed),
                 path.c_str(), result.failure.c_str());
    std::printf("%llu %llu 1\n", static_cast<unsigned long long>(worlds),
                static_cast<unsigned long long>(ops));
    return 1;
  }
  std::filesystem::remove(now);
  std::printf("%s", reach.table().c_str());
  std::printf("%llu %llu 0\n", static_cast<unsigned long long>(worlds),
              static_cast<unsigned long long>(ops));
  return 0;
}

}  // namespace
}  // namespace ashlar::props

int main(int argc, char** argv) {
  ashlar::props::SoakOptions options;
  if (!ashlar::props::parse(argc, argv, &options)) {
    std::fprintf(stderr,
                 "usage: ashlar_soak (--seconds S | --worlds N) [--first SEED] [--stride N] "
                 "[--dir FOLDER]\n");
    return 2;
  }
  return ashlar::props::soak(options);
}
