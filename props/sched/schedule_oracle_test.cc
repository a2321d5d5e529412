// Schedules over two to four backends, run as late as they may, give what one backend gives.
//
// Imitates: GPUs whose queues run behind the host, with and without events and direct copies.
// ASHLAR_SCHEDULES sets how many graphs are tried (default 2000).
// Does not prove: races of real threads.
#include "props/sched/schedule_oracle.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace ashlar {
namespace {

using props::ByteSource;
using props::compare_schedules;
using props::MadeGraph;
using props::MakerOptions;
using props::ScheduleCase;

std::uint64_t schedules_to_try() {
  const char* const text = std::getenv("ASHLAR_SCHEDULES");
  return text == nullptr ? 2000 : std::strtoull(text, nullptr, 10);
}

TEST(ScheduleOracle, SeveralBackendsGiveWhatOneGives) {
  for (std::uint64_t seed = 0; seed < schedules_to_try(); ++seed) {
    const auto data = props::random_bytes(seed, 64 + seed % 5 * 100);
    ByteSource bytes(data);
    MakerOptions maker;
    maker.has_regions = false;
    const MadeGraph made = make_graph(bytes, maker);
    ScheduleCase one;
    one.seed = seed;
    one.backends = 2 + static_cast<std::uint32_t>(seed % 3);
    one.copy_places = 1 + static_cast<std::uint32_t>(seed / 3 % 3);
    one.is_pipelined = seed % 2 == 0;
    one.has_shared_memory = seed % 5 == 0;
    one.has_odd_traits = seed % 4 == 0;
    ASSERT_EQ(compare_schedules(made, one), "") << "seed " << seed << "\n"
                                                << props::describe(made.graph);
  }
}

}  // namespace
}  // namespace ashlar
