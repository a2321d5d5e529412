// The checkers of the map fire: each has a planted bug, and the real allocator passes the same ops.
//
// Planted: bugs in which bytes an allocation is given, in how they lie in their segment, in when
// they pass to a new owner (C1-C7; C14 and C18 as the map shows them; DEV-1..4 and 6).
// Imitated: an allocator that hands out live bytes, leaves gaps or unmerged blocks, forgets uses,
// rounds, cuts or fits by another policy than its configuration's.
// Not proved: that no other bug slips through a clause.
#include <algorithm>

#include "props/cache/planted_subjects.h"

namespace ashlar::props {
namespace {

using cache::DeviceStats;
using cache::OutOfMemory;
using cache::Snapshot;

TEST(Checkers, ASoundSubjectBehindTheWrapperPasses) {
  EXPECT_EQ(clause<Sound>("stream s1 d0\nalloc p0 1000 s0\nuse p0 s1\nfree p0\nalloc p1 1000 "
                          "s0\nfree p1\ntrim d0\n"),
            "");
}

struct GivesLiveBytes : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  Address first;
  Result<Address> allocate(Bytes size, const Stream& stream, OutOfMemory* account) override {
    if (!first.is_null()) return first;
    const Result<Address> got = inner_->allocate(size, stream, account);
    first = got.value_or(Address{});
    return got;
  }
};
TEST(Checkers, C2FiresWhenLiveBytesAreGivenOutAgain) {
  EXPECT_EQ(clause<GivesLiveBytes>("alloc p0 512 s0\nalloc p1 512 s0\n"), "C2");
}

struct GivesTooLittle : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  Result<Address> allocate(Bytes size, const Stream& stream, OutOfMemory* account) override {
    return inner_->allocate(Bytes{size.count() / 2}, stream, account);
  }
};
/// Says that each allocation lies `kBytes` behind where it is.
template <std::uint64_t kBytes>
struct ShiftsAddresses : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  Result<Address> allocate(Bytes size, const Stream& stream, OutOfMemory* account) override {
    const Result<Address> got = inner_->allocate(size, stream, account);
    return got.is_ok() ? Result<Address>(got.value() + Bytes{kBytes}) : got;
  }
  Result<spec::CacheInfo> info(Address address) override {
    return inner_->info(address - Bytes{kBytes});
  }
};
constexpr std::uint64_t kIntoABlock = 8;
constexpr std::uint64_t kOutOfTheSegments = std::uint64_t{1} << 50;
TEST(Checkers, C1FiresOnBytesThatAreTooFewOrMisalignedOrNotTheAllocators) {
  EXPECT_EQ(clause<GivesTooLittle>("alloc p0 4096 s0\n"), "C1");
  EXPECT_EQ(clause<ShiftsAddresses<kIntoABlock>>("alloc p0 4096 s0\n"), "C1");
  EXPECT_EQ(clause<ShiftsAddresses<kOutOfTheSegments>>("alloc p0 4096 s0\n"), "C1");
}

/// Changes the snapshot of a map with one live block in a segment, after so many true snapshots.
template <void (*kChange)(Snapshot*), unsigned kTrueSnapshots = 0>
struct LiesAboutTheMap : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  unsigned snapshots = 0;
  Status snapshot(DeviceId device, Snapshot* out) override {
    const Status got = inner_->snapshot(device, out);
    if (++snapshots > kTrueSnapshots && !out->blocks.empty() &&
        out->blocks[0].state == BlockState::kLive)
      kChange(out);
    return got;
  }
};
void leave_gap(Snapshot* map) { map->blocks[1].address = map->blocks[1].address + 512_B; }
void stop_short(Snapshot* map) { map->blocks[1].size -= 512_B; }
void split_free(Snapshot* map) {
  cache::SnapshotBlock rest = map->blocks[1];
  map->blocks[1].size = 512_B;
  rest.address = rest.address + 512_B;
  rest.size -= 512_B;
  map->blocks.push_back(rest);
  map->segments[0].block_count = 3;
}
void hide_segment(Snapshot* map) { map->segments.clear(); }
void resize_segment(Snapshot* map) { map->segments[0].size += 512_B; }
void leave_in_transfer(Snapshot* map) { map->blocks[1].state = BlockState::kInTransfer; }
void own_free_bytes(Snapshot* map) { map->blocks[1].state = BlockState::kLive; }
void drop_live(Snapshot* map) {
  map->blocks[0].state = BlockState::kFree;
  map->blocks[1].state = BlockState::kLive;
}
void change_size(Snapshot* map) {
  map->blocks[0].size += 512_B;
  map->blocks[1].address = map->blocks[1].address + 512_B;
  map->blocks[1].size -= 512_B;
}
void change_pool(Snapshot* map) { map->segments[0].pool = PoolId::kLarge; }
TEST(Checkers, TheWalkFiresOnEveryWrongMap) {
  const std::string ops = "alloc p0 512 s0\n";
  EXPECT_EQ(clause<LiesAboutTheMap<leave_gap>>(ops), "C3");
  EXPECT_EQ(clause<LiesAboutTheMap<stop_short>>(ops), "C3");
  EXPECT_EQ(clause<LiesAboutTheMap<split_free>>(ops), "C4");
  EXPECT_EQ(clause<LiesAboutTheMap<hide_segment>>(ops), "C14");
  EXPECT_EQ(clause<LiesAboutTheMap<resize_segment>>(ops), "C14");
  EXPECT_EQ(clause<LiesAboutTheMap<leave_in_transfer>>(ops), "C18");
  EXPECT_EQ(clause<LiesAboutTheMap<own_free_bytes>>(ops), "C2");
  EXPECT_EQ(clause<LiesAboutTheMap<drop_live>>(ops), "C2");
  EXPECT_EQ(clause<LiesAboutTheMap<change_size>>(ops), "C1");
  EXPECT_EQ(clause<LiesAboutTheMap<change_pool>>(ops), "DEV-2");
}

/// The same changes in a segment that no call has touched for a while: the incremental walker must
/// not skip it.
template <void (*kChange)(Snapshot*)>
using LiesAboutAnOldSegment = LiesAboutTheMap<kChange, 3>;
TEST(Checkers, TheWalkFiresOnChangesInASegmentThatNoCallTouched) {
  const std::string ops = "alloc p0 4MiB s0\nalloc p1 512 s0\nalloc p2 512 s0\nfree p1\n";
  EXPECT_EQ(dense_clause<LiesAboutAnOldSegment<leave_gap>>(ops), "C3");
  EXPECT_EQ(dense_clause<LiesAboutAnOldSegment<stop_short>>(ops), "C3");
  EXPECT_EQ(dense_clause<LiesAboutAnOldSegment<resize_segment>>(ops), "C14");
  EXPECT_EQ(dense_clause<LiesAboutAnOldSegment<leave_in_transfer>>(ops), "C18");
  EXPECT_EQ(dense_clause<LiesAboutAnOldSegment<own_free_bytes>>(ops), "C2");
  EXPECT_EQ(dense_clause<LiesAboutAnOldSegment<drop_live>>(ops), "C2");
  EXPECT_EQ(dense_clause<LiesAboutAnOldSegment<change_size>>(ops), "C1");
}

struct BreaksItsIndex : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  const char* validate() override { return "index and blocks disagree"; }
};
TEST(Checkers, C5FiresWhenTheSubjectsOwnWalkFails) {
  EXPECT_EQ(clause<BreaksItsIndex>("alloc p0 512 s0\n"), "C5");
}

struct ForgetsUses : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  Status record_use(Address, const Stream&) override { return Status::ok(); }
  Status free_on(Address address, const Stream&) override { return inner_->free(address); }
};
struct ForgetsUsesQuietly : ForgetsUses {
  using ForgetsUses::ForgetsUses;
  std::uint32_t uses = 0;
  Status record_use(Address, const Stream&) override { return ++uses, Status::ok(); }
  Status snapshot(DeviceId device, Snapshot* out) override {
    const Status got = inner_->snapshot(device, out);
    for (cache::SnapshotBlock& block : out->blocks)
      block.other_uses = block.requested == 777_B ? uses : 0;
    return got;
  }
};
TEST(Checkers, C7FiresOnAForgottenUseAndC6WhenItsBytesAreReused) {
  EXPECT_EQ(clause<ForgetsUses>("stream s1 d0\nalloc p0 512 s0\nuse p0 s1\n"), "C7");
  const std::string reuse =
      "stream s1 d0\nalloc p0 777 s0\ndrain d0\nkernel s1 p0 rw\nuse p0 s1\nfree p0\nalloc p1 512 "
      "s0\n";
  EXPECT_EQ(clause<ForgetsUsesQuietly>(reuse), "C6");
  EXPECT_EQ(clause<ForgetsUses>("stream s1 d0\nalloc p0 512 s0\ndrain d0\nkernel s1 p0 rw\nfree-on "
                                "p0 s1\nalloc p1 512 s0\n"),
            "C6");
}

struct InventsUses : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  Stream other;
  Result<Address> allocate(Bytes size, const Stream& stream, OutOfMemory* account) override {
    if (size.count() == 777) other = stream;
    return inner_->allocate(size, stream, account);
  }
  Status free(Address address) override { return inner_->free_on(address, other); }
  Status snapshot(DeviceId device, Snapshot* out) override {
    const Status got = inner_->snapshot(device, out);
    for (cache::SnapshotBlock& block : out->blocks) block.other_uses = 0;
    return got;
  }
};
TEST(Checkers, Dev6FiresOnABlockThatWaitsForNothing) {
  EXPECT_EQ(clause<InventsUses>("stream s1 d0\nalloc p0 512 s0\nalloc p1 777 s1\nfree p0\n"),
            "DEV-6");
}

TEST(Checkers, TheRoundingRowsFireWhenAnotherPolicyIsAtWork) {
  EXPECT_EQ(clause<Sound>("alloc p0 512 s0\n"), "");
  EXPECT_EQ(clause<ClaimsDefaults>("alloc p0 512 s0\n", "small_segment_mb:4"), "DEV-2");
  EXPECT_EQ(clause<ClaimsDefaults>("alloc p0 600 s0\n", "granule:128"), "DEV-1");
  EXPECT_EQ(clause<ClaimsDefaults>("alloc p0 12MiB s0\nalloc p2 10MiB s0\nfree p0\n",
                                   "round_segment_mb:16"),
            "DEV-2");
  EXPECT_EQ(clause<ClaimsDefaults>("alloc p0 300000000 s0\n", "max_split_size_mb:21"), "DEV-4");
}

/// Serves 777 bytes with the second best fit, and hides from the statistics that it took the best
/// one meanwhile and gave it back.
struct GivesTheNextFit : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  /// what the hidden allocations added to `increased`, and their frees to `decreased`
  DeviceStats detour;
  std::uint64_t peaks[spec::kFigures][cache::kStatPools] = {};

  Result<Address> allocate(Bytes size, const Stream& stream, OutOfMemory* account) override {
    if (size.count() != 777) return inner_->allocate(size, stream, account);
    DeviceStats before, after;
    EXPECT_TRUE(inner_->stats(DeviceId{0}, &before).is_ok());
    const Result<Address> best = inner_->allocate(size, stream, account);
    EXPECT_TRUE(inner_->free(best.value()).is_ok());
    EXPECT_TRUE(inner_->stats(DeviceId{0}, &after).is_ok());
    for_each_stat([&](unsigned figure, unsigned pool) {
      const std::uint64_t once = spec::figure_of(after, figure)[pool].increased -
                                 spec::figure_of(before, figure)[pool].increased;
      spec::figure_of(detour, figure)[pool].increased += 2 * once;
    });
    const Result<Address> again = inner_->allocate(size, stream, account);
    const Result<Address> next = inner_->allocate(size, stream, account);
    EXPECT_TRUE(inner_->free(again.value()).is_ok());
    return next;
  }
  Status stats(DeviceId device, DeviceStats* out) override {
    const Status got = ForwardingSubject::stats(device, out);
    for_each_stat([&](unsigned figure, unsigned pool) {
      cache::Stat& stat = spec::figure_of(*out, figure)[pool];
      const std::uint64_t hidden = spec::figure_of(detour, figure)[pool].increased;
      stat.increased -= hidden;
      stat.decreased -= hidden;
      stat.peak = peaks[figure][pool] = std::max(peaks[figure][pool], stat.current);
    });
    return got;
  }
  template <class F>
  static void for_each_stat(F&& f) {
    for (unsigned figure = 0; figure < spec::kFigures; ++figure) {
      for (unsigned pool = 0; pool < cache::kStatPools; ++pool) f(figure, pool);
    }
  }
};
TEST(Checkers, Dev3FiresOnAFitThatIsNotTheBest) {
  EXPECT_EQ(dense_clause<GivesTheNextFit>(
                "alloc p0 1024 s0\nalloc p1 512 s0\nfree p0\nalloc p2 777 s0\n"),
            "DEV-3");
  EXPECT_EQ(dense_clause<GivesTheNextFit>("alloc p2 600 s0\n"), "");
}

TEST(Checkers, C10FiresOnAFitThatIsTheLowestInsteadOfTheOldest) {
  // Two equal free blocks, where p4 and p7 were. The machine gives the lowest range: the segment of
  // p7, which is the younger, lies below that of p4.
  spec::CacheLockstep::Options options = broken<GivesTheNextFit>();
  options.machine.adversarial = false;
  EXPECT_EQ(failing_clause_of_both(options,
                                   "alloc p0 1MiB s0\nalloc p1 1MiB s0\n"
                                   "alloc p2 1MiB s0\nalloc p3 1047552 s0\nalloc p4 1024 s0\n"
                                   "free p0\nfree p1\ntrim d0\n"
                                   "alloc p5 1MiB s0\nalloc p6 1047552 s0\nalloc p7 1024 s0\n"
                                   "free p4\nfree p7\nalloc p8 777 s0\n"),
            "DEV-3");
}

}  // namespace
}  // namespace ashlar::props
