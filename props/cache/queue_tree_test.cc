// The tree over the queues of uses (UseQueues): its depth follows from the first bits in which the
// hashed streams differ, whichever bits these are.
//
// Imitates: streams at addresses that were chosen so that their hashes agree in most bits. Does not
// prove: that a host's addresses are hashed well (use_queues_test tries some).
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <utility>
#include <vector>

#include "props/adapters/cache_peer.h"

namespace ashlar::cache {
namespace {

/// The address whose hash, its product with the factor of Fibonacci hashing, is `hash`.
StreamHeap* hashed_to(std::uint64_t hash) {
  constexpr std::uint64_t kFactor = 0x9E3779B97F4A7C15u;
  std::uint64_t inverse = kFactor;  // of an odd number modulo 2^64, by Newton's iteration
  for (int i = 0; i < 6; ++i) inverse *= 2 - kFactor * inverse;
  EXPECT_EQ(inverse * kFactor, 1u);
  return reinterpret_cast<StreamHeap*>(hash * inverse);
}

/// The bits of `number`, at the places first, first + step, first + 2 * step, ... from the top.
std::uint64_t spread(std::uint64_t number, unsigned first, unsigned step) {
  std::uint64_t hash = 0;
  for (unsigned at = first; number != 0; number >>= 1, at += step)
    hash |= (number & 1) << (63 - at);
  return hash;
}

unsigned depth_of(const UseNode* root) {
  std::vector<std::pair<const UseNode*, unsigned>> open{{root, 0}};
  unsigned deepest = 0;
  while (!open.empty()) {
    const auto [node, depth] = open.back();
    open.pop_back();
    if (node == nullptr) continue;
    deepest = std::max(deepest, depth);
    open.emplace_back(node->queue.child[0], depth + 1);
    open.emplace_back(node->queue.child[1], depth + 1);
  }
  return deepest;
}

TEST(QueueTreeTest, NoQueueIsDeeperThanTheBitsThatTellTheHashesApart) {
  constexpr std::uint64_t kStreams = 512;  // nine bits
  for (const unsigned step : {1u, 2u, 3u, 6u}) {
    for (unsigned first = 0; first < step; ++first) {
      UseQueues queues;
      std::deque<UseNode> nodes(kStreams);
      for (std::uint64_t i = 0; i < kStreams; ++i) {
        nodes[i].user = hashed_to(spread(i, first, step) | 1);
        nodes[i].sequence = i + 1;
        queues.add(&nodes[i]);
      }
      EXPECT_EQ(queues.count(), kStreams);
      EXPECT_LE(depth_of(&nodes[0]), first + 8 * step + 1) << first << " of " << step;
      ASSERT_STREQ(queues.validate([](const UseNode&) { return true; }), nullptr);
      // Any order of taking leaves a tree that finds the others.
      std::vector<UseNode*> taken(kStreams);
      for (std::uint64_t left = kStreams; left > 0; left -= 64) {
        ASSERT_EQ(queues.take(taken.data(), 64), 64u);
        ASSERT_STREQ(queues.validate([](const UseNode&) { return true; }), nullptr);
      }
      EXPECT_TRUE(queues.is_empty());
    }
  }
}

}  // namespace
}  // namespace ashlar::cache
