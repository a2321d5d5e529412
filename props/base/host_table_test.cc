// Tables of a fixed length: how many bytes of which alignment they ask of the host, which of them
// are advised as huge pages, and that they go back as they came.
//
// Imitates: tables on either side of every limit, and a host that refuses one. Does not prove that
// advice has an effect.
#include <ashlar/base/host_table.h>

#include <gtest/gtest.h>

#include "props/base/watched_host.h"

namespace ashlar {
namespace {

using props::HostCall;
using props::HostEvent;
using props::take_events;
using props::watched;
using props::WatchScope;

template <std::size_t kBytes>
struct Element {
  unsigned char bytes[kBytes];
};

/// Makes a table of `count` elements and gives it back.
template <std::size_t kBytes>
void expect_calls_of(std::size_t count) {
  SCOPED_TRACE(count);
  const std::size_t lines = (count * kBytes + kCacheLineBytes - 1) / kCacheLineBytes;
  const std::size_t bytes = lines * kCacheLineBytes;
  const bool is_large = bytes >= kHugePageBytes;
  const std::size_t alignment = is_large ? kHugePageBytes : kCacheLineBytes;
  const WatchScope scope;
  std::uintptr_t at = 0;
  {
    const HostTable<Element<kBytes>> table = make_host_table<Element<kBytes>>(count);
    ASSERT_NE(table, nullptr);
    at = reinterpret_cast<std::uintptr_t>(table.get());
    EXPECT_EQ(at % alignment, 0u);
    table[count - 1].bytes[kBytes - 1] = 1;
  }
  std::vector<HostEvent> expected{{HostCall::kNew, at, bytes, alignment}};
  if (is_large) expected.push_back({HostCall::kAdvise, at, bytes});
  expected.push_back({HostCall::kDelete, at, bytes, alignment});
  EXPECT_EQ(take_events(), expected);

  watched.refusals_of(HostCall::kNew) = 1;
  EXPECT_EQ(make_host_table<Element<kBytes>>(count), nullptr);
  EXPECT_EQ(take_events(), (std::vector<HostEvent>{{HostCall::kNew, 0, bytes, alignment, true}}));
}

template <std::size_t kBytes>
void expect_calls_near_every_limit() {
  for (const std::size_t limit : {kCacheLineBytes, kHugePageBytes, 2 * kHugePageBytes}) {
    const std::size_t count = limit / kBytes;
    for (std::size_t n = count > 2 ? count - 2 : 1; n <= count + 2; ++n) expect_calls_of<kBytes>(n);
  }
}

TEST(HostTable, AsksForWholeCacheLinesAndAdvisesHugePagesFromTheFirstOneOn) {
  expect_calls_near_every_limit<1>();
  expect_calls_near_every_limit<8>();
  expect_calls_near_every_limit<24>();
  expect_calls_near_every_limit<64>();
  expect_calls_near_every_limit<100>();
}

}  // namespace
}  // namespace ashlar
