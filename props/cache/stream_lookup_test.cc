// From a stream to its heap (StreamTable, HandleIndex), against a standard map.
//
// Imitates: thousands of streams that come and go, with handles that the driver uses again, on ids
// that share their low, middle or high bits. Does not prove: what readers see while the table
// changes (cache_threads_test).
#include <bit>
#include <deque>
#include <map>
#include <random>

#include <ashlar/cache/handle_index.h>
#include <ashlar/cache/stream_table.h>

#include "props/cache/parts_fixture.h"
#include "props/host_memory/counting_host.h"

namespace ashlar::cache {
namespace {

class StreamLookupTest : public ::testing::Test {
 protected:
  StreamHeap& make(std::uint64_t id, std::uint64_t handle, bool is_bound = false) {
    return heaps_.emplace_back(
        parts_.cache(),
        HeapOwner::of(Stream{StreamHandle{handle}, StreamId{id}, DeviceId{0}, is_bound}), 512_B);
  }

  CacheParts parts_{64_MiB};
  std::deque<StreamHeap> heaps_;
};

/// Ids that differ only in some of their bits.
std::uint64_t nth_id(unsigned shape, std::uint64_t n) {
  switch (shape) {
    case 0: return n + 1;
    case 1: return (n + 1) << 32;
    case 2: return (n + 1) << 55;
    default: return (n + 1) * 0x2545F4914F6CDD1Du;
  }
}

TEST_F(StreamLookupTest, TheTableFindsWhatAMapDoes) {
  constexpr std::uint64_t kHeaps = 300;
  std::map<std::uint64_t, StreamHeap*> by_id;
  for (unsigned shape = 0; shape < 4; ++shape) {
    for (std::uint64_t n = 0; n < kHeaps; ++n) by_id.emplace(nth_id(shape, n), nullptr);
  }
  std::vector<StreamHeap*> all;
  for (auto& [id, heap] : by_id) all.push_back(heap = &make(id, id));
  for (const std::uint64_t seed : {1u, 2u, 3u, 4u}) {
    std::mt19937_64 random(seed);
    StreamTable table;
    EXPECT_EQ(table.find(StreamId{7}), nullptr);
    std::vector<bool> is_in(all.size());
    std::vector<std::size_t> there;
    const auto expect_same = [&] {
      for (std::size_t i = 0; i < all.size(); ++i)
        ASSERT_EQ(table.find(all[i]->stream.id), is_in[i] ? all[i] : nullptr) << i;
    };
    for (unsigned step = 0; step < 1500; ++step) {
      // Seeds grow to different sizes, and shrink to nothing now and then.
      const bool grows = random() % 100 < (step / 300 % 2 == 0 ? 40 + 10 * seed : 30);
      const std::size_t at = random() % all.size();
      if (grows && !is_in[at]) {
        ASSERT_TRUE(table.insert(all[at]));
        is_in[at] = true;
        there.push_back(at);
      } else if (!there.empty()) {
        const std::size_t victim = random() % there.size();
        table.erase(all[there[victim]]);
        is_in[there[victim]] = false;
        there.erase(there.begin() + static_cast<std::ptrdiff_t>(victim));
      }
      if (step % 10 == 0) expect_same();
    }
    while (!there.empty()) {
      table.erase(all[there.back()]);
      is_in[there.back()] = false;
      there.pop_back();
      expect_same();
    }
  }
}

TEST_F(StreamLookupTest, FewerThanHalfOfTheTablesSlotsAreTakenAndItGrowsOnlyForMoreHeaps) {
  StreamTable table;
  props::counted.largest = 0;
  for (std::uint64_t n = 1; n <= 200; ++n) {
    StreamHeap& heap = make(n, n);
    props::counted.largest = 0;
    ASSERT_TRUE(table.insert(&heap));
    // A table is as long as the last one that was made.
    static std::size_t slots = 0;
    if (props::counted.largest > 0) slots = props::counted.largest / sizeof(void*);
    ASSERT_EQ(slots, std::max<std::size_t>(16, std::bit_ceil(2 * n + 1)))
        << "the least that leaves more than half of the slots empty, so that probes are short";
    props::counted.largest = 0;
    // Streams that come and go need no more room than one stream.
    for (int i = 0; i < 20; ++i) {
      table.erase(&heap);
      ASSERT_TRUE(table.insert(&heap));
    }
    ASSERT_EQ(props::counted.largest, 0u) << "right after an erase nothing is allocated";
  }
}

TEST_F(StreamLookupTest, TheIndexFindsAnotherAliveStreamOfAHandleIfThereIsOne) {
  std::mt19937_64 random(5);
  for (unsigned round = 0; round < 6; ++round) {
    HandleIndex index;
    EXPECT_EQ(index.find_alive(Stream{StreamHandle{1}, StreamId{1}, DeviceId{0}}), nullptr);
    std::vector<StreamHeap*> in;
    const std::uint64_t handles = 1 + round * round * 20;
    std::uint64_t next_id = 1;
    for (unsigned step = 0; step < 400; ++step) {
      if (random() % 3 != 0 || in.empty()) {
        ASSERT_TRUE(index.reserve_one());
        StreamHeap& heap = make(next_id++, random() % handles * 4096, random() % 8 == 0);
        if (random() % 3 == 0) {
          EXPECT_TRUE(heap.life.retire());
        }
        index.insert(&heap);
        in.push_back(&heap);
      } else {
        const std::size_t victim = random() % in.size();
        index.erase(in[victim]);
        in.erase(in.begin() + static_cast<std::ptrdiff_t>(victim));
      }
      for (int ask = 0; ask < 8; ++ask) {
        const bool asks_of_known = !in.empty() && ask % 2 == 0;
        const Stream stream = asks_of_known ? in[random() % in.size()]->stream
                                            : Stream{StreamHandle{random() % handles * 4096},
                                                     StreamId{1 + random() % next_id}, DeviceId{0},
                                                     random() % 8 == 0};
        const auto is_another = [&](const StreamHeap* heap) {
          return heap->stream.handle == stream.handle && heap->stream.id != stream.id &&
                 !heap->stream.thread_bound && heap->life.is_alive() && !stream.thread_bound;
        };
        const StreamHeap* const found = index.find_alive(stream);
        if (found != nullptr) {
          ASSERT_TRUE(is_another(found));
          ASSERT_NE(std::find(in.begin(), in.end(), found), in.end());
        } else {
          ASSERT_TRUE(std::none_of(in.begin(), in.end(), is_another));
        }
      }
    }
    heaps_.clear();
  }
}

TEST_F(StreamLookupTest, MostHandlesHaveAChainOfTheirOwnHoweverManyThereAre) {
  HandleIndex index;
  props::counted.largest = 0;
  for (std::uint64_t n = 1; n <= 512; ++n) {
    ASSERT_TRUE(index.reserve_one());
    index.insert(&make(n, n));
    if (std::has_single_bit(n) || std::has_single_bit(n / 3)) {
      std::uint64_t behind_others = 0;
      for (const StreamHeap& heap : heaps_) behind_others += heap.links.next_of_handle != nullptr;
      EXPECT_LE(5 * behind_others, 2 * n) << "of " << n;
    }
  }
  // As many chains as heaps at least, and no more for heaps that come and go.
  props::counted.largest = 0;
  for (int i = 0; i < 2000; ++i) {
    index.erase(&heaps_[static_cast<std::size_t>(i) % 512]);
    ASSERT_TRUE(index.reserve_one());
    index.insert(&heaps_[static_cast<std::size_t>(i) % 512]);
  }
  EXPECT_EQ(props::counted.largest, 0u);
}

TEST_F(StreamLookupTest, AHostWithoutMemoryRefusesWhatNeedsIt) {
  StreamTable table;
  HandleIndex index;
  const auto on_empty_host = [](auto&& call) {
    props::counted.is_empty = true;
    const bool is_done = call();
    props::counted.is_empty = false;
    return is_done;
  };
  StreamHeap& first = make(1, 1);
  EXPECT_FALSE(on_empty_host([&] { return table.insert(&first); }));
  EXPECT_FALSE(on_empty_host([&] { return index.reserve_one(); }));
  EXPECT_EQ(table.find(first.stream.id), nullptr);
  EXPECT_EQ(index.find_alive(Stream{StreamHandle{1}, StreamId{2}, DeviceId{0}}), nullptr);
  bool has_refused = false;
  for (std::uint64_t n = 1; n <= 200; ++n) {
    StreamHeap& heap = n == 1 ? first : make(n, n);
    if (!on_empty_host([&] { return table.insert(&heap); })) {
      has_refused = true;
      EXPECT_EQ(table.find(heap.stream.id), nullptr);
      ASSERT_TRUE(table.insert(&heap));
    }
    // With a first table, chains grow longer instead.
    if (n == 1) {
      ASSERT_TRUE(index.reserve_one());
    }
    ASSERT_TRUE(on_empty_host([&] { return index.reserve_one(); }));
    index.insert(&heap);
    for (const StreamHeap& each : heaps_) {
      ASSERT_EQ(table.find(each.stream.id), &each);
      Stream other = each.stream;
      other.id = StreamId{1000};
      ASSERT_EQ(index.find_alive(other), &each);
    }
  }
  EXPECT_TRUE(has_refused);
}

}  // namespace
}  // namespace ashlar::cache
