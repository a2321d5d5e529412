// What a heap, the list of a device's heaps and the index of handles promise, clause by clause.
//
// Imitates: a host without memory at each step; streams that share a handle; heaps of dead streams
// of which one thing is left. Does not prove: what other threads see meanwhile.
#include <chrono>
#include <deque>

#include <ashlar/cache/handle_index.h>
#include <ashlar/cache/stream_table.h>

#include "props/cache/scripted_parts.h"
#include "props/host_memory/counting_host.h"

namespace ashlar::cache {
namespace {

using namespace std::chrono_literals;

class HeapContractsTest : public ::testing::Test {
 protected:
  static bool is_forgotten(const StreamHeap& heap) ASHLAR_NO_THREAD_SAFETY_ANALYSIS {
    return heap.is_forgotten();
  }
  static bool serves(const StreamHeap& heap, const Stream& who) ASHLAR_NO_THREAD_SAFETY_ANALYSIS {
    return heap.serves(who);
  }
  static bool reserve(StreamHeap& heap, unsigned n) {
    const Guard guard(heap.lock);
    return heap.reserve_nodes(n);
  }
  static std::uint64_t spare(StreamHeap& heap) {
    return CachePeer::uses(heap).nodes().spare_count();
  }
  template <class F>
  static auto on_empty_host(F&& call) {
    props::counted.is_empty = true;
    auto answer = call();
    props::counted.is_empty = false;
    return answer;
  }
};

TEST_F(HeapContractsTest, AHeapServesTheOneStreamOfItsIdentityWhileThatIsAlive) {
  ScriptedParts parts;
  const Stream own = parts.stream();
  Stream other = own;
  other.id = StreamId{own.id.value() + 1};
  Stream elsewhere = own;
  elsewhere.handle = StreamHandle{own.handle.value() + 1};
  for (const auto end : {0, 1}) {
    StreamHeap heap(parts.cache(), HeapOwner::of(own), 512_B);
    EXPECT_EQ(heap.id, own.id.value());
    EXPECT_TRUE(serves(heap, own));
    EXPECT_TRUE(serves(heap, elsewhere)) << "the identity tells, not the handle";
    EXPECT_FALSE(serves(heap, other));
    if (end == 0) {
      ASSERT_TRUE(heap.life.retire());
    } else {
      heap.life.lose(3);
    }
    EXPECT_FALSE(serves(heap, own));
    EXPECT_FALSE(serves(heap, other));
  }
}

TEST_F(HeapContractsTest, AHeapIsForgottenOnceItsStreamIsFinishedAndItsClockSaysSo) {
  ScriptedParts parts;
  StreamHeap heap(parts.cache(), HeapOwner::of(parts.stream()), 512_B);
  EXPECT_FALSE(is_forgotten(heap));
  CachePeer::clock(heap).complete(kEverything);
  EXPECT_FALSE(is_forgotten(heap)) << "alive";
  ASSERT_TRUE(heap.life.retire());
  EXPECT_FALSE(is_forgotten(heap)) << "retired";
  ASSERT_TRUE(heap.life.finish());
  EXPECT_TRUE(is_forgotten(heap));
  StreamHeap unclear(parts.cache(), HeapOwner::of(parts.stream()), 512_B);
  ASSERT_TRUE(unclear.life.retire());
  ASSERT_TRUE(unclear.life.finish());
  CachePeer::clock(unclear).complete(kEverything - 1);
  EXPECT_FALSE(is_forgotten(unclear));
}

TEST_F(HeapContractsTest, NodesAreReservedForTheLiveBlocksAndSoManyMore) {
  ScriptedParts parts;
  const Stream own = parts.stream();
  StreamHeap& heap = parts.heap(own);
  for (unsigned live = 0; live < 100; ++live) {
    EXPECT_EQ(spare(heap), (live + 31) / 32 * 32);
    ASSERT_FALSE(parts.allocate(4_KiB, own).is_null());
  }
  EXPECT_EQ(spare(heap), 128u);
  EXPECT_TRUE(reserve(heap, 28));
  EXPECT_EQ(spare(heap), 128u);
  const HostRefusals before;
  EXPECT_FALSE(on_empty_host([&] { return reserve(heap, 29); }));
  EXPECT_TRUE(before.any());
  const HostRefusals after;
  EXPECT_EQ(spare(heap), 128u);
  EXPECT_TRUE(on_empty_host([&] { return reserve(heap, 28); }));
  EXPECT_TRUE(reserve(heap, 29));
  EXPECT_FALSE(after.any());
  EXPECT_EQ(spare(heap), 160u);
  parts.expect_valid();
}

TEST_F(HeapContractsTest, AUseThatIsReservedHasANodeBesideThoseOfTheLiveBlocks) {
  ScriptedParts parts;
  const Stream own = parts.stream();
  StreamHeap& heap = parts.heap(own);
  Address last;
  for (int i = 0; i < 32; ++i) last = parts.allocate(4_KiB, own);
  ASSERT_EQ(spare(heap), 32u);
  const auto reserve_use = [&] { return DeviceCache::reserve_use(parts.found(last), last).code(); };
  EXPECT_EQ(on_empty_host(reserve_use), Code::kHostOutOfMemory);
  EXPECT_EQ(spare(heap), 32u);
  EXPECT_EQ(reserve_use(), Code::kOk);
  EXPECT_EQ(spare(heap), 64u);
  EXPECT_EQ(on_empty_host(reserve_use), Code::kOk);
  const Stream user = parts.stream();
  StreamHeap& users = parts.heap(user);
  const auto record = [&] {
    return DeviceCache::record_use(parts.found(last), last, users).code();
  };
  EXPECT_EQ(on_empty_host(record), Code::kOk);
  EXPECT_EQ(spare(heap), 63u);
  for (int i = 0; i < 31; ++i) ASSERT_FALSE(parts.allocate(4_KiB, own).is_null());
  ASSERT_EQ(spare(heap), 63u);
  StreamHeap& others = parts.heap(parts.stream());
  const auto record_other = [&] {
    return DeviceCache::record_use(parts.found(last), last, others).code();
  };
  EXPECT_EQ(on_empty_host(record_other), Code::kHostOutOfMemory);
  EXPECT_EQ(on_empty_host(record), Code::kOk) << "noted already: no node is needed";
  EXPECT_EQ(record_other(), Code::kOk);
  parts.expect_valid();
}

TEST_F(HeapContractsTest, TheListCountsItsHeapsAndWalksThemInTheOrderOfTheirMaking) {
  ScriptedParts parts;
  HeapList& heaps = parts.cache().heaps();
  EXPECT_EQ(heaps.count(), 0u);
  EXPECT_EQ(heaps.next_after(nullptr), nullptr);
  std::vector<StreamHeap*> made;
  for (std::uint64_t n = 1; n <= 40; ++n) {
    const Stream stream = parts.stream();
    made.push_back(&parts.heap(stream));
    EXPECT_EQ(&parts.heap(stream), made.back());
    EXPECT_EQ(heaps.find_stable(stream.id), made.back());
    EXPECT_EQ(heaps.count(), n);
  }
  std::size_t at = 0;
  for (StreamHeap& heap : heaps) {
    ASSERT_EQ(&heap, made[at]);
    EXPECT_EQ(heaps.next_after(&heap), made[(at + 1) % made.size()]);
    ++at;
  }
  EXPECT_EQ(at, made.size());
  EXPECT_EQ(heaps.next_after(nullptr), made[0]);
  heaps.lose(made[7]->stream.id, 5);
  EXPECT_EQ(made[7]->life.lost_at(), 5u);
  heaps.lose(StreamId{1u << 30}, 9);  // unknown: no effect
  for (const StreamHeap* heap : made) EXPECT_EQ(heap->life.is_alive(), heap != made[7]);
  parts.expect_valid();
}

TEST_F(HeapContractsTest, AHandleIsTakenForAnothersOnlyWhileThatStreamIsAlive) {
  ScriptedParts parts;
  HeapList& heaps = parts.cache().heaps();
  const Stream first = parts.stream();
  Stream second = first;
  second.id = StreamId{first.id.value() + 100};
  EXPECT_EQ(heaps.find_other_of_handle(second), StreamId{});
  StreamHeap& heap = parts.heap(first);
  EXPECT_EQ(heaps.find_other_of_handle(second), first.id);
  EXPECT_EQ(heaps.find_other_of_handle(first), StreamId{});
  second.thread_bound = true;
  EXPECT_EQ(heaps.find_other_of_handle(second), StreamId{});
  second.thread_bound = false;
  heap.life.lose(1);
  EXPECT_EQ(heaps.find_other_of_handle(second), StreamId{});
}

TEST_F(HeapContractsTest, TheIndexHasACellForEachHeapAndSpreadsHandlesOverThem) {
  ScriptedParts parts;
  std::uint64_t chains_of_all = 0;
  for (const std::uint64_t stride : {std::uint64_t{1}, std::uint64_t{8}, std::uint64_t{64},
                                     std::uint64_t{4096}, std::uint64_t{1} << 20}) {
    std::deque<StreamHeap> heaps;
    HandleIndex index;
    for (std::uint64_t n = 1; n <= 256; ++n) {
      props::counted.largest = 0;
      ASSERT_TRUE(index.reserve_one());
      const bool grows = n == 1 || n == 65 || n == 129;
      EXPECT_EQ(props::counted.largest, grows ? (n == 1 ? 64 : 2 * (n - 1)) * sizeof(void*) : 0u);
      const std::uint64_t handle = 0x7f0000000000u + n * stride;
      index.insert(&heaps.emplace_back(
          parts.cache(), HeapOwner::of(Stream{StreamHandle{handle}, StreamId{n}, DeviceId{0}}),
          512_B));
      if (n != 64 && n != 128 && n != 256) continue;
      // A chain has one last heap.
      std::uint64_t chains = 0;
      for (const StreamHeap& heap : heaps) chains += heap.links.next_of_handle == nullptr ? 1 : 0;
      EXPECT_GT(chains, n / 3) << "stride " << stride;
      chains_of_all += chains;
    }
  }
  EXPECT_GT(chains_of_all, 5 * (64 + 128 + 256) / 2u) << "more than every other cell has a chain";
}

TEST_F(HeapContractsTest, AStreamIsFoundAmongThousandsNearlyAsFastAsAmongAFew) {
  ScriptedParts parts;
  std::deque<StreamHeap> heaps;
  StreamTable table;
  const auto enter_to = [&](std::uint64_t n) {
    while (heaps.size() < n) {
      const std::uint64_t id = heaps.size() + 1;
      ASSERT_TRUE(table.insert(&heaps.emplace_back(
          parts.cache(), HeapOwner::of(Stream{StreamHandle{id}, StreamId{id}, DeviceId{0}}),
          512_B)));
    }
  };
  // The least of a few times, so that what else the machine does hardly counts.
  std::uint64_t found = 0;
  const auto time_of_all = [&] {
    auto least = std::chrono::nanoseconds::max();
    for (int i = 0; i < 7; ++i) {
      const auto begin = std::chrono::steady_clock::now();
      for (std::uint64_t step = 0; step < 2048; ++step)
        found += table.find(StreamId{step % heaps.size() + 1}) != nullptr ? 1 : 0;
      least = std::min<std::chrono::nanoseconds>(least, std::chrono::steady_clock::now() - begin);
    }
    return least;
  };
  enter_to(4);
  const auto few = time_of_all();
  enter_to(2048);
  EXPECT_LT(time_of_all(), 100 * few + 100us) << "a walk over all would take 500 times as long";
  EXPECT_EQ(found, 2 * 7 * 2048u);
}

TEST_F(HeapContractsTest, ADeviceTellsItsUsesItsReferencesAndWhetherSomethingIsUnfinished) {
  ScriptedParts parts;
  DeviceCache& cache = parts.cache();
  const Stream own = parts.stream();
  EXPECT_FALSE(cache.has_unfinished());
  const Address first = parts.allocate(4_KiB, own);
  const Address second = parts.allocate(4_KiB, own);
  EXPECT_FALSE(cache.has_unfinished()) << "live blocks are the caller's";
  for (std::uint64_t uses = 0; uses < 4; ++uses) {
    EXPECT_EQ(cache.use_count(), uses);
    EXPECT_EQ(cache.reference_count(), uses);
    parts.record_use(first, parts.stream());
  }
  parts.free(second);
  EXPECT_TRUE(cache.has_unfinished()) << "its stamp is not complete";
  CachePeer::clock(parts.heap(own)).complete(1);
  EXPECT_FALSE(cache.has_unfinished());
  parts.free(first);
  EXPECT_TRUE(cache.has_unfinished()) << "four streams use it";
  EXPECT_EQ(cache.use_count(), 4u);
  const std::uint64_t before = parts.calls(device::CallKind::kSynchronize);
  cache.settle(false);
  EXPECT_TRUE(cache.is_settled());
  EXPECT_EQ(parts.calls(device::CallKind::kSynchronize), before);
  parts.expect_valid();
}

TEST_F(HeapContractsTest, DivisionsIntoTwoAreDivisions) {
  for (const char* conf : {"roundup_power2_divisions:1", "roundup_power2_divisions:2", ""}) {
    ScriptedParts parts(1, conf);
    const Stream own = parts.stream();
    const Address address = parts.allocate(5_MiB + 1_B, own);
    const Bytes size = DeviceCache::info(parts.found(address), address).value().size;
    EXPECT_EQ(size >= 6_MiB, parts.shared().config.roundup_divisions[5] == 2) << conf;
  }
}

}  // namespace
}  // namespace ashlar::cache
