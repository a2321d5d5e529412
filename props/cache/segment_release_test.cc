// Which idle segments go back to the driver, and in which order (SegmentRelease), against a list that
// is sorted plainly.
//
// Imitates: heaps with more idle segments than one walk chooses from, sizes that repeat, segments
// that are partly used or whose work is not known complete, a driver that refuses some; threads that
// wait for the reclaim lock, announce a capture, or give segments back themselves. Does not prove:
// that the reclaimer asks for the right number of bytes.
#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <thread>

#include <ashlar/cache/segment_release.h>

#include "props/cache/parts_fixture.h"

namespace ashlar::cache {
namespace {

constexpr Status kRefused{Code::kDriverError, "planted"};

/// A segment as the model sees it.
struct Seen {
  std::size_t heap;
  std::uint64_t size, ordinal, base;
  bool may_go = true;
};

/// Streams with segments, some of which may go back.
class World {
 public:
  World(std::uint64_t seed, std::size_t streams, std::size_t segment_count, unsigned sizes)
      : random_(seed) {
    for (std::size_t i = 0; i < streams; ++i) {
      streams_.push_back(parts.stream());
      heaps_.push_back(&parts.heap(streams_.back()));
    }
    std::vector<std::vector<Address>> live(streams);
    for (std::size_t i = 0; i < segment_count; ++i) {
      const std::size_t on = random_() % 4 == 0 ? random_() % streams : 0;
      live[on].push_back(parts.allocate(Bytes{(10 + 2 * (random_() % sizes)) << 20}, streams_[on]));
    }
    // Segments that are cut: one part stays. Of the small pool, too.
    std::vector<Address> kept;
    for (std::size_t on = 0; on < streams; ++on) {
      for (const Bytes size : {4_MiB, 5_MiB, 6_MiB, 1_MiB, 1_MiB, 1_MiB}) {
        const Address block = parts.allocate(size, streams_[on]);
        (random_() % 3 == 0 ? kept : live[on]).push_back(block);
      }
    }
    std::set<std::uint64_t> incomplete;
    for (std::size_t on = 0; on < streams; ++on) {
      std::shuffle(live[on].begin(), live[on].end(), random_);
      std::size_t complete = live[on].size() * 3 / 4;
      for (const Address block : live[on]) {
        if (complete-- == 0) know_complete(on);
        if (random_() % 8 == 0) kept.push_back(block);
        else parts.free(block);
      }
      if (random_() % 2 == 0) know_complete(on);
    }
    for (std::size_t on = 0; on < streams; ++on) look(on);
    parts.device().on_free = [this](Address base) {
      asked.push_back(base.value());
      return refused.count(base.value()) != 0 ? kRefused : Status::ok();
    };
  }
  /// The heap's free blocks are known complete from now on.
  void know_complete(std::size_t on) {
    const Guard guard(heaps_[on]->lock);
    heaps_[on]->clock.complete(heaps_[on]->clock.advance());
  }
  StreamHeap& heap(std::size_t on) { return *heaps_[on]; }
  std::size_t heaps() const { return heaps_.size(); }
  void refuse_some(std::uint64_t one_in) {
    for (const Seen& segment : segments)
      if (random_() % one_in == 0) refused.insert(segment.base);
  }

  CacheParts parts{16_GiB};
  std::vector<Seen> segments;  ///< of all heaps
  std::vector<std::uint64_t> asked;
  std::set<std::uint64_t> refused;

 private:
  void look(std::size_t on) {
    const StreamHeap& heap = *heaps_[on];
    const Guard guard(heap.lock);
    for (const PoolId id : kPoolIds) {
      const block::BlockPool& pool = heap.pool(id);
      for (auto at = pool.first_segment(); at != block::kNoSegment; at = pool.next(at)) {
        const DeviceSegment& record = *record_of(pool.view(at));
        const block::BlockView first = pool.view(pool.view(at).first);
        segments.push_back({on, record.size.count(), record.ordinal, record.base.value(),
                            first.size == record.size && first.state == BlockState::kFree &&
                                first.stamp <= heap.clock.completed()});
      }
    }
  }

  std::mt19937_64 random_;
  std::vector<Stream> streams_;
  std::vector<StreamHeap*> heaps_;
};

/// What row DEV-13 asks for, one segment at a time.
class Reference {
 public:
  explicit Reference(const World& world) : world_(world), left_(world.segments) {
    std::erase_if(left_, [](const Seen& segment) { return !segment.may_go; });
  }
  std::uint64_t back = 0;
  std::vector<std::uint64_t> asked;

  void release_enough(std::size_t asking, std::uint64_t need, std::uint64_t at_least) {
    const std::uint64_t enough = std::max(need, at_least);
    take_smallest(asking, enough);
    if (back == 0) {
      const Seen* best = nullptr;
      for (const Seen& segment : left_) {
        if (segment.heap == asking || segment.size < enough) continue;
        if (best == nullptr || is_smaller(segment, *best)) best = &segment;
      }
      if (best != nullptr) take_smallest(best->heap, enough);
    }
    if (back == 0) take_largest(asking, need, at_least);
    for (std::size_t heap = 0; heap < world_.heaps(); ++heap)
      if (heap != asking) take_largest(heap, need, at_least);
  }

 private:
  static bool is_smaller(const Seen& a, const Seen& b) {
    return std::pair(a.size, a.ordinal) < std::pair(b.size, b.ordinal);
  }
  void ask(std::vector<Seen>::iterator segment) {
    asked.push_back(segment->base);
    if (world_.refused.count(segment->base) == 0) back += segment->size;
    left_.erase(segment);
  }
  /// Four tries: a driver that refuses the smallest is asked for the next.
  void take_smallest(std::size_t heap, std::uint64_t enough) {
    for (int tries = 0; tries < 4 && back == 0; ++tries) {
      auto best = left_.end();
      for (auto it = left_.begin(); it != left_.end(); ++it) {
        if (it->heap != heap || it->size < enough) continue;
        if (best == left_.end() || is_smaller(*it, *best)) best = it;
      }
      if (best == left_.end()) return;
      ask(best);
    }
  }
  void take_largest(std::size_t heap, std::uint64_t need, std::uint64_t at_least) {
    while (back < need) {
      auto best = left_.end();
      for (auto it = left_.begin(); it != left_.end(); ++it) {
        if (it->heap != heap || it->size < at_least) continue;
        const auto rank = [](const Seen& s) { return std::pair(~s.size, s.ordinal); };
        if (best == left_.end() || rank(*it) < rank(*best)) best = it;
      }
      if (best == left_.end()) return;
      ask(best);
    }
  }

  const World& world_;
  std::vector<Seen> left_;
};

TEST(SegmentReleaseTest, TheSmallestThatIsEnoughGoesBackElseTheLargestUntilTheyAre) {
  std::size_t most_asked = 0;
  for (std::uint64_t seed = 1; seed <= 120; ++seed) {
    const std::size_t count = seed % 4 == 0 ? 150 : 4 + seed % 40;
    World world(seed, 1 + seed % 4, count, seed % 3 == 0 ? 3 : 30);
    if (seed % 3 != 0) world.refuse_some(1 + seed % 5);
    std::mt19937_64 random(seed);
    std::uint64_t need = (2 + 2 * (random() % 40)) << 20;
    if (seed % 5 == 0) need *= 50;  // no single one is enough
    std::uint64_t at_least = seed % 2 == 0 ? 0 : (2 * (random() % 40)) << 20;
    if (seed % 7 == 0) need = ++at_least;
    const std::size_t asking = random() % world.heaps();
    Reference reference(world);
    reference.release_enough(asking, need, at_least);
    ReclaimLock lock;
    SegmentRelease release(world.parts.cache().heaps(), world.parts.shared(),
                           world.parts.cache().supply(), lock);
    const ReclaimGuard guard(lock);
    const Bytes back = release.release_enough(world.heap(asking), Bytes{need}, Bytes{at_least});
    ASSERT_EQ(world.asked, reference.asked) << "seed " << seed;
    ASSERT_EQ(back.count(), reference.back) << "seed " << seed;
    ASSERT_EQ(world.parts.cache().validate(), nullptr);
    most_asked = std::max(most_asked, world.asked.size());
  }
  EXPECT_GT(most_asked, 70u) << "more than two choices' worth";
}

TEST(SegmentReleaseTest, AllThatMayGoIsAskedAboutOnceAndTheFirstRefusalIsTold) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    World world(seed, 1 + seed % 3, seed % 4 == 0 ? 200 : seed % 20, 20);
    if (seed % 2 == 0) world.refuse_some(3);
    ReclaimLock lock;
    SegmentRelease release(world.parts.cache().heaps(), world.parts.shared(),
                           world.parts.cache().supply(), lock);
    std::set<std::uint64_t> may_go;
    std::uint64_t bytes = 0;
    bool is_refused = false;
    for (const Seen& segment : world.segments) {
      if (!segment.may_go) continue;
      may_go.insert(segment.base);
      if (world.refused.count(segment.base) != 0) is_refused = true;
      else bytes += segment.size;
    }
    Status refused;
    const ReclaimGuard guard(lock);
    ASSERT_EQ(release.release_all(&refused).count(), bytes);
    ASSERT_EQ(world.asked.size(), may_go.size());
    ASSERT_EQ(std::set(world.asked.begin(), world.asked.end()), may_go);
    ASSERT_EQ(refused.code(), is_refused ? Code::kDriverError : Code::kOk);
    ASSERT_EQ(world.parts.cache().supply().removals(),
              may_go.size() - static_cast<std::size_t>(std::count_if(
                                  may_go.begin(), may_go.end(), [&](std::uint64_t base) {
                                    return world.refused.count(base) != 0;
                                  })));
    // A later pass asks about the refused ones again.
    world.refused.clear();
    world.asked.clear();
    release.release_all();
    ASSERT_EQ(world.asked.size() + (is_refused ? 0 : 1), is_refused ? world.asked.size() : 1);
    ASSERT_EQ(is_refused, !world.asked.empty());
    ASSERT_EQ(world.parts.cache().validate(), nullptr);
  }
}

/// A pass with a slow driver, and a thread that waits for the lock from the first call on.
class SlowPass {
 public:
  explicit SlowPass(bool refuses) : refuses_(refuses) {
    stream_ = parts_.stream();
    std::vector<Address> blocks;
    for (int i = 0; i < 12; ++i) blocks.push_back(parts_.allocate(20_MiB, stream_));
    for (const Address block : blocks) parts_.free(block);
    StreamHeap& heap = parts_.heap(stream_);
    const Guard guard(heap.lock);
    heap.clock.complete(heap.clock.advance());
  }
  /// Runs `pass`; `turn` once it has let the other thread in.
  template <class Pass, class Turn>
  void run(Pass&& pass, Turn&& turn) {
    std::thread other;
    std::atomic<bool> is_waiting{false};
    parts_.device().on_free = [&](Address base) {
      asked.push_back(base.value());
      if (asked.size() == 1) {
        other = std::thread([&] {
          is_waiting = true;
          const ReclaimGuard guard(lock_);
          asked_before_turn = asked.size();
          turn(*this);
        });
        while (!is_waiting) std::this_thread::yield();
      }
      if (asked_before_turn == 0) std::this_thread::sleep_for(std::chrono::milliseconds(4));
      return refuses_ ? kRefused : Status::ok();
    };
    {
      const ReclaimGuard guard(lock_);
      pass(*this);
      asked_in_pass = asked.size();
    }
    other.join();
    EXPECT_GE(asked_before_turn, 1u);
    EXPECT_LE(asked_before_turn, 8u) << "C30: a waiting thread has the lock between two segments";
    EXPECT_EQ(parts_.cache().validate(), nullptr);
  }
  Bytes enough(Bytes need) ASHLAR_REQUIRES(reclaiming) {
    return release_.release_enough(parts_.heap(stream_), need, Bytes{});
  }
  Bytes all() ASHLAR_REQUIRES(reclaiming) { return release_.release_all(&refused); }
  void announce_capture() { parts_.shared().captures = 1; }
  void end_capture() { parts_.shared().captures = 0; }
  bool has_asked_twice() const {
    return std::set(asked.begin(), asked.end()).size() != asked.size();
  }

  std::vector<std::uint64_t> asked;
  std::size_t asked_before_turn = 0, asked_in_pass = 0;
  Status refused;

 private:
  const bool refuses_;
  CacheParts parts_{1_GiB};
  Stream stream_;
  ReclaimLock lock_;
  SegmentRelease release_{parts_.cache().heaps(), parts_.shared(), parts_.cache().supply(), lock_};
};

using Pass = void (*)(SlowPass&);
const std::map<std::string, Pass> kPasses{
    {"all", [](SlowPass& p) ASHLAR_NO_THREAD_SAFETY_ANALYSIS { p.all(); }},
    {"the largest", [](SlowPass& p) ASHLAR_NO_THREAD_SAFETY_ANALYSIS { p.enough(1_GiB); }},
    {"the smallest", [](SlowPass& p) ASHLAR_NO_THREAD_SAFETY_ANALYSIS { p.enough(20_MiB); }}};

TEST(SegmentReleaseTest, AThreadThatWaitsHasTheLockBeforeTheRestGoesBack) {
  for (const bool refuses : {false, true}) {
    for (const char* name : {"all", "the largest"}) {
      SlowPass pass(refuses);
      pass.run(kPasses.at(name), [](SlowPass&) {});
      EXPECT_EQ(pass.asked.size(), 12u) << name;
      EXPECT_FALSE(pass.has_asked_twice()) << name;
    }
  }
}

TEST(SegmentReleaseTest, AfterACaptureWasAnnouncedNothingMoreGoesBack) {
  for (const bool refuses : {false, true}) {
    for (const auto& [name, run] : kPasses) {
      if (!refuses && name == "the smallest") continue;  // it is over with the first
      SlowPass pass(refuses);
      pass.run(run, [](SlowPass& p) { p.announce_capture(); });
      EXPECT_EQ(pass.asked.size(), pass.asked_before_turn) << name << " C9";
      pass.end_capture();
    }
  }
}

TEST(SegmentReleaseTest, TwoPassesAskAboutEachSegmentOnceAndBothAreToldOfARefusal) {
  for (const bool refuses : {false, true}) {
    for (const auto& [name, run] : kPasses) {
      SlowPass pass(refuses);
      Status told;
      const auto turn = [&](SlowPass& p) ASHLAR_NO_THREAD_SAFETY_ANALYSIS {
        p.all();
        told = std::exchange(p.refused, Status::ok());
      };
      pass.run(run, turn);
      // The second pass began later: it asks about all that are there, the first about none again.
      EXPECT_EQ(std::set(pass.asked.begin(), pass.asked.end()).size(), 12u) << name;
      if (!refuses) {
        EXPECT_FALSE(pass.has_asked_twice()) << name;
      }
      if (name != "the smallest") {
        EXPECT_EQ(pass.asked_in_pass, pass.asked.size()) << name;
      }
      EXPECT_LE(pass.asked.size(), 12 + pass.asked_before_turn) << name;
      if (name == "the smallest") continue;
      EXPECT_EQ(told.code(), refuses ? Code::kDriverError : Code::kOk);
      if (name == "all") {
        EXPECT_EQ(pass.refused.code(), told.code());
      }
    }
  }
}

}  // namespace
}  // namespace ashlar::cache
