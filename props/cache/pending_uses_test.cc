// The lists of what a heap's blocks wait for (PendingUses), by themselves.
//
// Imitates: retries that take few or all of the uses without an event; a count that a mistake has
// left wrong. Does not prove: what the uses are asked (use_tracker.cc).
#include <gtest/gtest.h>

#include <string>

#include "props/adapters/cache_peer.h"

namespace ashlar::cache {
namespace {

class PendingUsesTest : public ::testing::Test {
 protected:
  void add(unsigned count) {
    ASSERT_TRUE(uses_.nodes().reserve(count));
    for (unsigned i = 0; i < count; ++i) {
      UseNode* const node = uses_.nodes().take();
      node->sequence = ++added_;
      uses_.add_unrecorded(node);
    }
  }
  /// The numbers of the nodes of a list; they go back behind the others if `is_kept`.
  std::string take(std::uint64_t n, bool is_kept = false) {
    std::string numbers;
    for (UseNode* node = uses_.take_unrecorded(n); node != nullptr;) {
      UseNode* const next = node->next;
      numbers += std::to_string(node->sequence) + " ";
      is_kept ? uses_.add_unrecorded(node) : uses_.nodes().give(node);
      node = next;
    }
    return numbers;
  }
  std::string broken(std::uint64_t live, std::uint64_t pending) const {
    const char* const found = uses_.validate(live, pending, [](const UseNode&) { return true; });
    return found == nullptr ? "" : found;
  }

  PendingUses uses_;
  std::uint64_t added_ = 0;
};

TEST_F(PendingUsesTest, ThoseThatWaitedLongestAreTakenFirst) {
  add(5);
  EXPECT_EQ(take(0), "");
  EXPECT_EQ(uses_.unrecorded_count(), 5u);
  EXPECT_EQ(take(2, true), "1 2 ");
  EXPECT_EQ(take(1), "3 ");
  EXPECT_EQ(take(3), "4 5 1 ");
  EXPECT_EQ(uses_.unrecorded_count(), 1u);
  EXPECT_EQ(take(100), "2 ");
  EXPECT_FALSE(uses_.has_unrecorded());
  EXPECT_EQ(take(100), "");
  add(1);
  EXPECT_EQ(take(1), "6 ");
}

TEST_F(PendingUsesTest, TheirNumberIsHeldAgainstTheirList) {
  add(2);
  EXPECT_EQ(broken(0, 2), "");
  CachePeer::unrecorded_count(uses_) = 1;
  EXPECT_EQ(broken(0, 2), "heap(4): the unrecorded uses are not what their counter says");
  CachePeer::unrecorded_count(uses_) = 2;
  EXPECT_EQ(broken(0, 1), "heap(4): the uses that wait are not those of the pending blocks");
  static_cast<void>(take(100));
}

TEST_F(PendingUsesTest, ANodeThatIsNeitherSpareNorABlocksIsReported) {
  ASSERT_TRUE(uses_.nodes().reserve(1));
  UseNode* const node = uses_.nodes().take();
  EXPECT_EQ(broken(0, 0), "uses(2): a node is neither spare nor a block's");
  EXPECT_EQ(broken(1, 0), "");
  uses_.nodes().give(node);
  EXPECT_EQ(broken(0, 0), "");
}

}  // namespace
}  // namespace ashlar::cache
