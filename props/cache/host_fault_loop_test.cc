// The fault loop of the host: every allocation of the library's records in a sequence is refused in
// turn. Imitated: a process at its memory limit. Checked at every step by the model: a call that
// the host has no memory for says so, gives nothing back to the device, waits for nothing and
// changes nothing; the same call made again works; and at the end, when everything is freed and
// trimmed, nothing is held.
//
// This executable links host_memory/refusing_host.cc, which replaces the operators new.
// Not proved: pairs of refusals, or a host that stays empty (cache_memory_test.cc); threads.
#include <gtest/gtest.h>

#include "props/host_memory/refusing_run.h"
#include "props/sequences/cache_sequences.h"
#include "props/sequences/place_reach.h"
#include "props/sequences/step_sequences.h"
#include "props/sequences/stored_sequences.h"
#include "spec/ops/text.h"

namespace ashlar::props {
namespace {

/// Refuses each allocation of the host in turn; returns how many were refused.
std::uint64_t refuse_each(const spec::OpFile& file) {
  std::uint64_t refusals = 0;
  for (std::uint64_t n = 1;; ++n) {
    const spec::LockstepResult result = run_refusing(file, n);
    if (!result.is_good()) {
      ADD_FAILURE() << "allocation " << n << " refused: " << result.divergence.clause << ": "
                    << result.divergence.text << "\nat " << result.op_text << "\n"
                    << spec::print_ops(file) << result.maps;
      return refusals;
    }
    if (host.refused == 0) return refusals;
    ++refusals;
  }
}

TEST(HostFaultLoop, NoSingleRefusalOfTheHostLeaksOrBreaksTheBooks) {
  std::uint64_t refusals = 0;
  for (std::uint64_t seed = 0; seed < 32 && !HasFailure(); ++seed) {
    SequenceShape shape = shape_from(seed & ~std::uint64_t{2});  // no failures of the device
    shape.ops = 120;
    shape.streams = 6;
    shape.has_capacity = seed % 2 == 0;
    shape.has_conf = seed % 3 == 0;
    shape.has_pins = seed % 4 == 1;
    shape.devices = 1 + static_cast<std::uint32_t>(seed % 5 == 0);
    refusals += refuse_each(random_sequence(shape, seed));
  }
  std::printf("%llu allocations of the host refused\n", static_cast<unsigned long long>(refusals));
  EXPECT_GT(refusals, 300u);
}

TEST(HostFaultLoop, NoRefusalInAStepThatRepeatsBreaksTheBooks) {
  PlaceReach reach;
  std::uint64_t refusals = 0;
  for (std::uint64_t seed = 0; seed < 100 && !HasFailure(); ++seed) {
    StepShape shape = step_shape_from(seed * 11);
    shape.has_failures = shape.has_large_places = false;
    refusals += refuse_each(stepping_sequence(shape, seed));
  }
  reach.note_world();
  EXPECT_GT(refusals, 600u);
  if (ASHLAR_ASSERTIONS) {
    EXPECT_GT(reach.times(cache::PlaceEvent::kNoRecord), 5u) << reach.table();
  }
}

TEST(HostFaultLoop, NoRefusalInAStoredSequenceBreaksTheBooks) {
  std::uint64_t refusals = 0;
  const auto run = [&refusals](const spec::OpFile& file, const std::filesystem::path& path) {
    SCOPED_TRACE(path);
    refusals += refuse_each(file);
  };
  for_each_stored(ASHLAR_REGRESSIONS, spec::Subject::kCache, run);
  EXPECT_GT(refusals, 200u);
}

}  // namespace
}  // namespace ashlar::props
