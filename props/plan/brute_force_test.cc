// Brute force, which solvers' least peaks are compared with: a known case, and agreement with a search
// that tries every offset.
//
// Does not prove: anything beyond the sizes that it tries.
#include <gtest/gtest.h>

#include <vector>

#include "props/plan/generate.h"
#include "props/plan/pairwise_check.h"
#include "spec/plan/brute_force.h"
#include "spec/plan/check.h"

namespace ashlar::spec {
namespace {

using plan::Problem;

// Decides whether one space has a valid plan whose buffers all end by `peak`, by trying every offset
// of every buffer.
class EveryOffset {
 public:
  EveryOffset(const Problem& problem, std::uint32_t space, Bytes peak)
      : problem_(problem),
        space_(space),
        peak_(peak),
        offsets_(problem.buffers.size(), plan::kNowhere) {}

  bool exists() { return place(0); }

 private:
  bool place(std::uint32_t b) {
    if (b == problem_.buffers.size()) return true;
    const plan::Buffer& buffer = problem_.buffers[b];
    if (buffer.space != space_) return place(b + 1);
    for (Bytes at; at + buffer.size <= peak_; at += buffer.alignment) {
      if (buffer.pinned != plan::kNowhere && at != buffer.pinned) continue;
      offsets_[b] = at;
      if (is_right_so_far(b) && place(b + 1)) return true;
    }
    offsets_[b] = plan::kNowhere;
    return false;
  }

  bool is_right_so_far(std::uint32_t b) const {
    for (std::uint32_t a = 0; a < b; ++a) {
      const std::uint32_t group = problem_.buffers[a].group;
      if (group != plan::kNoGroup && group == problem_.buffers[b].group &&
          offsets_[a] != offsets_[b])
        return false;
      if (first_meeting(problem_, a, b) && share_bytes(problem_, offsets_, a, b)) return false;
    }
    return true;
  }

  const Problem& problem_;
  const std::uint32_t space_;
  const Bytes peak_;
  std::vector<Bytes> offsets_;
};

TEST(BruteForce, FindsALeastPeakAboveTheLiveBytes) {
  // The smallest example that a search over small problems without features has found.
  struct Row {
    plan::Time lower;
    plan::Time upper;
    std::uint64_t size;
  };
  Problem problem;
  for (const Row& row : {Row{0, 3, 3},
                         {1, 4, 2},
                         {0, 1, 3},
                         {5, 6, 3},
                         {0, 6, 2},
                         {4, 6, 3},
                         {2, 5, 2},
                         {3, 5, 2}}) {
    problem.buffers.emplace_back();
    problem.buffers.back().life = {row.lower, row.upper};
    problem.buffers.back().size = Bytes{row.size};
  }
  EXPECT_EQ(live_peaks(problem)[0], 9_B);
  EXPECT_EQ(brute_force(problem).peaks[0], 10_B);
  EXPECT_FALSE(EveryOffset(problem, 0, 9_B).exists());
  EXPECT_TRUE(EveryOffset(problem, 0, 10_B).exists());
}

TEST(BruteForce, AgreesWithTryingEveryOffset) {
  Random random(5);
  int above_live = 0;
  for (int i = 0; i < 4000; ++i) {
    const Problem problem = generate_problem(&random, {5, 8, 4});
    const LeastPeaks least = brute_force(problem);
    const auto violation = check_plan(problem, least.offsets);
    ASSERT_FALSE(violation.has_value()) << i << ": " << violation->text;
    const std::vector<Bytes> live = live_peaks(problem);
    const std::vector<Bytes> peaks = peaks_of(problem, least.offsets);
    for (std::uint32_t s = 0; s < problem.spaces.size(); ++s) {
      const Bytes peak = peaks[s];
      ASSERT_EQ(peak, least.peaks[s]) << i;
      ASSERT_GE(peak, live[s]) << i;
      above_live += peak > live[s] ? 1 : 0;
      if (peak > 0_B && peak < 1_MiB) {  // not where sizes are scaled
        ASSERT_FALSE(EveryOffset(problem, s, peak - 1_B).exists()) << i;
      }
    }
  }
  EXPECT_GT(above_live, 200);
}

}  // namespace
}  // namespace ashlar::spec
