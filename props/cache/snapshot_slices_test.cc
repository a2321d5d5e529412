// The copy of a pool into a snapshot (PoolCopy), slice by slice, against a copy written plainly.
//
// Imitates: segments of a few blocks and of a thousand, blocks with many uses, numbers of segments
// that have gone; between two slices, blocks that are split and merged and segments that go and come
// back. Does not prove: what a reader sees while other threads run (cache_threads_test.cc), nor the
// order of what several heaps hold (snapshot_sort_test.cc).
#include <map>
#include <random>
#include <set>

#include <ashlar/block/pool_walk.h>
#include <ashlar/cache/snapshot_copy.h>

#include "props/cache/parts_fixture.h"

namespace ashlar::cache {
namespace {

constexpr unsigned kPerSlice = 128;
/// Builds that walk the whole pool at each change run a part of the worlds, and expect no sums of them.
constexpr bool kIsWalked = ASHLAR_VALIDATION != 0;

/// Gives a test a private member: the names in an explicit instantiation are not access checked.
template <class Tag, typename Tag::type Member>
struct Opened {
  friend typename Tag::type open(Tag) { return Member; }
};
struct CopySlice {
  using type = bool (PoolCopy::*)() noexcept;
  friend type open(CopySlice);
};
struct ReserveSlice {
  using type = void (PoolCopy::*)();
  friend type open(ReserveSlice);
};
struct Setbacks {
  using type = unsigned PoolCopy::*;
  friend type open(Setbacks);
};
struct Copied {
  using type = std::vector<block::BlockIndex> PoolCopy::*;
  friend type open(Copied);
};
template struct Opened<CopySlice, &PoolCopy::copy_slice>;
template struct Opened<ReserveSlice, &PoolCopy::reserve_slice>;
template struct Opened<Setbacks, &PoolCopy::setbacks_>;
template struct Opened<Copied, &PoolCopy::copied_>;

bool run_slice(PoolCopy& copy, const StreamHeap& heap) {
  (copy.*open(ReserveSlice{}))();
  const Guard guard(heap.lock);
  return (copy.*open(CopySlice{}))();
}
unsigned& setbacks_of(PoolCopy& copy) { return copy.*open(Setbacks{}); }

using Fields = std::tuple<std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t, std::uint32_t,
                          BlockState>;
Fields fields(const SnapshotBlock& b) {
  return {b.address.value(), b.size.count(), b.requested.count(),
          b.stream.value(),  b.other_uses,   b.state};
}

/// The same copy, with every list made anew and every rule of snapshot_copy.h in one place.
class PlainCopy {
 public:
  PlainCopy(const StreamHeap& heap, PoolId id) : heap_(heap), pool_(heap.pool(id)), id_(id) {}

  bool slice() {
    left_ = kPerSlice;
    const block::PoolWalk walk(pool_);
    if (is_in_part_ && !resume()) return false;
    for (; number_ < walk.segments_end(); ++number_) {
      if (left_ == 0) return false;
      const block::SegmentIndex at = walk.segment(number_);
      if (at == block::kNoSegment) --left_;
      else if (!begin(at)) return false;
    }
    return true;
  }
  std::vector<SnapshotBlock> blocks() const {
    std::vector<SnapshotBlock> all = ended_;
    for (const auto& [block, shown] : part_) all.push_back(shown);
    return all;
  }

  std::vector<SnapshotSegment> segments;
  unsigned setbacks = 0, merges = 0, restarts = 0, gone = 0;

 private:
  struct Shown {
    block::BlockIndex block;
    SnapshotBlock shown;
  };
  bool begin(block::SegmentIndex at) {
    const bool is_first = left_ == kPerSlice;
    part_.clear();
    ordinal_ = record_of(pool_.view(at))->ordinal;
    reached_ = pool_.view(at).base;
    is_in_part_ = true;
    if (copy(at, pool_.view(at).first)) return true;
    if (is_first) return false;
    part_.clear();  // the next slice has room for more of it
    is_in_part_ = false;
    ++restarts;
    return false;
  }
  bool resume() {
    const block::PoolWalk walk(pool_);
    const block::SegmentIndex at = walk.segment(number_);
    if (at == block::kNoSegment || record_of(pool_.view(at))->ordinal != ordinal_ ||
        pool_.next(pool_.view(at).first) == block::kNoBlock) {
      ++setbacks;
      ++gone;
      part_.clear();
      is_in_part_ = false;
      return true;
    }
    while (part_.size() > 1 && !walk.is_at(part_.back().block, part_.back().shown.address)) {
      if (left_ == 0) {
        ++setbacks;
        return false;
      }
      part_.pop_back();
      --left_;
      ++merges;
    }
    block::BlockIndex from = pool_.view(at).first;
    if (part_.size() > 1) from = part_.back().block;
    part_.pop_back();
    if (copy(at, from)) {
      ++number_;
      return true;
    }
    const Address end = part_.back().shown.address + part_.back().shown.size;
    if (reached_ < end) reached_ = end;
    else ++setbacks;
    return false;
  }
  /// The segment's blocks from `from` on: two at least, the rest while the slice has steps.
  bool copy(block::SegmentIndex at, block::BlockIndex from) {
    std::vector<block::BlockIndex> rest;
    for (; from != block::kNoBlock; from = pool_.next(from)) rest.push_back(from);
    for (std::size_t i = 0; i < rest.size(); ++i) {
      if (i >= 2 && left_ == 0) return false;
      const SnapshotBlock shown = show(rest[i]);
      part_.push_back({rest[i], shown});
      const unsigned cost = 1 + uses_of(rest[i]);
      left_ = cost > left_ ? 0 : left_ - cost;
    }
    segments.push_back({pool_.view(at).base, pool_.view(at).size, heap_.stream.id, ordinal_,
                        static_cast<std::uint32_t>(ended_.size()),
                        static_cast<std::uint32_t>(part_.size()), id_});
    for (const auto& [block, shown] : part_) ended_.push_back(shown);
    part_.clear();
    is_in_part_ = false;
    return true;
  }
  unsigned uses_of(block::BlockIndex block) const {
    unsigned uses = 0;
    for (auto use = StreamHeap::first_use(pool_.view(block).user); use; use = use->sibling) ++uses;
    return uses;
  }
  SnapshotBlock show(block::BlockIndex block) const {
    const block::BlockView view = pool_.view(block);
    StreamId stream = heap_.stream.id;
    std::uint32_t others = 0;
    for (auto use = StreamHeap::first_use(view.user); use; use = use->sibling) {
      if (use->is_borrower) stream = use->user->stream.id;
      else ++others;
    }
    return {view.address, view.size, view.requested, stream, others, view.state};
  }

  const StreamHeap& heap_;
  const block::BlockPool& pool_;
  const PoolId id_;
  unsigned left_ = 0;
  std::uint32_t number_ = 1;
  bool is_in_part_ = false;
  std::uint64_t ordinal_ = 0;
  Address reached_;
  std::vector<SnapshotBlock> ended_;
  std::vector<Shown> part_;
};

void expect_same(const PlainCopy& plain, const Snapshot& snapshot) {
  const std::vector<SnapshotBlock> blocks = plain.blocks();
  ASSERT_EQ(snapshot.blocks.size(), blocks.size());
  for (std::size_t i = 0; i < blocks.size(); ++i)
    ASSERT_EQ(fields(snapshot.blocks[i]), fields(blocks[i])) << i;
  ASSERT_EQ(snapshot.segments.size(), plain.segments.size());
  for (std::size_t i = 0; i < plain.segments.size(); ++i) {
    const SnapshotSegment &a = snapshot.segments[i], &b = plain.segments[i];
    ASSERT_EQ(
        std::tuple(a.base, a.size, a.stream, a.ordinal, a.block_first, a.block_count, a.pool),
        std::tuple(b.base, b.size, b.stream, b.ordinal, b.block_first, b.block_count, b.pool));
  }
}

/// The blocks of each whole segment tile it; those of the one copied in part follow each other.
void expect_tiles(const Snapshot& snapshot) {
  std::size_t next = 0;
  for (const SnapshotSegment& segment : snapshot.segments) {
    ASSERT_EQ(segment.block_first, next);
    Address at = segment.base;
    for (; next < segment.block_first + segment.block_count; ++next) {
      ASSERT_EQ(snapshot.blocks[next].address, at);
      at = at + snapshot.blocks[next].size;
    }
    ASSERT_EQ(at, segment.base + segment.size);
  }
  for (++next; next < snapshot.blocks.size(); ++next)
    ASSERT_EQ(snapshot.blocks[next].address,
              snapshot.blocks[next - 1].address + snapshot.blocks[next - 1].size);
}

/// A heap whose blocks come and go.
class Churn {
 public:
  explicit Churn(std::uint64_t seed) : random_(seed), own_(parts.stream()) {
    for (int i = 0; i < 5; ++i) users_.push_back(parts.stream());
    busy_ = parts.allocate(512_B, own_);
    for (int i = 0; i < 150; ++i) busy_users_.push_back(parts.stream());
    parts.free(busy_);
    for (unsigned i = 0; i < 2 + seed % 5; ++i) fill();
    change(6);
    change(static_cast<unsigned>(random_()) % 3);
  }
  /// A segment's worth of blocks: few large ones, or many of a granule.
  void fill() {
    const bool is_fine = random_() % 3 != 0;
    const unsigned count = is_fine ? 100 + static_cast<unsigned>(random_() % 1500) : 3;
    for (unsigned i = 0; i < count; ++i) {
      const Address got = parts.allocate(is_fine ? 512_B : Bytes{1 + random_() % (1 << 20)}, own_);
      live_[got.value()] = got;
      if (random_() % 40 == 0) parts.record_use(got, users_[random_() % users_.size()]);
    }
  }
  void change(unsigned way) {
    const auto free_where = [&](auto&& chosen) {
      for (auto it = live_.begin(); it != live_.end();) {
        if (chosen()) {
          parts.free(it->second);
          it = live_.erase(it);
        } else {
          ++it;
        }
      }
    };
    unsigned nth = 0;
    switch (way) {
      case 0: break;
      case 1: fill(); break;
      case 2: free_where([&] { return random_() % 2 == 0; }); break;
      case 3: free_where([&] { return random_() % 16 != 0; }); break;
      case 4: free_where([&] { return ++nth % 400 != 0; }); break;  // long runs are merged
      case 5:  // all goes back; the numbers serve again
        free_where([] { return true; });
        EXPECT_TRUE(parts.gpu().drain_all().is_ok());
        EXPECT_TRUE(parts.cache().reclaimer().trim().is_ok());
        if (random_() % 2 == 0) fill();
        break;
      default:  // a block with more uses than a slice has steps
        if (live_.empty()) break;
        auto it = live_.begin();
        std::advance(it, random_() % live_.size());
        for (const Stream& user : busy_users_) parts.record_use(it->second, user);
    }
  }
  StreamHeap& heap() { return parts.heap(own_); }
  std::uint64_t random() { return random_(); }

  CacheParts parts{4_GiB};

 private:
  std::mt19937_64 random_;
  Stream own_;
  std::vector<Stream> users_, busy_users_;
  Address busy_;
  std::map<std::uint64_t, Address> live_;
};

TEST(SnapshotSlicesTest, EverySliceCopiesWhatAPlainCopyDoesWhateverChangesBetweenTwo) {
  unsigned merges = 0, restarts = 0, gone = 0, setbacks = 0, most_slices = 0;
  for (std::uint64_t seed = 1;
       seed <= (kIsWalked ? 10u : 150u) && !testing::Test::HasFatalFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Churn churn(seed);
    const PoolId id = seed % 10 == 0 ? PoolId::kLarge : PoolId::kSmall;
    Snapshot snapshot;
    PoolCopy copy(churn.heap(), id, &snapshot);
    PlainCopy plain(churn.heap(), id);
    bool is_done = false;
    for (unsigned slice = 1; !is_done && !testing::Test::HasFatalFailure(); ++slice) {
      most_slices = std::max(most_slices, slice);
      is_done = run_slice(copy, churn.heap());
      ASSERT_EQ(plain.slice(), is_done);
      expect_same(plain, snapshot);
      expect_tiles(snapshot);
      ASSERT_EQ(setbacks_of(copy), plain.setbacks);
      if (slice < 80 && churn.random() % 4 == 0)
        churn.change(static_cast<unsigned>(churn.random()) % 7);
    }
    merges += plain.merges, restarts += plain.restarts, gone += plain.gone;
    setbacks += plain.setbacks;
  }
  if (kIsWalked) return;
  EXPECT_GT(merges, 1000u);
  EXPECT_GT(restarts, 20u);
  EXPECT_GT(gone, 20u);
  EXPECT_GT(setbacks, 30u);
  EXPECT_GT(most_slices, 20u);
}

/// The copy has made `slices` slices of a segment when its blocks from `from` to before `to` merge.
unsigned setbacks_after_merge(unsigned slices, std::size_t from, std::size_t to, bool is_upward) {
  CacheParts parts(1_GiB);
  const Stream own = parts.stream();
  std::vector<Address> blocks;
  for (int i = 0; i < 1500; ++i) blocks.push_back(parts.allocate(512_B, own));
  Snapshot snapshot;
  PoolCopy copy(parts.heap(own), PoolId::kSmall, &snapshot);
  PlainCopy plain(parts.heap(own), PoolId::kSmall);
  for (bool is_done = false; !is_done && !testing::Test::HasFatalFailure();) {
    if (slices-- == 0)
      for (std::size_t i = from; i < to; ++i)
        parts.free(blocks[is_upward ? i : to - 1 - (i - from)]);
    is_done = run_slice(copy, parts.heap(own));
    EXPECT_EQ(plain.slice(), is_done);
    expect_same(plain, snapshot);
    expect_tiles(snapshot);
    EXPECT_EQ(setbacks_of(copy), plain.setbacks);
  }
  return plain.setbacks;
}

TEST(SnapshotSlicesTest, ACopyGoesBackToABlockThatIsStillThereHoweverManyHaveMerged) {
  std::set<unsigned> setbacks;
  for (const unsigned slices : {1u, 2u, 3u, 6u, 11u}) {
    for (const std::size_t from : {0u, 1u, 2u, 100u, 500u}) {
      if (kIsWalked && from != 2) continue;
      for (const std::size_t to : {3u, 128u, 129u, 130u, 256u, 629u, 1499u, 1500u}) {
        SCOPED_TRACE(testing::Message() << slices << " slices, " << from << " to " << to);
        for (const bool is_upward : {true, false})
          setbacks.insert(setbacks_after_merge(slices, from, std::max(from, to), is_upward));
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
  if (kIsWalked) return;
  EXPECT_GT(*setbacks.rbegin(), 8u);
  EXPECT_GT(setbacks.size(), 5u);
}

TEST(SnapshotSlicesTest, ASliceHasRoomForAllThatItCopiesAndAListThatGrowsGrowsByHalf) {
  Churn churn(1);
  const std::size_t room = kPerSlice + 2;
  const auto grown = [&](std::size_t filled, std::size_t capacity) {
    Snapshot snapshot;
    PoolCopy copy(churn.heap(), PoolId::kSmall, &snapshot);
    const auto fill = [&](auto& list) {
      list.reserve(capacity);
      list.resize(filled);
    };
    fill(snapshot.segments);
    fill(snapshot.blocks);
    fill(copy.*open(Copied{}));
    (copy.*open(ReserveSlice{}))();
    return std::array{snapshot.segments.capacity(), snapshot.blocks.capacity(),
                      (copy.*open(Copied{})).capacity()};
  };
  for (const std::size_t filled : {0u, 1u, 100u, 259u, 260u, 261u, 1000u, 3000u}) {
    const auto expect = [&](std::size_t before, std::size_t after) {
      EXPECT_EQ(grown(filled, before), (std::array{after, after, after})) << filled;
    };
    const std::size_t least = filled + room;
    expect(least, least);
    expect(least + 1, least + 1);
    expect(least - 1, std::max(least, (least - 1) * 3 / 2));
    expect(filled, std::max(least, filled * 3 / 2));
  }
}

/// A copy that stands in a long segment, whose memory has become another segment's; one more setback
/// is due, and slices after it.
Status run_after(unsigned setbacks) {
  CacheParts parts(1_GiB);
  const Stream own = parts.stream();
  std::vector<Address> blocks;
  for (int i = 0; i < 1000; ++i) blocks.push_back(parts.allocate(512_B, own));
  Snapshot snapshot;
  PoolCopy copy(parts.heap(own), PoolId::kSmall, &snapshot);
  EXPECT_FALSE(run_slice(copy, parts.heap(own)));
  for (const Address block : blocks) parts.free(block);
  EXPECT_TRUE(parts.gpu().drain_all().is_ok());
  EXPECT_TRUE(parts.cache().reclaimer().trim().is_ok());
  for (int i = 0; i < 1000; ++i) parts.allocate(512_B, own);
  setbacks_of(copy) = setbacks;
  const Status status = copy.run();
  EXPECT_EQ(setbacks_of(copy), setbacks + 1);
  if (status.is_ok()) {
    EXPECT_EQ(snapshot.blocks.size(), 1001u);
    expect_tiles(snapshot);
  }
  return status;
}

TEST(SnapshotSlicesTest, ACopyGivesUpAfterAThousandSetbacks) {
  EXPECT_TRUE(run_after(0).is_ok());
  EXPECT_TRUE(run_after(999).is_ok());
  EXPECT_EQ(run_after(1000).code(), Code::kBusy);
}

}  // namespace
}  // namespace ashlar::cache
