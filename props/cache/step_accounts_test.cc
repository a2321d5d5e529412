// What each walk under a heap's lock reports of itself (C31): one step for each entry that it
// visits, no more and no less, and when the walk through free blocks lets go of the lock.
//
// Imitates: queues, uses and free blocks in numbers that a loop visits one by one. Does not prove:
// that every walk reports (a review's part); builds without assertions count nothing, and there only
// the walks' results are tested.
#include <deque>

#include "props/cache/scripted_parts.h"

namespace ashlar::cache {
namespace {

/// What steps_of() gives in builds that count none, where there is nothing to expect beforehand.
constexpr std::uint64_t kNotCounted = ~std::uint64_t{0};

/// The steps that a call reports on this thread, which holds no lock, or the last it took in it.
template <class F>
std::uint64_t steps_of([[maybe_unused]] F&& call, [[maybe_unused]] std::uint64_t expected) {
#if ASHLAR_ASSERTIONS
  lock_steps = 0;
  call();
  return lock_steps;
#else
  call();
  return expected;
#endif
}

StreamHeap* heap_at(std::uint64_t number) { return reinterpret_cast<StreamHeap*>(number << 12); }

/// How many nodes of the tree are above the queue of that stream; the count of all if it has none.
unsigned depth_of(const UseNode* root, const UseNode* node) {
  if (root == node) return 0;
  if (root == nullptr) return ~0u;
  for (const UseNode* child : root->queue.child) {
    const unsigned below = child == nullptr ? ~0u : depth_of(child, node);
    if (below != ~0u) return below + 1;
  }
  return ~0u;
}

/// How far the first leaf below is.
unsigned way_to_leaf(const UseNode* node) {
  unsigned way = 0;
  for (; node->queue.child[0] != nullptr || node->queue.child[1] != nullptr; ++way)
    node = node->queue.child[node->queue.child[0] == nullptr ? 1 : 0];
  return way;
}

TEST(StepAccountsTest, AQueueIsFoundAndRemovedInAStepForEachNodeOfTheTreeOnTheWay) {
  std::deque<UseNode> nodes(100);
  UseQueues queues;
  std::uint64_t number = 0;
  for (UseNode& node : nodes) {
    node.user = heap_at(++number);
    node.sequence = number;
    const std::uint64_t steps = steps_of([&] { queues.add(&node); }, kNotCounted);
    if (steps == kNotCounted) continue;
    ASSERT_EQ(steps, depth_of(&nodes[0], &node)) << "the first is the root";
  }
  EXPECT_EQ(steps_of([&] { static_cast<void>(queues.oldest()); }, 64), 64u);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    UseNode& node = nodes[i];
    const UseNode* root = &node;  // of those left, the one that no other is above
    for (std::size_t at = i; at < nodes.size(); ++at) {
      if (depth_of(&nodes[at], root) != ~0u) root = &nodes[at];
    }
    const std::uint64_t expected = depth_of(root, &node) + way_to_leaf(&node);
    UseNode* out = nullptr;
    unsigned taken = 0;
    ASSERT_EQ(steps_of([&] { taken = queues.take(&out, 1); }, expected), expected);
    ASSERT_EQ(taken, 1u);
    ASSERT_EQ(out, &node);
    node.queue = {};
  }
  EXPECT_EQ(steps_of([&] { static_cast<void>(queues.oldest()); }, 0), 0u);
}

TEST(StepAccountsTest, TheUnrecordedUsesThatATakeLeavesBehindAreWalkedOverOnceEach) {
  std::deque<UseNode> nodes(100);
  PendingUses uses;
  for (UseNode& node : nodes) uses.add_unrecorded(&node);
  const auto take = [&](std::uint64_t n) { return [&uses, n] { uses.take_unrecorded(n); }; };
  EXPECT_EQ(steps_of(take(0), 0), 0u);
  EXPECT_EQ(steps_of(take(1), 0), 0u);
  EXPECT_EQ(steps_of(take(2), 1), 1u);
  EXPECT_EQ(steps_of(take(30), 29), 29u);
  EXPECT_EQ(steps_of(take(kEverything), 0), 0u);
  EXPECT_FALSE(uses.has_unrecorded());
}

class HeapStepsTest : public ::testing::Test {
 protected:
  ScriptedParts parts_;
  Stream own_ = parts_.stream();
  StreamHeap& heap_ = parts_.heap(own_);
};

TEST_F(HeapStepsTest, ABlocksUsesAreVisitedOnceByEachLookAtThem) ASHLAR_NO_THREAD_SAFETY_ANALYSIS {
  const Address address = parts_.allocate(4_KiB, own_);
  std::vector<Stream> users;
  for (int i = 0; i < 20; ++i) users.push_back(parts_.stream());
  for (const Stream& user : users) parts_.record_use(address, user);
  const Guard guard(heap_.lock);
  const block::BlockIndex block = heap_.pool(PoolId::kSmall).find(address);
  for (std::size_t i = 0; i < 20; ++i) {
    const StreamHeap& user = parts_.heap(users[i]);
    const auto look = [&]() ASHLAR_NO_THREAD_SAFETY_ANALYSIS {
      EXPECT_TRUE(heap_.has_use(PoolId::kSmall, block, user));
    };
    EXPECT_EQ(steps_of(look, 20 - i), 20 - i) << "the newest first";
  }
  const auto look = [&]() ASHLAR_NO_THREAD_SAFETY_ANALYSIS {
    EXPECT_TRUE(heap_.has_use(PoolId::kSmall, block, heap_));
  };
  EXPECT_EQ(steps_of(look, 0), 0u);
  const auto drop = [&]() ASHLAR_NO_THREAD_SAFETY_ANALYSIS {
    heap_.drop_finished_uses(PoolId::kSmall, block);
  };
  EXPECT_EQ(steps_of(drop, 20), 20u);
}

TEST_F(HeapStepsTest, ATellingOfABlockVisitsItsUses) {
  const Address address = parts_.allocate(4_KiB, own_);
  for (std::uint64_t uses = 0; uses < 5; ++uses) {
    const PageMap::Found found = parts_.found(address);
    const auto with_uses = [&] { EXPECT_TRUE(DeviceCache::info(found, address).is_ok()); };
    const auto without = [&] { EXPECT_TRUE(DeviceCache::check(found, address).is_ok()); };
    EXPECT_EQ(steps_of(with_uses, uses) - steps_of(without, 0), uses);
    parts_.record_use(address, parts_.stream());
  }
}

TEST_F(HeapStepsTest, AWalkThroughFreeBlocksLetsGoOfTheLockAfterEach64AndMissesNone)
ASHLAR_NO_THREAD_SAFETY_ANALYSIS {
  std::vector<Address> blocks;
  for (unsigned i = 0; i < 400; ++i) blocks.push_back(parts_.allocate(512_B * (1 + i % 3), own_));
  for (std::size_t i = 0; i < blocks.size(); i += 2) parts_.free(blocks[i]);
  const Guard guard(heap_.lock);
  const block::BlockPool& pool = heap_.pool(PoolId::kSmall);
  block::BlockIndex at = pool.best_fit(512_B, Bytes::max());
  for (unsigned looks = 1; at != block::kNoBlock; ++looks) {
    const block::BlockIndex expected = pool.next_fit(at);
    const std::uint64_t plain = steps_of([&] { static_cast<void>(pool.next_fit(at)); }, 0);
    block::BlockIndex next = block::kNoBlock;
    std::uint64_t before = 0;
    const auto walk = [&]() ASHLAR_NO_THREAD_SAFETY_ANALYSIS {
#if ASHLAR_ASSERTIONS
      before = lock_steps = 5000;
#endif
      next = next_fit(heap_, PoolId::kSmall, at, looks);
    };
    const std::uint64_t steps = steps_of(walk, 1);
    if (looks % 64 == 0) {
      EXPECT_LT(steps, 5000u) << "a new section began";
    } else {
      EXPECT_EQ(steps, before + plain + 1) << looks;
    }
    ASSERT_EQ(next, expected);
    at = next;
    if (looks > 150) break;
  }
}

}  // namespace
}  // namespace ashlar::cache
