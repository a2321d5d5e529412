// PyTorch's two policies against a naive second implementation, a checker of what any allocator must
// keep, and the ledger of the simulated GPU.
//
// Imitates: streams of requests of all sizes, on devices that are often full. Does not prove: that the
// rules are PyTorch's; policy_traces_test.cc compares figures of another program.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "props/tool/naive_policy.h"
#include "spec/gpu/sim_gpu.h"
#include "spec/ops/random.h"
#include "src/tool/policy.h"
#include "src/tool/policy_pass.h"

namespace {

using ashlar::Address;
using ashlar::Bytes;
using ashlar::operator""_KiB;
using ashlar::operator""_MiB;
using ashlar::props::NaivePolicy;
using ashlar::spec::Random;
using ashlar::spec::SimGpu;
using ashlar::tool::Policy;

class PolicyTest : public testing::TestWithParam<bool> {
 protected:
  // A device of that capacity, and the policy that the parameter names over it.
  void make(Bytes capacity) {
    SimGpu::Options options;
    options.capacities = {capacity};
    options.adversarial = false;
    gpu_ = std::make_unique<SimGpu>(options);
    policy_ = GetParam() ? ashlar::tool::make_expandable_policy(gpu_->device(), capacity)
                         : ashlar::tool::make_segment_policy(gpu_->device());
  }

  // Its address, or 0 for an out-of-memory.
  std::uint64_t allocate(Bytes size, std::uint32_t stream = 0) {
    const auto address = policy_->allocate(size, stream);
    if (address.is_ok()) return address.value().value();
    EXPECT_EQ(address.code(), ashlar::Code::kOutOfMemory);
    return 0;
  }
  void free(std::uint64_t address, std::uint32_t stream = 0) {
    policy_->free(Address{address}, stream);
  }
  Bytes reserved() const { return policy_->figures().reserved; }

  std::unique_ptr<SimGpu> gpu_;
  std::unique_ptr<Policy> policy_;
};

struct Live {
  std::uint64_t size = 0;
  std::uint32_t stream = 0;
};

// Sizes at and around every limit of the rules, and some between.
std::uint64_t size_of(Random& random) {
  constexpr std::uint64_t kLimits[] = {1, 512, 1 << 20, 2 << 20, 10 << 20, 20 << 20, 24 << 20};
  const std::uint64_t limit = kLimits[random.below(std::size(kLimits))];
  switch (random.below(4)) {
    case 0: return limit;
    case 1: return limit + 1;
    case 2: return limit > 1 ? limit - 1 : 1;
    default: return 1 + random.below(limit);
  }
}

// What any allocator must keep: live blocks are aligned and do not overlap.
void expect_apart(const std::map<std::uint64_t, Live>& live, std::uint64_t at, std::uint64_t size) {
  ASSERT_EQ(at % 512, 0u);
  const auto next = live.lower_bound(at);
  if (next != live.end()) {
    ASSERT_LE(at + size, next->first) << "overlaps the block behind it";
  }
  if (next == live.begin()) return;
  const auto before = std::prev(next);
  ASSERT_LE(before->first + before->second.size, at) << "overlaps the block before it";
}

TEST_P(PolicyTest, EveryAddressAndFigureIsThatOfANaiveImplementation) {
  std::uint64_t ooms = 0;
  std::uint64_t waits = 0;
  for (std::uint64_t seed = 1; seed <= 24; ++seed) {
    Random random(seed);
    const Bytes capacity = 2_MiB * (10 + random.below(150));
    make(capacity);
    NaivePolicy naive(GetParam(), capacity.count());
    std::map<std::uint64_t, Live> live;
    const std::uint64_t free_part = 30 + random.below(30);  // of 100
    Bytes peak;
    std::uint64_t refused = 0;
    for (int step = 0; step < 600; ++step) {
      SCOPED_TRACE("seed " + std::to_string(seed) + " step " + std::to_string(step));
      if (!live.empty() && random.below(100) < free_part) {
        const auto which =
            std::next(live.begin(), static_cast<std::ptrdiff_t>(random.below(live.size())));
        free(which->first, which->second.stream);
        naive.free(which->first);
        live.erase(which);
      } else {
        const std::uint64_t size = size_of(random);
        const auto stream = static_cast<std::uint32_t>(random.below(3));
        const std::uint64_t at = allocate(Bytes{size}, stream);
        ASSERT_EQ(at, naive.allocate(size, stream)) << size << " bytes on stream " << stream;
        if (at == 0) {
          ++refused;
        } else {
          ASSERT_NO_FATAL_FAILURE(expect_apart(live, at, size));
          live[at] = {size, stream};
        }
      }
      peak = std::max(peak, reserved());
      ASSERT_EQ(reserved().count(), naive.reserved());
      ASSERT_EQ(gpu_->ledger().device_bytes(), reserved()) << "the device counts otherwise";
      if (step % 16 != 0) continue;
      const char* const broken = policy_->validate();
      ASSERT_EQ(broken, nullptr) << broken;
    }
    EXPECT_GE(policy_->figures().reserved_peak, peak);
    EXPECT_EQ(policy_->figures().ooms, refused);
    EXPECT_EQ(policy_->figures().waits, naive.waits());
    EXPECT_EQ(gpu_->fault_count(), 0u) << gpu_->take_faults().front().text;
    ooms += refused;
    waits += naive.waits();
  }
  EXPECT_GT(ooms, 100u) << "the devices were never full";
  EXPECT_GT(waits, 100u) << "nothing was ever given back";
}

TEST_P(PolicyTest, AFullDeviceGetsBackWhatIsWhollyFreeAfterAWait) {
  make(40_MiB);
  const std::uint64_t large = allocate(30_MiB);
  ASSERT_NE(large, 0u);
  free(large);
  EXPECT_EQ(policy_->figures().waits, 0u);
  EXPECT_NE(allocate(30_MiB, 1), 0u) << "another stream, so other memory";
  EXPECT_EQ(policy_->figures().waits, 1u);
  EXPECT_EQ(allocate(30_MiB, 1), 0u);
  EXPECT_EQ(policy_->figures().ooms, 1u);
  EXPECT_EQ(policy_->figures().waits, 1u) << "nothing was free, so nothing was waited for";
  EXPECT_EQ(policy_->validate(), nullptr);
}

TEST_P(PolicyTest, PoolsAreKeptApartBySizeAndStream) {
  make(200_MiB);
  free(allocate(1_MiB));
  const Bytes small = reserved();
  EXPECT_EQ(small, 2_MiB);
  free(allocate(1_MiB));
  EXPECT_EQ(reserved(), small) << "the same stream, the same memory";
  free(allocate(1_MiB, 1), 1);
  EXPECT_EQ(reserved(), 4_MiB) << "another stream's";
  free(allocate(1_MiB + 1_KiB));
  EXPECT_EQ(reserved(), 24_MiB) << "another pool's";
}

INSTANTIATE_TEST_SUITE_P(Both, PolicyTest, testing::Bool(),
                         [](const auto& each) { return each.param ? "Expandable" : "Segments"; });

using SegmentPolicyTest = PolicyTest;
INSTANTIATE_TEST_SUITE_P(Only, SegmentPolicyTest, testing::Values(false));

TEST_P(SegmentPolicyTest, ALargeBlockIsSplitOnlyWhereMoreThanAMebibyteRemains) {
  make(200_MiB);
  const std::uint64_t whole =
      allocate(19_MiB);  // from 10 MiB on a segment of its own, of 20 MiB here
  EXPECT_EQ(reserved(), 20_MiB);
  free(whole);
  EXPECT_EQ(allocate(19_MiB), whole) << "rests of 1 MiB are not split off";
  EXPECT_NE(allocate(2_MiB), whole + (19_MiB).count()) << "1 MiB was all that remained";
  EXPECT_EQ(reserved(), 40_MiB);
}

TEST_P(SegmentPolicyTest, ARestOfMoreThanAMebibyteServesTheNextRequest) {
  make(200_MiB);
  const std::uint64_t first = allocate(9_MiB);  // of a segment of 20 MiB
  EXPECT_EQ(allocate(9_MiB), first + (9_MiB).count());
  EXPECT_EQ(allocate(2_MiB), first + (18_MiB).count());
  EXPECT_EQ(reserved(), 20_MiB);
}

using ExpandablePolicyTest = PolicyTest;
INSTANTIATE_TEST_SUITE_P(Only, ExpandablePolicyTest, testing::Values(true));

TEST_P(ExpandablePolicyTest, ABlockAtTheEndGrowsInPlace) {
  make(200_MiB);
  const std::uint64_t first = allocate(15_MiB);
  EXPECT_EQ(reserved(), 20_MiB);
  EXPECT_EQ(allocate(30_MiB), first + (15_MiB).count()) << "5 MiB were there, 40 MiB are mapped";
  EXPECT_EQ(reserved(), 60_MiB);
}

TEST_P(ExpandablePolicyTest, ABlockThatCannotGrowIsPreferredToASmallerOneThatCan) {
  make(400_MiB);
  const std::uint64_t hole = allocate(16_MiB);
  const std::uint64_t fence = allocate(10_MiB);  // 26 MiB; 14 MiB of the second page remain
  EXPECT_EQ(reserved(), 40_MiB);
  free(hole);
  EXPECT_EQ(allocate(12_MiB), hole) << "the 14 MiB behind can grow, so they count as larger";
  free(fence);
  EXPECT_EQ(policy_->validate(), nullptr);
}

TEST(PolicyNames, AListNamesEachPolicyOnceAndAllNamesThemAll) {
  using ashlar::tool::parse_policies;
  using Kind = ashlar::tool::PolicyKind;
  EXPECT_EQ(parse_policies("pytorch,ashlar"), (std::vector<Kind>{Kind::kPytorch, Kind::kAshlar}));
  EXPECT_EQ(parse_policies("all")->size(), ashlar::tool::kPolicyKinds);
  for (const char* wrong : {"", "pytorch,", ",ashlar", "torch", "ashlar,ashlar", "all,ashlar"})
    EXPECT_FALSE(parse_policies(wrong)) << wrong;
}

TEST(PolicyTimeline, APointIsTheMostOfItsPartWhereverThatStands) {
  constexpr std::size_t kMax = ashlar::tool::kPolicyTimelineMax;
  for (std::size_t at = 0; at < 6; ++at) {
    std::vector<std::uint64_t> values(3 * kMax);
    values[at] = 7;
    const std::vector<std::uint64_t> points = ashlar::tool::decimated(values);
    EXPECT_EQ(points[at / 3], 7u) << at;
    EXPECT_EQ(points[1 - at / 3], 0u) << at;
  }
}

TEST(PolicyTimeline, APointIsTheMostOfItsPart) {
  std::vector<std::uint64_t> values(3 * ashlar::tool::kPolicyTimelineMax);
  values[4] = 7;
  const std::vector<std::uint64_t> points = ashlar::tool::decimated(values);
  ASSERT_EQ(points.size(), ashlar::tool::kPolicyTimelineMax);
  EXPECT_EQ(points[0], 0u);
  EXPECT_EQ(points[1], 7u);
  EXPECT_EQ(ashlar::tool::decimated({5, 6}), (std::vector<std::uint64_t>{5, 6}));
  EXPECT_TRUE(ashlar::tool::decimated({}).empty());
}

}  // namespace
