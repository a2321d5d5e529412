// The statistics as text, as JSON and by their enumerators.
//
// Imitates: a user who prints what an allocator holds, or hands it to a program. Does not prove that the figures are right:
// the lockstep does.
#include <ashlar/cache/stats_text.h>

#include <algorithm>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

namespace ashlar::cache {
namespace {

/// Every number of the statistics is another one.
DeviceStats numbered() {
  DeviceStats stats;
  std::uint64_t next = 1001;
  const auto fill = [&next](Stat& stat) {
    for (std::uint64_t* number : {&stat.current, &stat.peak, &stat.increased, &stat.decreased})
      *number = next++;
  };
  for (StatByPool* figure :
       {&stats.allocations, &stats.segments, &stats.active, &stats.inactive_splits,
        &stats.allocated_bytes, &stats.reserved_bytes, &stats.active_bytes,
        &stats.inactive_split_bytes, &stats.requested_bytes}) {
    for (Stat& stat : *figure) fill(stat);
  }
  fill(stats.oversize_allocations);
  fill(stats.oversize_segments);
  for (std::uint64_t* number :
       {&stats.alloc_retries, &stats.ooms, &stats.waits, &stats.steals, &stats.streams})
    *number = next++;
  for (std::uint64_t& calls : stats.device_calls) calls = next++;
  return stats;
}

constexpr std::uint64_t kLast = 1000 + 9 * 3 * 4 + 2 * 4 + 5 + device::kCallKinds;

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size())
    ++count;
  return count;
}

TEST(StatsTextTest, AFigureIsFoundByItsEnumerators) {
  DeviceStats stats = numbered();
  EXPECT_EQ(&stats[StatFigure::kAllocations], &stats.allocations);
  EXPECT_EQ(&stats[StatFigure::kSegments], &stats.segments);
  EXPECT_EQ(&stats[StatFigure::kActive], &stats.active);
  EXPECT_EQ(&stats[StatFigure::kInactiveSplits], &stats.inactive_splits);
  EXPECT_EQ(&stats[StatFigure::kAllocatedBytes], &stats.allocated_bytes);
  EXPECT_EQ(&stats[StatFigure::kReservedBytes], &stats.reserved_bytes);
  EXPECT_EQ(&stats[StatFigure::kActiveBytes], &stats.active_bytes);
  EXPECT_EQ(&stats[StatFigure::kInactiveSplitBytes], &stats.inactive_split_bytes);
  EXPECT_EQ(&stats[StatFigure::kRequestedBytes], &stats.requested_bytes);
  const DeviceStats& same = stats;
  EXPECT_EQ(&same[StatFigure::kReservedBytes][StatPool::kAll], &stats.reserved_bytes[0]);
  EXPECT_EQ(&same[StatFigure::kReservedBytes][StatPool::kSmall], &stats.reserved_bytes[1]);
  EXPECT_EQ(&stats[StatFigure::kReservedBytes][StatPool::kLarge], &stats.reserved_bytes[2]);
}

TEST(StatsTextTest, TheTableAndTheJsonHaveEveryNumberOnce) {
  const std::string text = to_text(numbered());
  const std::string json = to_json(numbered());
  for (std::uint64_t number = 1001; number <= kLast; ++number) {
    EXPECT_EQ(count_of(text, std::to_string(number)), 1u) << number;
    EXPECT_EQ(count_of(json, std::to_string(number)), 1u) << number;
  }
  std::ostringstream out;
  out << numbered();
  EXPECT_EQ(out.str(), text);
}

TEST(StatsTextTest, ATableFitsEightyColumnsAndNamesItsLines) {
  DeviceStats stats = numbered();
  stats.device_calls.fill(0);
  stats.device_calls[0] = 99999999999999;
  std::istringstream lines(to_text(stats));
  std::string line, reserved;
  unsigned calls = 0;
  while (std::getline(lines, line)) {
    EXPECT_LE(line.size(), 80u) << line;
    if (line.rfind("reserved_bytes", 0) == 0) reserved = line;
    if (line.rfind("  segment-alloc", 0) == 0) ++calls;
    EXPECT_EQ(line.find("segment-free"), std::string::npos)
        << "calls that were never made are left out";
  }
  EXPECT_EQ(reserved,
            "reserved_bytes                 1061           1062           1063           1064");
  EXPECT_EQ(calls, 1u);
}

TEST(StatsTextTest, TheJsonIsOneObjectWithTheMembersNames) {
  const std::string json = to_json(numbered());
  EXPECT_EQ(json.rfind("{\"allocations\":{\"all\":{\"current\":1001,\"peak\":1002,\"increased\":"
                       "1003,\"decreased\":"
                       "1004},\"small\":{\"current\":1005,",
                       0),
            0u)
      << json;
  for (unsigned figure = 0; figure < kStatFigures; ++figure) {
    const char* const name = figure_name(static_cast<StatFigure>(figure));
    EXPECT_EQ(count_of(json, "\"" + std::string(name) + "\":{\"all\":{"), 1u) << name;
  }
  EXPECT_STREQ(figure_name(static_cast<StatFigure>(kStatFigures)), "unknown");
  EXPECT_NE(json.find("\"streams\":1121,\"device_calls\":{\"segment-alloc\":1122,"),
            std::string::npos)
      << json;
  std::size_t depth = 0;
  std::size_t deepest = 0;
  for (const char each : json) {
    if (each == '{') deepest = std::max(deepest, ++depth);
    if (each == '}') --depth;
  }
  EXPECT_EQ(depth, 0u);
  EXPECT_EQ(deepest, 3u);
  EXPECT_EQ(
      count_of(json, ",}") + count_of(json, "{,") + count_of(json, ",,") + count_of(json, "}\""),
      0u);
}

}  // namespace
}  // namespace ashlar::cache
