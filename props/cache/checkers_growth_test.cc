// The clauses about how heaps of pages grow, each seen to fire on a subject with a planted bug: the real allocator
// that obeys other settings than it says.
//
// Imitates: segments where pages are due, too many pages, pages that move without a need. Does not prove that every
// such bug is seen (the mutants do, ci/mutation).
#include <gtest/gtest.h>

#include "props/cache/planted_subjects.h"

namespace ashlar::props {
namespace {

/// Says that it obeys these settings.
template <const char* kClaim>
struct SaysItObeys : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  cache::Config config() const override { return config_in_segments(kClaim); }
};
template <const char* kClaim>
std::string clause_of(const char* obeyed, const std::string& ops) {
  return dense_clause<SaysItObeys<kClaim>>("conf " + std::string(kClaim) + "\n" + ops, obeyed);
}

constexpr char kPlain[] = "backing:pages,reuse:own";
constexpr char kFirst[] = "backing:pages,first_growth_mb:8";
constexpr char kBudget[] = "backing:pages,page_handles_max:4";
constexpr char kBounded[] = "backing:pages,reuse:own,move:eager,move_us_max:64";

TEST(CheckersOfGrowth, Dev10FiresOnASegmentThatIsNoFirstGrowth) {
  const std::string ops = "device d0 256MiB\nalloc p0 4MiB s0\n";
  EXPECT_EQ(clause_of<kPlain>("backing:pages,reuse:own,first_growth_mb:8", ops), "DEV-10");
  EXPECT_EQ(clause_of<kFirst>("backing:pages,first_growth_mb:10", ops), "DEV-10");
  EXPECT_EQ(clause_of<kFirst>("backing:pages,page_handles_max:1", ops), "DEV-10");
}

TEST(CheckersOfGrowth, Dev10FiresOnMorePagesThanTheBudget) {
  EXPECT_EQ(clause_of<kBudget>("backing:pages", "alloc p0 10MiB s0\n"), "DEV-10");
  EXPECT_EQ(clause_of<kBudget>("backing:pages,page_handles_max:3", "alloc p0 8MiB s0\n"), "DEV-10")
      << "a segment within the budget";
}

TEST(CheckersOfGrowth, Dev10FiresOnPagesThatMoveWithoutNeed) {
  const std::string ops =
      "stream s1 d0\nalloc p0 40MiB s0\nfree p0\ndrain d0\nalloc p1 2MiB s1\nfree p1\ndrain d0\n"
      "alloc p2 30MiB s1\n";
  EXPECT_EQ(clause_of<kPlain>("backing:pages,reuse:own,move:eager", ops), "DEV-10");
  EXPECT_EQ(clause_of<kBounded>("backing:pages,reuse:own,move:eager", ops), "DEV-10");
}

/// A device that says it has four times the memory.
class BoastingDevice final : public device::ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  Result<device::MemoryInfo> memory_info() noexcept override {
    Result<device::MemoryInfo> said = ForwardingDevice::memory_info();
    if (!said.is_ok()) return said;
    device::MemoryInfo memory = said.value();
    memory.total = memory.total * 4;
    return memory;
  }
};
struct GrowsFirstForTooLong : ForwardingSubject {
  GrowsFirstForTooLong(std::shared_ptr<spec::CacheSubject> inner,
                       std::span<device::Device* const> devices)
      : ForwardingSubject(std::move(inner), devices), boasting_(*devices[0]) {
    device::Device* const all[] = {&boasting_};
    inner_ = caching_allocator_factory()(all, kFirst).value();
  }
  ~GrowsFirstForTooLong() override { inner_.reset(); }
  BoastingDevice boasting_;
};
TEST(CheckersOfGrowth, Dev10FiresOnAFirstGrowthBeyondAQuarter) {
  EXPECT_EQ(dense_clause<GrowsFirstForTooLong>("conf " + std::string(kFirst) +
                                               "\ndevice d0 16MiB\nalloc p0 4MiB s0\n"),
            "DEV-10");
}

}  // namespace
}  // namespace ashlar::props
