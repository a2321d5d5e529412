// The online allocator: examples, and any sequence beside a list of free ranges that is right by
// reading.
//
// Imitates: ggml's allocator of one buffer (September 2023 to February 2024), and its defects H46, H47.
#include <ashlar/graph/online_allocator.h>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <optional>
#include <vector>

namespace ashlar {
namespace {

using graph::OnlineAllocator;

constexpr Address kBase{4096};

TEST(OnlineAllocator, TakesTheSmallestRangeThatFitsAndTheLastOneLast) {
  OnlineAllocator memory(kBase, 1024_B, 16_B);
  const Address a = memory.allocate(64_B).value(), b = memory.allocate(16_B).value();
  const Address c = memory.allocate(32_B).value(), d = memory.allocate(16_B).value();
  EXPECT_EQ(a, kBase);
  EXPECT_EQ(d, kBase + 112_B);
  EXPECT_TRUE(memory.free(a).is_ok());
  EXPECT_TRUE(memory.free(c).is_ok());
  EXPECT_EQ(memory.allocate(20_B).value(), c);
  EXPECT_EQ(memory.allocate(20_B).value(), a);
  EXPECT_EQ(memory.peak(), 128_B);
  EXPECT_EQ(memory.live(), 4u);
  EXPECT_TRUE(memory.free(b).is_ok());
  EXPECT_EQ(memory.allocate(1024_B).code(), Code::kOutOfMemory);
  EXPECT_EQ(memory.allocate(Bytes::max()).code(), Code::kSizeOverflow);
  memory.reset();
  EXPECT_EQ(memory.allocate(1024_B).value(), kBase);
  EXPECT_EQ(memory.peak(), 1024_B);
}

// The last range is as small as the other that fits, and smaller.
TEST(OnlineAllocator, LeavesTheLastRangeEvenIfItFitsBest) {
  OnlineAllocator memory(kBase, 256_B, 16_B);
  const Address a = memory.allocate(128_B).value();
  ASSERT_TRUE(memory.allocate(64_B).is_ok());
  EXPECT_TRUE(memory.free(a).is_ok());
  EXPECT_EQ(memory.allocate(64_B).value(), a);
}

TEST(OnlineAllocator, RefusesWhatIsNotLive) {
  OnlineAllocator memory(kBase, 256_B, 16_B);
  const Address a = memory.allocate(32_B).value();
  EXPECT_EQ(memory.free(a + 16_B).code(), Code::kUnknownPointer);
  EXPECT_EQ(memory.free(Address{1}).code(), Code::kUnknownPointer);
  EXPECT_TRUE(memory.free(Address{}).is_ok());
  EXPECT_TRUE(memory.free(a).is_ok());
  EXPECT_EQ(memory.free(a).code(), Code::kUnknownPointer);
  EXPECT_TRUE(memory.allocate(0_B).value().is_null());
}

TEST(OnlineAllocator, UsesNoByteOutsideItsBuffer) {
  OnlineAllocator bent(Address{4100}, 100_B, 32_B);
  EXPECT_EQ(bent.allocate(64_B).value(), Address{4128});
  EXPECT_EQ(bent.peak(), 92_B);
  EXPECT_EQ(bent.allocate(1_B).code(), Code::kOutOfMemory);
  OnlineAllocator none(Address{4100}, 20_B, 32_B);
  EXPECT_EQ(none.allocate(1_B).code(), Code::kOutOfMemory);
  OnlineAllocator little(Address{4100}, 30_B, 32_B);
  EXPECT_EQ(little.allocate(1_B).code(), Code::kOutOfMemory);
}

// H47: any number of free ranges. H46: the first and the last of them are removed.
TEST(OnlineAllocator, KeepsAnyNumberOfFreeRanges) {
  OnlineAllocator memory(kBase, 1_MiB, 16_B);
  std::vector<Address> ranges;
  for (int k = 0; k < 2000; ++k) ranges.push_back(memory.allocate(16_B).value());
  for (std::size_t k = 0; k < ranges.size(); k += 2) ASSERT_TRUE(memory.free(ranges[k]).is_ok());
  EXPECT_EQ(memory.allocate(16_B).value(), ranges[0]);
  for (std::size_t k = 1; k < ranges.size(); k += 2) ASSERT_TRUE(memory.free(ranges[k]).is_ok());
  EXPECT_EQ(memory.live(), 1u);
  EXPECT_EQ(memory.allocate(Bytes{(1 << 20) - 16}).value(), ranges[1]);
}

/// Free ranges by address; the rules of the header, word for word.
class PlainOnline {
 public:
  PlainOnline(Address base, Bytes size, Bytes alignment)
      : end_(base + size), alignment_(alignment), free_{{base, size}} {}

  std::optional<Address> allocate(Bytes size) {
    const Bytes padded{(size.count() + alignment_.count() - 1) / alignment_.count() *
                       alignment_.count()};
    auto best = free_.end();
    for (auto it = free_.begin(); it != free_.end(); ++it) {
      if (it->second < padded) continue;
      const bool is_last = it->first + it->second == end_;
      if (is_last && best != free_.end()) continue;
      if (best == free_.end() || it->second < best->second) best = it;
    }
    if (best == free_.end()) return std::nullopt;
    const auto [address, length] = *best;
    free_.erase(best);
    if (length > padded) free_[address + padded] = length - padded;
    live_[address] = padded;
    return address;
  }

  bool free(Address address) {
    const auto it = live_.find(address);
    if (it == live_.end()) return false;
    Bytes size = it->second;
    live_.erase(it);
    auto next = free_.find(address + size);
    if (next != free_.end()) {
      size += next->second;
      free_.erase(next);
    }
    auto before = free_.lower_bound(address);
    if (before != free_.begin()) {
      --before;
      if (before->first + before->second == address) {
        before->second += size;
        return true;
      }
    }
    free_[address] = size;
    return true;
  }
  const std::map<Address, Bytes>& live() const { return live_; }

 private:
  Address end_;
  Bytes alignment_;
  std::map<Address, Bytes> free_;
  std::map<Address, Bytes> live_;
};

RC_GTEST_PROP(OnlineAllocatorProperty, AgreesWithAPlainListAndWithMeasuring, ()) {
  OnlineAllocator memory(kBase, 8_KiB, 16_B);
  OnlineAllocator measure = OnlineAllocator::measuring(16_B);
  PlainOnline plain(kBase, 8_KiB, 16_B);
  std::vector<std::pair<Address, Address>> live;  // here, and in the measuring one
  bool is_measured = true;
  const auto steps = *rc::gen::container<std::vector<std::pair<int, int>>>(
      rc::gen::pair(rc::gen::inRange(0, 5), rc::gen::inRange(0, 700)));
  for (const auto& [kind, value] : steps) {
    if (kind < 3) {
      const Bytes size{static_cast<std::uint64_t>(value) + 1};
      const auto expected = plain.allocate(size);
      const auto got = memory.allocate(size);
      RC_ASSERT(got.is_ok() == expected.has_value());
      if (!expected) {
        is_measured = false;
        continue;
      }
      RC_ASSERT(got.value() == *expected);
      const auto measured = measure.allocate(size);
      RC_ASSERT(measured.is_ok());
      live.emplace_back(*expected, measured.value());
      if (is_measured) RC_ASSERT(memory.peak() == measure.peak());
    } else if (!live.empty()) {
      const auto at = static_cast<std::size_t>(value) % live.size();
      const auto [here, there] = live[at];
      live.erase(live.begin() + static_cast<std::ptrdiff_t>(at));
      RC_ASSERT(plain.free(here));
      RC_ASSERT(memory.free(here).is_ok());
      RC_ASSERT(measure.free(there).is_ok());
    }
    RC_ASSERT(memory.live() == plain.live().size());
  }
}

}  // namespace
}  // namespace ashlar
