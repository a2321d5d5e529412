// Every checker of the caching allocator's model fires: each clause has a planted bug, and the real
// allocator passes.
// Imitated: an allocator that hands out live bytes, forgets uses, miscounts, leaks, gives up too
// early, polls too often.
// Not proved: that no other bug slips through a clause.
#include <algorithm>

#include <gtest/gtest.h>

#include "props/cache/planted_run.h"

namespace ashlar::props {
namespace {

using cache::DeviceStats;
using cache::OutOfMemory;
using cache::Snapshot;

struct Sound : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
};

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
struct GivesMisaligned : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  Result<Address> allocate(Bytes size, const Stream& stream, OutOfMemory* account) override {
    const Result<Address> got = inner_->allocate(size, stream, account);
    return got.is_ok() ? Result<Address>(got.value() + Bytes{8}) : got;
  }
  Result<spec::CacheInfo> info(Address address) override {
    return inner_->info(address - Bytes{8});
  }
};
struct GivesForeignBytes : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  Result<Address> allocate(Bytes size, const Stream& stream, OutOfMemory* account) override {
    const Result<Address> got = inner_->allocate(size, stream, account);
    return got.is_ok() ? Result<Address>(got.value() + Bytes{std::uint64_t{1} << 50}) : got;
  }
  Result<spec::CacheInfo> info(Address address) override {
    return inner_->info(address - Bytes{std::uint64_t{1} << 50});
  }
};
TEST(Checkers, C1FiresOnBytesThatAreTooFewOrMisalignedOrNotTheAllocators) {
  EXPECT_EQ(clause<GivesTooLittle>("alloc p0 4096 s0\n"), "C1");
  EXPECT_EQ(clause<GivesMisaligned>("alloc p0 4096 s0\n"), "C1");
  EXPECT_EQ(clause<GivesForeignBytes>("alloc p0 4096 s0\n"), "C1");
}

/// Changes the snapshot of a map with one live block in a segment.
template <void (*kChange)(Snapshot*)>
struct LiesAboutTheMap : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  Status snapshot(DeviceId device, Snapshot* out) override {
    const Status got = inner_->snapshot(device, out);
    if (!out->blocks.empty() && out->blocks[0].state == BlockState::kLive) kChange(out);
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
struct LiesAboutAnOldSegment : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  unsigned snapshots = 0;
  Status snapshot(DeviceId device, Snapshot* out) override {
    const Status got = inner_->snapshot(device, out);
    if (++snapshots > 3 && !out->blocks.empty() && out->blocks[0].state == BlockState::kLive)
      kChange(out);
    return got;
  }
};
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

struct NeverHasMemory : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  std::uint64_t ooms = 0;
  std::vector<std::function<void(const OutOfMemory&)>> observers;
  Result<Address> allocate(Bytes size, const Stream& stream, OutOfMemory* account) override {
    if (size.count() != 777) return inner_->allocate(size, stream, account);
    *account = {};
    account->requested = 777_B;
    account->rounded = 1024_B;
    account->segment = 2_MiB;
    account->reserved = account->allocated = 2_MiB;  // where it is right to have none
    account->limit = Bytes::max();
    ++ooms;
    for (const auto& observer : observers) observer(*account);
    return Status{Code::kOutOfMemory, "planted"};
  }
  void add_out_of_memory_observer(std::function<void(const OutOfMemory&)> observer) override {
    observers.push_back(observer);
    inner_->add_out_of_memory_observer(std::move(observer));
  }
  Status stats(DeviceId device, DeviceStats* out) override {
    const Status got = ForwardingSubject::stats(device, out);
    out->ooms += ooms;
    out->alloc_retries += ooms;
    return got;
  }
};
TEST(Checkers, C12FiresOnAnOutOfMemoryWithABlockOrTheDeviceFreeOrAFreePending) {
  EXPECT_EQ(clause<NeverHasMemory>("alloc p0 512 s0\nalloc p1 777 s0\n"), "C12");
  EXPECT_EQ(clause<NeverHasMemory>("alloc p1 777 s0\n"), "C12");
  EXPECT_EQ(clause<NeverHasMemory>(
                "device d0 2MiB\nalloc p0 1MiB s0\nalloc p2 1MiB s0\nalloc p1 777 s0\n"),
            "");  // rightly
  EXPECT_EQ(clause<NeverHasMemory>(
                "device d0 2MiB\nstream s1 d0\nalloc p0 1MiB s0\nalloc p2 1MiB s0\nkernel s1 p0 r\n"
                "free p0\nalloc p1 777 s0\n"),
            "C12");  // a wait would do
  EXPECT_EQ(clause<NeverHasMemory>(
                "device d0 2MiB\nstream s1 d0\nalloc p0 512 s1\nfree p0\nalloc p1 777 s0\n"),
            "C12");  // another heap's
}

struct LeaksASegment : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  Status trim(DeviceId device) override {
    static_cast<void>(device_for(device::CallKind::kSegmentAlloc).segment_alloc(2_MiB));
    return inner_->trim(device);
  }
};
struct LeaksAnEvent : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  Status trim(DeviceId device) override {
    static_cast<void>(device_for(device::CallKind::kEventCreate).event_create());
    return inner_->trim(device);
  }
};
TEST(Checkers, C14FiresOnLeakedSegmentsAndEvents) {
  EXPECT_EQ(clause<LeaksASegment>("alloc p0 512 s0\ntrim d0\n"), "C14");
  EXPECT_EQ(clause<LeaksAnEvent>("alloc p0 512 s0\ntrim d0\n"), "C14");
}

unsigned miscounted_figure = 0;
unsigned miscounted_field = 0;
unsigned miscounted_pool = 0;
struct Miscounts : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  Status stats(DeviceId device, DeviceStats* out) override {
    const Status got = inner_->stats(device, out);
    cache::Stat& stat = spec::figure_of(*out, miscounted_figure)[miscounted_pool];
    std::uint64_t* const fields[] = {&stat.current, &stat.peak, &stat.increased, &stat.decreased};
    *fields[miscounted_field] += 1;
    return got;
  }
};
TEST(Checkers, C15FiresOnEveryFieldOfEveryFigureOfEveryPool) {
  for (miscounted_figure = 0; miscounted_figure < spec::kFigures; ++miscounted_figure) {
    for (miscounted_field = 0; miscounted_field < 4; ++miscounted_field) {
      for (miscounted_pool = 0; miscounted_pool < cache::kStatPools; ++miscounted_pool) {
        // Between two walks, a peak may be too high by what the calls between can have added.
        const bool is_peak = miscounted_field == 1;
        const std::string ops = "alloc p0 512 s0\nalloc p1 2MiB s0\nfree p0\n";
        EXPECT_EQ(is_peak ? dense_clause<Miscounts>(ops) : clause<Miscounts>(ops), "C15")
            << miscounted_figure << " field " << miscounted_field << " pool " << miscounted_pool;
      }
    }
  }
}
/// Keeps a part of the totals at their first reset.
template <void (*kKeep)(const DeviceStats& before, DeviceStats* after)>
struct ResetsInPart : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  DeviceStats before;
  bool has_reset = false;
  Status reset_accumulated_stats(DeviceId device) override {
    if (!has_reset) static_cast<void>(inner_->stats(device, &before));
    has_reset = true;
    return inner_->reset_accumulated_stats(device);
  }
  Status stats(DeviceId device, DeviceStats* out) override {
    const Status got = inner_->stats(device, out);
    if (has_reset) kKeep(before, out);
    return got;
  }
};
template <unsigned kFigure, unsigned kPool, std::uint64_t cache::Stat::*kField>
void keep_total(const DeviceStats& before, DeviceStats* after) {
  spec::figure_of(*after, kFigure)[kPool].*kField +=
      spec::figure_of(before, kFigure)[kPool].*kField;
}
template <std::uint64_t DeviceStats::*kCounter>
void keep_counter(const DeviceStats& before, DeviceStats* after) {
  after->*kCounter += before.*kCounter;
}
void keep_calls(const DeviceStats& before, DeviceStats* after) {
  for (unsigned kind = 0; kind < device::kCallKinds; ++kind)
    after->device_calls[kind] += before.device_calls[kind];
}
template <cache::Stat DeviceStats::*kStat, std::uint64_t cache::Stat::*kField>
void keep_oversize(const DeviceStats& before, DeviceStats* after) {
  (after->*kStat).*kField += (before.*kStat).*kField;
}
template <unsigned kFigure>
void expect_totals_judged(const std::string& ops) {
  using cache::Stat;
  EXPECT_EQ((clause<ResetsInPart<keep_total<kFigure, 0, &Stat::increased>>>(ops)), "C15");
  EXPECT_EQ((clause<ResetsInPart<keep_total<kFigure, 1, &Stat::decreased>>>(ops)), "C15");
  EXPECT_EQ((clause<ResetsInPart<keep_total<kFigure, 2, &Stat::increased>>>(ops)), "C15");
  if constexpr (kFigure + 1 < spec::kFigures) expect_totals_judged<kFigure + 1>(ops);
}
TEST(Checkers, C15FiresOnEveryTotalThatAResetForgets) {
  // Every total of both pools has risen and fallen, and something is held, when they are reset.
  const std::string used =
      "conf max_split_size_mb:21\ndevice d0 128MiB\nstream s1 d0\n"
      "alloc p0 512 s0\nalloc p1 512 s0\nalloc p2 512 s0\nfree p0\nalloc p0 256 s0\nfree p1\n"
      "alloc p3 2MiB s0\nalloc p4 2MiB s0\nalloc p5 2MiB s0\nfree p3\nalloc p3 1500KiB s0\nfree "
      "p4\nalloc p6 40MiB s0\nalloc p7 40MiB s0\nfree p6\nkernel s1 p7 r\nuse p7 s1\nfree p7\n"
      "alloc p8 100MiB s0\nalloc p10 200MiB s0\nfree p8\nfree p0\nfree p2\ntrim d0\nalloc p9 512 "
      "s0\n";
  const std::string ops = used + "reset-totals d0\nalloc p11 512 s0\nfree p9\nreset-totals d0\n";
  EXPECT_EQ(clause<Sound>(ops), "");
  expect_totals_judged<0>(ops);
  EXPECT_EQ(clause<ResetsInPart<keep_counter<&DeviceStats::ooms>>>(ops), "C15");
  EXPECT_EQ(clause<ResetsInPart<keep_counter<&DeviceStats::alloc_retries>>>(ops), "C15");
  EXPECT_EQ(clause<ResetsInPart<keep_counter<&DeviceStats::waits>>>(ops), "C15");
  EXPECT_EQ(clause<ResetsInPart<keep_calls>>(ops), "C15");
  EXPECT_EQ(
      (clause<
          ResetsInPart<keep_oversize<&DeviceStats::oversize_allocations, &cache::Stat::increased>>>(
          ops)),
      "C15");
  EXPECT_EQ(
      (clause<
          ResetsInPart<keep_oversize<&DeviceStats::oversize_segments, &cache::Stat::decreased>>>(
          ops)),
      "C15");
}
template <std::uint64_t DeviceStats::*kCounter>
struct MiscountsA : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  Status stats(DeviceId device, DeviceStats* out) override {
    const Status got = inner_->stats(device, out);
    out->*kCounter += 1;
    return got;
  }
};
struct MiscountsCalls : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  Status stats(DeviceId device, DeviceStats* out) override {
    const Status got = inner_->stats(device, out);
    out->device_calls[static_cast<unsigned>(device::CallKind::kEventQuery)] += 1;
    return got;
  }
};
TEST(Checkers, C15FiresOnMiscountedWaitsOutOfMemoriesAndCalls) {
  EXPECT_EQ(clause<MiscountsA<&DeviceStats::waits>>("alloc p0 512 s0\n"), "C15");
  EXPECT_EQ(clause<MiscountsA<&DeviceStats::ooms>>("alloc p0 512 s0\n"), "C15");
  EXPECT_EQ(clause<MiscountsCalls>("alloc p0 512 s0\n"), "C15");
}
template <std::uint64_t DeviceStats::*kCounter>
struct ForgetsA : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  Status stats(DeviceId device, DeviceStats* out) override {
    const Status got = ForwardingSubject::stats(device, out);
    out->*kCounter -= out->*kCounter != 0;
    return got;
  }
};
/// Counts one too many, from the first request for 777 bytes on.
template <std::uint64_t DeviceStats::*kCounter>
struct InventsA : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  bool has_begun = false;
  Result<Address> allocate(Bytes size, const Stream& stream, OutOfMemory* account) override {
    has_begun = has_begun || size.count() == 777;
    return inner_->allocate(size, stream, account);
  }
  Status stats(DeviceId device, DeviceStats* out) override {
    const Status got = ForwardingSubject::stats(device, out);
    out->*kCounter += has_begun;
    return got;
  }
};
TEST(Checkers, C15FiresOnForgottenAndInventedStealsAndRetries) {
  using Forgets = ForgetsA<&DeviceStats::steals>;
  using Invents = InventsA<&DeviceStats::steals>;
  const std::string lent =
      "stream s1 d0\nalloc p0 512 s0\nalloc p1 512 s0\nfree p0\nstep s0 9\nalloc p2 512 s1\n";
  const std::string adopted =
      "device d0 22MiB\nstream s1 d0\nalloc p0 20MiB s0\nfree p0\nstep s0 9\nalloc p1 20MiB s1\n";
  for (const std::string& ops : {lent, adopted}) {
    EXPECT_EQ(dense_clause<Sound>(ops), "");
    EXPECT_EQ(dense_clause<Forgets>(ops), "C15");
    EXPECT_EQ(dense_clause<Invents>(ops + "alloc p9 777 s0\n"), "C15");
  }
  EXPECT_EQ(clause<Invents>("conf reuse:own\nalloc p9 777 s0\n"), "C15");
  using ForgetsRetry = ForgetsA<&DeviceStats::alloc_retries>;
  using InventsRetry = InventsA<&DeviceStats::alloc_retries>;
  const std::string refused = "device d0 20MiB\nalloc p0 512 s0\nfree p0\nalloc p1 20MiB s0\n";
  const std::string over_limit = "limit d0 20MiB\nalloc p0 512 s0\nfree p0\nalloc p1 20MiB s0\n";
  for (const std::string& ops : {refused, over_limit}) {
    EXPECT_EQ(clause<ForgetsRetry>(ops), "C15");
    EXPECT_EQ(clause<InventsRetry>(ops + "free p1\nalloc p9 777 s0\n"), "C15");
  }
  EXPECT_EQ(clause<InventsRetry>("alloc p9 777 s0\n"), "C15");
}

struct ForgivesMisuse : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  Status free(Address address) override {
    return static_cast<void>(inner_->free(address)), Status::ok();
  }
};
struct ConfusesErrors : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  Status free(Address address) override {
    return inner_->free(address).is_ok() ? Status::ok() : Status{Code::kInvalidArgument, "planted"};
  }
  Result<Address> allocate(Bytes size, const Stream& stream, OutOfMemory* account) override {
    const Result<Address> got = inner_->allocate(size, stream, account);
    return got.code() == Code::kSizeOverflow ? Result<Address>(Code::kOutOfMemory, "planted") : got;
  }
};
TEST(Checkers, C16FiresOnMisuseForgivenOrMisnamed) {
  for (const char* misuse :
       {"free-stale p0\n", "free-foreign 3\n", "alloc p1 4096 s0\nfree-interior p1 512\n"}) {
    const std::string ops = std::string("alloc p0 4096 s0\nfree p0\n") + misuse;
    EXPECT_EQ(clause<ForgivesMisuse>(ops), "C16") << misuse;
    EXPECT_EQ(clause<ConfusesErrors>(ops), "C16") << misuse;
  }
  EXPECT_EQ(clause<ConfusesErrors>("alloc p0 18446744073709551615 s0\n"), "C16");
  EXPECT_EQ(clause<ConfusesErrors>("alloc p0 1152921504606846977 s0\n"), "C16");
}

std::uint64_t planted_refusals = 0;  ///< what the host is said to have refused
/// Answers requests for 777 bytes as if the host had no memory for them.
template <bool kIsRefused, bool kFlushes>
struct BlamesTheHost : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  Result<Address> allocate(Bytes size, const Stream& stream, OutOfMemory* account) override {
    if (size.count() != 777) return inner_->allocate(size, stream, account);
    planted_refusals += kIsRefused;
    EXPECT_TRUE(!kFlushes || inner_->trim(DeviceId{0}).is_ok());
    return Status{Code::kHostOutOfMemory, "planted"};
  }
};
template <class Broken>
std::string clause_with_refusals(const std::string& ops) {
  spec::CacheLockstep::Options options = broken<Broken>();
  options.host_refusals = [] { return planted_refusals; };
  return failing_clause_of_both(options, ops);
}
TEST(Checkers, C16FiresWhenTheHostIsBlamedForNothing) {
  EXPECT_EQ((clause_with_refusals<BlamesTheHost<false, false>>("alloc p1 777 s0\n")), "C16");
  EXPECT_EQ((clause_with_refusals<BlamesTheHost<true, false>>("alloc p1 777 s0\n")), "");
}
TEST(Checkers, C13FiresWhenTheHostsShortageGivesTheDevicesMemoryBack) {
  const std::string cached = "alloc p0 20MiB s0\nfree p0\ndrain d0\nalloc p1 777 s0\n";
  EXPECT_EQ((clause_with_refusals<BlamesTheHost<true, false>>(cached)), "");
  EXPECT_EQ((clause_with_refusals<BlamesTheHost<true, true>>(cached)), "C13");
}

struct AsksWhenRefusing : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  Status free(Address address) override {
    const Status got = inner_->free(address);
    if (!got.is_ok()) static_cast<void>(device_for(device::CallKind::kMemoryInfo).memory_info());
    return got;
  }
};
TEST(Checkers, C13FiresWhenARefusedCallDoesSomething) {
  EXPECT_EQ(clause<AsksWhenRefusing>("alloc p0 512 s0\nfree p0\nfree-stale p0\n"), "C13");
  // Nor may it make a device call that fails.
  EXPECT_EQ(
      clause<AsksWhenRefusing>("alloc p0 512 s0\nfree p0\nfail memory-info 1 on\nfree-stale p0\n"),
      "C13");
}

template <unsigned kPolls, device::CallKind kKind>
struct TalksOnEveryAllocation : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  EventHandle event;
  bool has_event = false;
  Result<Address> allocate(Bytes size, const Stream& stream, OutOfMemory* account) override {
    if (!has_event && kKind == device::CallKind::kEventQuery)
      event = device_for(device::CallKind::kEventCreate).event_create().value();
    for (unsigned i = 0; i < kPolls && has_event; ++i) {
      if (kKind == device::CallKind::kEventQuery)
        static_cast<void>(device_for(kKind).event_query(event));
      else static_cast<void>(device_for(kKind).memory_info());
    }
    has_event = true;
    return inner_->allocate(size, stream, account);
  }
};
TEST(Checkers, C17FiresOnAHitThatPollsTooOftenOrAsksTheDeviceAndOnAMissThatAsksTooOften) {
  const std::string hit = "alloc p0 512 s0\nalloc p1 512 s0\n";
  EXPECT_EQ((clause<TalksOnEveryAllocation<17, device::CallKind::kEventQuery>>(hit)), "C17");
  // A call is known to be a hit only if the map before it is known.
  EXPECT_EQ((dense_clause<TalksOnEveryAllocation<1, device::CallKind::kMemoryInfo>>(hit)), "C17");
  EXPECT_EQ((clause<TalksOnEveryAllocation<100, device::CallKind::kMemoryInfo>>(
                "alloc p0 512 s0\nalloc p1 2MiB s0\n")),
            "C17");
}
TEST(Checkers, C9FiresOnAPollDuringACapture) {
  EXPECT_EQ((clause<TalksOnEveryAllocation<1, device::CallKind::kEventQuery>>(
                "alloc p0 512 s0\ncapture-begin s0 relaxed\nalloc p1 512 s0\n")),
            "C9");
}

struct ForgetsToTrim : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  Status trim(DeviceId) override { return Status::ok(); }
};
TEST(Checkers, Dev19FiresOnATrimThatLeavesAnIdleSegment) {
  EXPECT_EQ(clause<ForgetsToTrim>("alloc p0 512 s0\nfree p0\ntrim d0\n"), "DEV-19");
  EXPECT_EQ(clause<ForgetsToTrim>("alloc p0 512 s0\ncapture-begin s0 global\ntrim d0\n"), "C16");
}

/// Misstates the largest free block of some streams.
template <int kBytes>
struct MisstatesTheLargest : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  Result<Bytes> largest_free_block(const Stream& stream) override {
    const Result<Bytes> got = inner_->largest_free_block(stream);
    return Bytes{got.value().count() + static_cast<std::uint64_t>(std::int64_t{kBytes})};
  }
};
/// Answers for the device's first stream, whichever was asked about.
struct AsksForTheFirstStream : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  Stream first;
  Result<Address> allocate(Bytes size, const Stream& stream, OutOfMemory* account) override {
    if (!first.id.value()) first = stream;
    return inner_->allocate(size, stream, account);
  }
  Result<Bytes> largest_free_block(const Stream&) override {
    return inner_->largest_free_block(first);
  }
};
struct CompletesWhenAsked : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  Result<Bytes> largest_free_block(const Stream& stream) override {
    static_cast<void>(device_for(device::CallKind::kSynchronize).synchronize_for(1));
    return inner_->largest_free_block(stream);
  }
};
TEST(Checkers, Dev19FiresOnAMisstatedLargestFreeBlock) {
  const std::string ops = "alloc p0 512 s0\nalloc p1 4MiB s0\nfree p1\nlargest s0\n";
  EXPECT_EQ(clause<Sound>(ops), "");
  EXPECT_EQ(clause<MisstatesTheLargest<512>>(ops), "DEV-19");
  EXPECT_EQ(clause<MisstatesTheLargest<-512>>(ops), "DEV-19");
  const std::string own = "conf reuse:own\nstream s1 d0\n" + ops + "alloc p2 512 s1\nlargest s1\n";
  EXPECT_EQ(clause<Sound>(own), "");
  EXPECT_EQ(clause<AsksForTheFirstStream>(own), "DEV-19");
  EXPECT_EQ(clause<CompletesWhenAsked>(ops), "C13");
}

struct IgnoresTheLimit : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  Status set_memory_limit(DeviceId, Bytes) override { return Status::ok(); }
};
TEST(Checkers, Dev12FiresOnGrowthOverTheLimit) {
  EXPECT_EQ(clause<IgnoresTheLimit>("limit d0 1MiB\nalloc p0 512 s0\n"), "DEV-12");
}

struct TellsNoObserver : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  void add_out_of_memory_observer(std::function<void(const OutOfMemory&)>) override {}
};
struct MisstatesTheAccount : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  Result<Address> allocate(Bytes size, const Stream& stream, OutOfMemory* account) override {
    const Result<Address> got = inner_->allocate(size, stream, account);
    account->rounded += 512_B;
    return got;
  }
};
TEST(Checkers, Dev13AndDev14FireOnAnUntoldOrMisstatedOutOfMemory) {
  EXPECT_EQ(clause<TellsNoObserver>("limit d0 1MiB\nalloc p0 512 s0\n"), "DEV-13");
  EXPECT_EQ(clause<MisstatesTheAccount>("limit d0 1MiB\nalloc p0 512 s0\n"), "DEV-14");
}

/// Changes the account of each out-of-memory.
template <void (*kChange)(OutOfMemory*)>
struct ChangesTheAccount : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  Result<Address> allocate(Bytes size, const Stream& stream, OutOfMemory* account) override {
    const Result<Address> got = inner_->allocate(size, stream, account);
    if (got.code() == Code::kOutOfMemory) kChange(account);
    return got;
  }
};
template <Bytes cache::HeldMemory::*kFigure>
void add_to(OutOfMemory* account) {
  account->*kFigure += 512_B;
}
void forget_advice(OutOfMemory* account) { account->advice = 0; }
void say_reachable_for_free(OutOfMemory* account) {
  account->largest_free = account->largest_reachable;
}
void say_free_for_reachable(OutOfMemory* account) {
  account->largest_reachable = account->largest_free;
}
template <cache::Advice kAdvice>
void flip(OutOfMemory* account) {
  account->advice =
      static_cast<std::uint16_t>(account->advice ^ 1u << static_cast<unsigned>(kAdvice));
}

/// Another stream's 56 MiB are free, in one block.
const std::string kFreeElsewhere =
    "device d0 64MiB\nstream s1 d0\nalloc p0 60MiB s0\nfree p0\nalloc p1 4MiB s0\n";
/// Four free pieces of 5 MiB between four live ones.
const std::string kInPieces =
    "device d0 40MiB\n"
    "alloc p0 5MiB s0\nalloc p1 5MiB s0\nalloc p2 5MiB s0\nalloc p3 5MiB s0\n"
    "alloc p4 5MiB s0\nalloc p5 5MiB s0\nalloc p6 5MiB s0\nalloc p7 5MiB s0\n"
    "free p0\nfree p2\nfree p4\nfree p6\nalloc p8 9MiB s0\n";

TEST(Checkers, Dev14FiresOnEveryFigureThatIsNotTheSnapshots) {
  using cache::HeldMemory;
  const std::string ops = "conf reuse:own\n" + kFreeElsewhere + "alloc p2 40MiB s1\n";
  EXPECT_EQ(clause<ChangesTheAccount<add_to<&HeldMemory::reserved>>>(ops), "DEV-14");
  EXPECT_EQ(clause<ChangesTheAccount<add_to<&HeldMemory::allocated>>>(ops), "DEV-14");
  EXPECT_EQ(clause<ChangesTheAccount<add_to<&HeldMemory::pending>>>(ops), "DEV-14");
  EXPECT_EQ(clause<ChangesTheAccount<add_to<&HeldMemory::in_transfer>>>(ops), "DEV-14");
  EXPECT_EQ(clause<ChangesTheAccount<add_to<&HeldMemory::free_cached>>>(ops), "DEV-14");
  EXPECT_EQ(clause<ChangesTheAccount<add_to<&HeldMemory::free_splits>>>(ops), "DEV-14");
  EXPECT_EQ(clause<ChangesTheAccount<add_to<&HeldMemory::largest_free>>>(ops), "DEV-14");
  EXPECT_EQ(clause<ChangesTheAccount<add_to<&HeldMemory::largest_reachable>>>(ops), "DEV-14");
  EXPECT_EQ(clause<ChangesTheAccount<add_to<&HeldMemory::fits_elsewhere>>>(ops), "DEV-14");
}

TEST(Checkers, Dev14FiresWhenOneOfTheTwoLargestBlocksStandsForTheOther) {
  const std::string own = "conf reuse:own\n" + kFreeElsewhere + "alloc p2 40MiB s1\n";
  EXPECT_EQ(clause<ChangesTheAccount<say_reachable_for_free>>(own), "DEV-14");
  EXPECT_EQ(clause<ChangesTheAccount<say_free_for_reachable>>(own), "DEV-14");
  const std::string capture =
      kFreeElsewhere + "stream s2 d0\ncapture-begin s2 relaxed\nalloc p2 40MiB s1\n";
  EXPECT_EQ(clause<ChangesTheAccount<say_reachable_for_free>>(capture), "DEV-14");
  EXPECT_EQ(clause<ChangesTheAccount<say_free_for_reachable>>(capture), "DEV-14");
}

TEST(Checkers, Dev14FiresOnAdviceThatIsForgottenOrInvented) {
  const std::string asks = "alloc p2 40MiB s1\n";
  const std::string unfinished = "alloc p3 56MiB s0\nkernel s0 p3 w\nfree p3\n";
  for (const std::string& ops : {
           "conf reuse:own\n" + kFreeElsewhere + asks,
           "conf wait_ms:0\n" + kFreeElsewhere + unfinished + asks,
           kFreeElsewhere + "stream s2 d0\ncapture-begin s2 relaxed\n" + asks,
           std::string("device d0 64MiB\nlimit d0 1MiB\nalloc p0 512 s0\n"),
           kInPieces,
           "conf max_split_size_mb:64\n" + kInPieces,
       }) {
    EXPECT_EQ(clause<ChangesTheAccount<forget_advice>>(ops), "DEV-14") << ops;
    using cache::Advice;
    EXPECT_EQ(clause<ChangesTheAccount<flip<Advice::kWaitLonger>>>(ops), "DEV-14") << ops;
    EXPECT_EQ(clause<ChangesTheAccount<flip<Advice::kShareComplete>>>(ops), "DEV-14") << ops;
    EXPECT_EQ(clause<ChangesTheAccount<flip<Advice::kShareOrdered>>>(ops), "DEV-14") << ops;
    EXPECT_EQ(clause<ChangesTheAccount<flip<Advice::kKeepWhole>>>(ops), "DEV-14") << ops;
    EXPECT_EQ(clause<ChangesTheAccount<flip<Advice::kRepeatSizes>>>(ops), "DEV-14") << ops;
  }
}

/// Has the 140 MiB in use while it makes room for 100 MiB, so that a larger segment goes back.
struct HoldsTheSmallest : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  Result<Address> allocate(Bytes size, const Stream& stream, OutOfMemory* account) override {
    if (size != 100_MiB) return inner_->allocate(size, stream, account);
    const Result<Address> held = inner_->allocate(140_MiB, stream, account);
    const Result<Address> got = inner_->allocate(size, stream, account);
    EXPECT_TRUE(inner_->free(held.value()).is_ok());
    return got;
  }
};
TEST(Checkers, Dev13FiresWhenALargerSegmentGoesBackThanWouldDo) {
  const std::string oversize = "conf max_split_size_mb:24\n";
  const std::string ops =
      "device d0 1024MiB\nalloc p0 140MiB s0\nalloc p1 600MiB s0\nalloc p2 284MiB s0\nfree p0\n"
      "free p1\n";
  EXPECT_EQ(dense_clause<HoldsTheSmallest>(oversize + ops + "alloc p3 100MiB s0\n"), "DEV-13");
}

TEST(Checkers, TheRoundingRowsFireWhenAnotherPolicyIsAtWork) {
  EXPECT_EQ(clause<Sound>("alloc p0 512 s0\n"), "");
  struct ClaimsDefaults : ForwardingSubject {
    using ForwardingSubject::ForwardingSubject;
    cache::Config config() const override { return {}; }
  };
  EXPECT_EQ(clause<ClaimsDefaults>("alloc p0 512 s0\n", "small_segment_mb:4"), "DEV-2");
  EXPECT_EQ(clause<ClaimsDefaults>("alloc p0 600 s0\n", "granule:128"), "DEV-1");
  EXPECT_EQ(clause<ClaimsDefaults>("alloc p0 12MiB s0\nalloc p2 10MiB s0\nfree p0\n",
                                   "round_segment_mb:16"),
            "DEV-2");
  EXPECT_EQ(clause<ClaimsDefaults>("alloc p0 300000000 s0\n", "max_split_size_mb:21"), "DEV-4");
}

TEST(Checkers, Dev22FiresWhenTheSettingsAreNotThoseOfTheText) {
  const std::string ops = "alloc p0 512 s0\n";
  EXPECT_EQ(clause<Sound>("conf wait_ms:7,granule:128\n" + ops, "wait_ms:8,granule:128"), "DEV-22");
  for (const char* bad : {"conf granule:100\n", "conf wait_ms:7,wait_ms:7\n", "conf reuse\n",
                          "conf max_split_size_mb:20\n", "conf large_segment_mb:8\n"}) {
    EXPECT_EQ(clause<Sound>(bad + ops, ""), "DEV-22") << bad;
  }
  struct RefusesAllSettings {
    static Result<std::shared_ptr<spec::CacheSubject>> make(
        std::span<device::Device* const> devices, const std::string& conf) {
      if (!conf.empty()) return Status{Code::kMalformed, "planted"};
      return caching_allocator_factory()(devices, conf);
    }
  };
  spec::CacheLockstep::Options refusing;
  refusing.factory = RefusesAllSettings::make;
  EXPECT_EQ(failing_clause(refusing, "conf roundup_power2_divisions:[1:2,>:8]\n" + ops), "DEV-22");
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

struct AllocatesInCallbacks : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  Result<Address> allocate(Bytes size, const Stream& stream, OutOfMemory* account) override {
    const Result<Address> got = inner_->allocate(size, stream, account);
    return got.code() == Code::kReentrant ? Result<Address>(Code::kOutOfMemory, "planted") : got;
  }
};
TEST(Checkers, C24FiresWhenAnAllocationInACallbackIsNotRefused) {
  EXPECT_EQ(clause<AllocatesInCallbacks>("on-oom-alloc\nalloc p0 512 s0\n"), "C24");
}

struct OutlivesItsDevice : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  Result<Address> allocate(Bytes size, const Stream& stream, OutOfMemory* account) override {
    static_cast<void>(device_for(device::CallKind::kMemoryInfo).memory_info());
    return inner_->allocate(size, stream, account);
  }
};
struct HidesTheLoss : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  Result<Address> allocate(Bytes size, const Stream& stream, OutOfMemory* account) override {
    const Result<Address> got = inner_->allocate(size, stream, account);
    return got.is_ok() ? got : Result<Address>(Code::kDriverError, "planted");
  }
};
TEST(Checkers, C26FiresOnCallsAfterTheDeviceIsGoneAndOnOtherAnswers) {
  for (const char* end : {"lose d0\n", "teardown\n"}) {
    const std::string ops =
        std::string("alloc p0 512 s0\n") + end + "alloc p1 4MiB s0\nalloc p2 4MiB s0\n";
    EXPECT_EQ(clause<OutlivesItsDevice>(ops), "C26") << end;
    EXPECT_EQ(clause<HidesTheLoss>(ops), "C26") << end;
  }
  // Once one device has answered that the driver is unloaded, the allocator knows it of both.
  EXPECT_EQ(clause<HidesTheLoss>(
                "device d1 0\nstream s1 d1\nteardown\nalloc p0 4MiB s0\nalloc p1 4MiB s1\n"),
            "C26");
}

bool gives_another_block = false;
struct DependsOnTheWeather : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  Result<Address> allocate(Bytes size, const Stream& stream, OutOfMemory* account) override {
    return inner_->allocate(gives_another_block ? Bytes{4096} : size, stream, account);
  }
};
TEST(Checkers, C10sHashTellsTwoRunsWithDifferentAddressesApart) {
  const auto hash = [](bool weather) {
    gives_another_block = weather;
    spec::CacheLockstep lockstep(broken<DependsOnTheWeather>());
    spec::Op op;
    for (std::uint64_t i = 0; i < 3; ++i) {
      op.slot = 1;
      op.arg = {i, i == 0 ? 512u : 4096u, 0, 0};
      lockstep.step(op);
    }
    return lockstep.finish().address_hash;
  };
  EXPECT_EQ(hash(false), hash(false));
  EXPECT_NE(hash(false), hash(true));
}

/// Answers every question about an event with "not done": to the judge, an allocator that never
/// asks.
class DeafDevice final : public device::ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  Status event_query(EventHandle event) noexcept override {
    static_cast<void>(ForwardingDevice::event_query(event));
    return {Code::kNotReady, "planted"};
  }
};
struct NeverAsks : ForwardingSubject {
  NeverAsks(std::shared_ptr<spec::CacheSubject> inner, std::span<device::Device* const> devices)
      : ForwardingSubject(std::move(inner), devices) {
    std::vector<device::Device*> deaf;
    for (device::Device* device : devices) {
      deaf_.push_back(std::make_unique<DeafDevice>(*device));
      deaf.push_back(deaf_.back().get());
    }
    inner_ = caching_allocator_factory()(deaf, "").value();
  }
  ~NeverAsks() override { inner_.reset(); }
  std::vector<std::unique_ptr<DeafDevice>> deaf_;
};
TEST(Checkers, C27FiresWhenMemoryWhoseWorkIsDoneDoesNotComeBack) {
  const char* const used_by_a_dead_stream =
      "stream s1 d0\nalloc p1 30MiB s0\nuse p1 s1\nretire s1\nfree p1\ndrain d0\n"
      "alloc p2 30MiB s0\n";
  EXPECT_EQ(dense_clause<NeverAsks>(used_by_a_dead_stream), "C27");
  const char* const left_by_a_dead_stream =
      "stream s1 d0\nalloc p1 30MiB s1\nfree p1\nretire s1\ndrain d0\nalloc p2 30MiB s0\n";
  EXPECT_EQ(dense_clause<NeverAsks>(left_by_a_dead_stream), "C27");
}

struct TrimsNothing : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  Status trim(DeviceId device) override {
    const Status trimmed = inner_->trim(device);
    return trimmed.is_ok() ? Status{Code::kNotReady, "planted"} : Status::ok();
  }
};
TEST(Checkers, C28FiresOnATrimThatDoesNotKnowWorkIsDoneOrHidesARefusal) {
  EXPECT_EQ(clause<TrimsNothing>("conf wait_ms:0\nalloc p0 30MiB s0\nfree p0\ndrain d0\ntrim d0\n"),
            "C28");
  EXPECT_EQ(clause<TrimsNothing>(
                "alloc p0 30MiB s0\nfree p0\ndrain d0\nfail segment-free 1 once\ntrim d0\n"),
            "C28");
}

/// Gives each try its own wait.
struct TriesTwice : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  Result<Address> allocate(Bytes size, const Stream& stream, OutOfMemory* account) override {
    const Result<Address> got = inner_->allocate(size, stream, account);
    return got.code() == Code::kOutOfMemory ? inner_->allocate(size, stream, account) : got;
  }
};
TEST(Checkers, C30FiresOnACallThatWaitsForLongerThanIsPermitted) {
  std::string ops = "conf wait_ms:3\ndevice d0 64MiB\nstream s1 d0\nalloc p1 40MiB s0\n";
  for (int i = 0; i < 20; ++i) ops += "kernel s1 p1 rw\n";
  ops += "free-on p1 s1\nalloc p2 50MiB s0\n";
  spec::CacheLockstep::Options slow = broken<TriesTwice>();
  slow.machine.entries_per_ms = 1;
  EXPECT_EQ(failing_clause(slow, ops), "C30");
  slow.factory = caching_allocator_factory();
  EXPECT_EQ(failing_clause(slow, ops), "");
}

/// Takes note of the stream of a use before it looks at the address.
struct NotesRefusedStreams : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  std::uint64_t noted = 0;
  Status record_use(Address address, const Stream& stream) override {
    const Status used = inner_->record_use(address, stream);
    noted += !used.is_ok();
    return used;
  }
  Status stats(DeviceId device, DeviceStats* out) override {
    const Status got = ForwardingSubject::stats(device, out);
    out->streams += noted;
    return got;
  }
};
/// Answers a stale name of a stream as if it were the stream's.
struct ServesDeadNames : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  Status end_capture(const Stream&) override { return Status::ok(); }
};
TEST(Checkers, C32FiresOnARefusedCallThatLeavesARecord) {
  EXPECT_EQ(failing_clause(broken<NotesRefusedStreams>(),
                           "stream s1 d0\nalloc p0 512 s0\nfree p0\nuse-stale p0 s1\n"),
            "C32");
  EXPECT_EQ(failing_clause(broken<ServesDeadNames>(),
                           "stream s1 d0\nalloc p0 512 s1\nfree p0\nretire s1\nname-dead s1 0\n"),
            "C16");
}

}  // namespace
}  // namespace ashlar::props
