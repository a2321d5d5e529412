// The checkers of figures fire: each has a planted bug, and the real allocator passes the same ops.
//
// Planted: a wrong number in each field of each figure of the statistics (C15), and in the answer
// about the largest free block (DEV-19).
// Imitated: an allocator that miscounts, keeps a total at a reset, forgets or invents a steal or a
// retry, answers for another stream.
// Not proved: that no other bug slips through a clause.
#include "props/cache/planted_subjects.h"

namespace ashlar::props {
namespace {

using cache::DeviceStats;
using cache::OutOfMemory;

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

}  // namespace
}  // namespace ashlar::props
