// The set of barred slots compared with std::set.
#include <iterator>
#include <set>

#include <gtest/gtest.h>

#include <ashlar/replay/slot_set.h>

#include "spec/ops/random.h"

namespace ashlar {
namespace {

TEST(SlotSetTest, FindsTheNearestMembersOfAnySet) {
  spec::Random random(1);
  for (const std::uint32_t size : {1u, 63u, 64u, 65u, 4096u, 4097u, 20'000u}) {
    replay::SlotSet set(size);
    std::set<std::uint32_t> model;
    for (int i = 0; i < 20'000; ++i) {
      const auto slot = static_cast<std::uint32_t>(random.below(size));
      if (model.size() > size / 2 || (random.one_in(2) && model.count(slot) != 0)) {
        const std::uint32_t gone = model.count(slot) != 0 ? slot : *model.begin();
        model.erase(gone);
        set.erase(gone);
      } else if (model.insert(slot).second) {
        set.insert(slot);
      }
      const auto asked = static_cast<std::uint32_t>(random.below(size));
      const auto over = model.upper_bound(asked);
      ASSERT_EQ(set.above(asked), over == model.end() ? replay::SlotSet::kNone : *over);
      ASSERT_EQ(set.at_or_below(asked),
                over == model.begin() ? replay::SlotSet::kNone : *std::prev(over));
      ASSERT_EQ(set.is_empty(), model.empty());
    }
  }
}

}  // namespace
}  // namespace ashlar
