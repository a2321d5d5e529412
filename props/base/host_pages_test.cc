// The host's pages, system call by system call: where a reservation begins, what of it is kept, and
// what goes back.
//
// Imitates: a kernel that aligns long reservations, an older one that does not, and one that has no
// addresses left. Does not prove that a kernel backs anything with huge pages.
#include <ashlar/base/host_pages.h>

#include <set>

#include <gtest/gtest.h>

#include "props/base/watched_host.h"

namespace ashlar {
namespace {

using props::HostCall;
using props::HostEvent;
using props::number;
using props::take_events;
using props::watched;
using props::WatchScope;

constexpr std::size_t kPage = 4096;

/// The pages that the events reserved and have not released. Fails for one released that is not
/// there.
std::set<std::uintptr_t> pages_left(const std::vector<HostEvent>& events) {
  std::set<std::uintptr_t> pages;
  for (const HostEvent& event : events) {
    if (event.is_refused) continue;
    for (std::uintptr_t at = event.begin; at < event.begin + event.bytes; at += kPage) {
      const bool is_news =
          event.call == HostCall::kReserve ? pages.insert(at).second : pages.erase(at) == 1;
      EXPECT_TRUE(is_news) << event;
    }
  }
  return pages;
}

TEST(HostPages, AReservationIsAlignedAndExactWhereverTheHostPutsIt) {
  for (const std::size_t first :
       {std::size_t{0}, kPage, kHugePageBytes / 2, kHugePageBytes - kPage}) {
    for (const std::size_t second : {std::size_t{0}, kPage, kHugePageBytes - kPage}) {
      for (std::size_t bytes = kHugePageBytes; bytes <= 3 * kHugePageBytes;
           bytes += kHugePageBytes) {
        const WatchScope scope;
        watched.misaligned_by = {first, second};
        std::byte* const begin = reserve_pages(bytes);
        ASSERT_NE(begin, nullptr);
        EXPECT_EQ(number(begin) % kHugePageBytes, 0u);
        const std::vector<HostEvent> events = take_events();
        EXPECT_LE(events.size(), first == 0 ? 1u : 5u) << "the cost that host_pages.h states";
        const std::set<std::uintptr_t> pages = pages_left(events);
        ASSERT_EQ(pages.size(), bytes / kPage);
        EXPECT_EQ(*pages.begin(), number(begin));
        EXPECT_EQ(*pages.rbegin(), number(begin) + bytes - kPage);
        EXPECT_EQ(watched.misuses, 0u);
        release_pages(begin, bytes);
      }
    }
  }
}

TEST(HostPages, ARefusedReservationLeavesNothingBehind) {
  {
    const WatchScope scope;
    watched.refusals_of(HostCall::kReserve) = 1;
    EXPECT_EQ(reserve_pages(kHugePageBytes), nullptr);
    EXPECT_EQ(take_events().size(), 1u);
  }
  // The first is granted without alignment; the longer one is refused.
  const WatchScope scope;
  watched.misaligned_by = {kPage};
  watched.reserves_granted = 1;
  watched.refusals_of(HostCall::kReserve) = 1;
  EXPECT_EQ(reserve_pages(kHugePageBytes), nullptr);
  const std::vector<HostEvent> events = take_events();
  EXPECT_EQ(events.size(), 3u);
  EXPECT_TRUE(pages_left(events).empty());
}

TEST(HostPages, AReservationWhoseLongerOneWouldWrapIsRefused) {
  const WatchScope scope;
  watched.pretends = true;
  watched.misaligned_by = {kPage};
  constexpr std::size_t kAll = std::size_t{0} - kHugePageBytes;
  EXPECT_EQ(reserve_pages(kAll), nullptr);
  const std::vector<HostEvent> expected{{HostCall::kReserve, kHugePageBytes + kPage, kAll},
                                        {HostCall::kRelease, kHugePageBytes + kPage, kAll}};
  EXPECT_EQ(take_events(), expected);
}

TEST(HostPages, PagesWithMemoryAreZeroMoveWithWhatTheyHoldAndGoBack) {
  const WatchScope scope;
  std::byte* const from = reserve_pages(2 * kHugePageBytes);
  std::byte* const to = reserve_pages(4 * kHugePageBytes);
  ASSERT_TRUE(from != nullptr && to != nullptr);
  ASSERT_TRUE(commit_pages(from, 2 * kHugePageBytes));
  for (std::size_t i = 0; i < 2 * kHugePageBytes; i += kPage) {
    ASSERT_EQ(from[i], std::byte{0});
    from[i] = static_cast<std::byte>(i / kPage % 251 + 1);
  }
  ASSERT_TRUE(move_pages(from, to, 2 * kHugePageBytes));
  for (std::size_t i = 0; i < 2 * kHugePageBytes; i += kPage)
    ASSERT_EQ(to[i], static_cast<std::byte>(i / kPage % 251 + 1));
  advise_huge_pages(to, kHugePageBytes);
  release_pages(to, 4 * kHugePageBytes);
  const std::vector<HostEvent> expected{
      {HostCall::kReserve, number(from), 2 * kHugePageBytes},
      {HostCall::kReserve, number(to), 4 * kHugePageBytes},
      {HostCall::kCommit, number(from), 2 * kHugePageBytes},
      {HostCall::kMove, number(from), 2 * kHugePageBytes, number(to)},
      {HostCall::kAdvise, number(to), kHugePageBytes},
      {HostCall::kRelease, number(to), 4 * kHugePageBytes}};
  EXPECT_EQ(take_events(), expected);
  EXPECT_EQ(watched.misuses, 0u);
}

TEST(HostPages, ARefusalIsReported) {
  const WatchScope scope;
  std::byte* const begin = reserve_pages(kHugePageBytes);
  std::byte* const other = reserve_pages(kHugePageBytes);
  watched.refusals_of(HostCall::kCommit) = 1;
  EXPECT_FALSE(commit_pages(begin, kPage));
  EXPECT_TRUE(commit_pages(begin, kPage));
  watched.refusals_of(HostCall::kMove) = 1;
  EXPECT_FALSE(move_pages(begin, other, kHugePageBytes));
  release_pages(begin, kHugePageBytes);
  release_pages(other, kHugePageBytes);
}

}  // namespace
}  // namespace ashlar
