// The host runs out of memory below a recorder and a replay: host allocation n fails, for every n.
//
// This executable replaces operator new, which then throws. Does not prove: anything about several
// threads.
#include <cstdint>
#include <cstdlib>
#include <new>

#include <gtest/gtest.h>

#include <ashlar/plan/planner.h>
#include <ashlar/replay/recorder.h>
#include <ashlar/replay/replay.h>

namespace {

std::uint64_t refused = 0;  // the number of the allocation that fails, from now on; 0: none fails
std::uint64_t asked = 0;    // allocations so far

}  // namespace

void* operator new(std::size_t size) {
  ++asked;
  void* const p = refused != 0 && --refused == 0 ? nullptr : std::malloc(size);
  if (p == nullptr) throw std::bad_alloc();
  return p;
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }

namespace ashlar {
namespace {

const Stream kOwn{StreamHandle{1}, StreamId{1}, DeviceId{0}};
const Stream kOther{StreamHandle{2}, StreamId{2}, DeviceId{0}};

/// Hands out new addresses for ever, and needs no memory for that.
class Endless final : public Upstream {
 public:
  Result<Address> allocate(Bytes size, const Stream&) noexcept override {
    const Address at = next_;
    next_ = next_ + size;
    return at;
  }
  Status free(Address) noexcept override { return Status::ok(); }
  Status record_use(Address, const Stream&) noexcept override { return Status::ok(); }

 private:
  Address next_{4096};
};

TEST(PlanMemoryTest, ACallWithoutMemoryForItsRecordSucceedsAndTakeSaysSo) {
  Endless upstream;
  int spoilt = 0;
  for (std::uint64_t n = 1; n <= 8; ++n) {
    replay::Recorder recorder(upstream, kOwn);
    refused = n;
    const Result<Address> a = recorder.allocate(64_B, kOwn);
    const Result<Address> b = recorder.allocate(64_B, kOwn);
    refused = 0;
    ASSERT_TRUE(a.is_ok() && b.is_ok());
    const std::uint64_t before = asked;
    EXPECT_TRUE(recorder.free(a.value()).is_ok());
    EXPECT_TRUE(recorder.free(b.value()).is_ok());
    EXPECT_EQ(asked, before);
    const Result<replay::Recording> taken = recorder.take();
    if (taken.is_ok()) {
      EXPECT_EQ(taken.value().events, 4);
    } else {
      EXPECT_EQ(taken.code(), Code::kHostOutOfMemory);
      ++spoilt;
    }
    EXPECT_TRUE(recorder.take().is_ok());
  }
  EXPECT_GT(spoilt, 2);
  EXPECT_LT(spoilt, 8);
}

TEST(PlanMemoryTest, AReplayIsMadeOrRefusedAndThenAllocatesNothing) {
  Endless upstream;
  const replay::Recording recording{{{64_B, 0, 2, false}, {32_B, 1, 4, false}, {64_B, 3, 5, false}},
                                    6};
  plan::PlanOptions options;
  options.work = 0;
  const plan::Plan plan = plan::make_plan(replay::problem_of(recording), options);
  std::unique_ptr<replay::Replay> replay;
  for (std::uint64_t n = 1; replay == nullptr; ++n) {
    ASSERT_LT(n, 100u);
    refused = n;
    auto made = replay::Replay::create(upstream, kOwn, recording, plan);
    refused = 0;
    if (made.is_ok()) {
      replay = std::move(made).value();
    } else {
      ASSERT_EQ(made.code(), Code::kHostOutOfMemory);
    }
  }
  const std::uint64_t before = asked;
  const Address a = replay->allocate(64_B, kOwn).value();
  const Address b = replay->allocate(32_B, kOwn).value();
  const bool is_used = replay->record_use(b, kOther).is_ok();
  const Address extra = replay->allocate(7_B, kOwn).value();
  const bool are_freed = replay->free(extra).is_ok() && replay->free(b).is_ok();
  const Code twice = replay->free(b).code();
  static_cast<void>(replay->rewind());
  const bool is_late_freed = replay->free(a).is_ok();
  const bool is_rewound = replay->rewind().is_ok();
  EXPECT_EQ(asked, before);
  EXPECT_TRUE(is_used && are_freed && is_late_freed && is_rewound);
  EXPECT_EQ(twice, Code::kDoubleFree);
}

}  // namespace
}  // namespace ashlar
