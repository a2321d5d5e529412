// Fuzz target: schedules of any graph over two to four backends that run as late as they may, against a plain
// run (clauses S1, S2, and C6 across backends).
//
// Imitates: devices with and without events, waits, direct copies and kernels; shared memories; pipelined
// runs. Every byte string is a case.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>

#include "props/sched/schedule_oracle.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ashlar;
  const std::span<const std::uint8_t> input(data, size);
  const std::size_t for_case = std::min<std::size_t>(size, 8);
  props::ByteSource choices(input.first(for_case)), nodes(input.subspan(for_case));
  props::ScheduleCase one;
  one.seed = choices.below(256) * 256 + choices.below(256);
  one.backends = 2 + static_cast<std::uint32_t>(choices.below(3));
  one.copy_places = 1 + static_cast<std::uint32_t>(choices.below(3));
  one.runs = 1 + static_cast<std::uint32_t>(choices.below(4));
  const std::uint64_t traits = choices.below(8);
  one.is_pipelined = (traits & 1) != 0;
  one.has_shared_memory = (traits & 2) != 0;
  one.has_odd_traits = (traits & 4) != 0;
  props::MakerOptions maker;
  maker.has_regions = false;
  const props::MadeGraph made = make_graph(nodes, maker);
  const std::string found = compare_schedules(made, one);
  if (found.empty()) return 0;
  std::fprintf(stderr, "%s\n%s", found.c_str(), props::describe(made.graph).c_str());
  std::abort();
}
