// Recordings while the host refuses memory: each allocation in turn.
//
// Imitates: a process whose memory is used up. Does not prove: that the refused call is the one of a real shortage.
#include <gtest/gtest.h>

#include <string>

#include <ashlar/ashlar.h>
#include <ashlar/exchange.h>

#include "props/cache/thread_stress.h"
#include "props/host_memory/refusing_host.h"

namespace ashlar::props {
namespace {

/// Refuses the n-th allocation of the host, and with `all` those behind it, while this lives.
struct Refusal {
  explicit Refusal(std::uint64_t n, bool all = false) {
    host.allocations = host.refused = 0;
    host.throws = true;
    host.stays_empty = all;
    host.fail_at = n;
  }
  ~Refusal() {
    host.fail_at = 0;
    host.throws = false;
  }
};

const char* const kLong =
    "a label that is too long to be kept within a string itself, so that memory is asked for";

TEST(HostRefusals, AScopeWithoutMemoryForItsLabelChangesNothing) {
  for (std::uint64_t n = 1;; ++n) {
    exchange::LabelContexts labels;
    const exchange::LabelScope outermost(labels, "outermost"), outer(labels, "outer");
    const cache::ContextId around = labels.gather();
    cache::ContextId inside;
    {
      const Refusal refusal(n);
      const exchange::LabelScope inner(labels, kLong);
      inside = labels.gather();
    }
    if (host.refused == 0) break;
    EXPECT_EQ(inside, around) << n;
    EXPECT_EQ(labels.gather(), around);
    const exchange::LabelScope again(labels, kLong);
    ASSERT_EQ(labels.frames_of(labels.gather()).size(), 3u) << "the next one has memory";
  }
}

/// The caller's frame, while the n-th allocation is refused.
[[gnu::noinline]] cache::ContextId gathered(exchange::StackContexts* stacks, std::uint64_t n) {
  const Refusal refusal(n);
  return stacks->gather();
}

TEST(HostRefusals, AStackWithoutMemoryForItIsLostAndKeptTheNextTime) {
  std::uint64_t was_refused = 1;
  std::uint64_t n = 0;
  while (was_refused != 0) {
    ++n;
    exchange::StackContexts stacks({.frames_max = 1});
    for (const bool is_second : {false, true}) {
      const cache::ContextId context = gathered(&stacks, is_second ? 0 : n);
      if (!is_second) was_refused = host.refused;
      const bool is_kept = is_second || was_refused == 0;
      EXPECT_EQ(stacks.count(), is_kept ? 1u : 0u) << n;
      EXPECT_EQ(stacks.lost(), was_refused) << n;
      EXPECT_EQ(stacks.addresses_of(context).empty(), !is_kept) << n;
    }
  }
  EXPECT_GE(n, 4u) << "a list, a stack and a table's entry need memory";
}

TEST(HostRefusals, ATraceSaysThatAnAllocationIsMissing) {
  for (std::uint64_t n = 1;; ++n) {
    std::string text;
    exchange::TraceWriter writer(exchange::string_sink(&text), "run");
    {
      const Refusal refusal(n);
      writer.on_allocate(Address{512}, 8_B, 3);
    }
    const bool was_refused = host.refused != 0;
    EXPECT_EQ(writer.counts().lost, was_refused ? 1u : 0u) << n;
    EXPECT_EQ(writer.finish().code(), was_refused ? Code::kHostOutOfMemory : Code::kOk) << n;
    EXPECT_EQ(writer.finish().code(), was_refused ? Code::kHostOutOfMemory : Code::kOk) << "still";
    writer.on_allocate(Address{1024}, 8_B);
    EXPECT_EQ(writer.finish().code(), was_refused ? Code::kHostOutOfMemory : Code::kOk);
    if (!was_refused) break;
  }
}

TEST(HostRefusals, ATraceNeedsNoMemoryForFreesAndMarks) {
  std::string text;
  exchange::TraceWriter writer(exchange::string_sink(&text), "run");
  writer.on_allocate(Address{512}, 8_B);
  {
    const Refusal refusal(1, true);
    writer.on_free(Address{512});
    for (int i = 0; i < 500; ++i) writer.mark(kLong);
  }
  EXPECT_EQ(host.allocations, 0u);
  EXPECT_EQ(writer.counts().frees, 1u);
  EXPECT_EQ(writer.counts().marks, 500u);
  EXPECT_TRUE(writer.finish().is_ok());
}

TEST(HostRefusals, AfterAnErrorNothingIsThere) {
  device::HostDevice device(kStressDevice, 48_MiB);
  device::Device* devices[] = {&device};
  const auto allocator = cache::CachingAllocator::create(devices, {}).value();
  const Stream stream = device.create_stream().value();
  ASSERT_TRUE(cache::start_history(*allocator, kStressDevice, {.events_max = 100}).is_ok());
  ASSERT_TRUE(allocator->allocate(1_MiB, stream).is_ok());
  ASSERT_TRUE(cache::annotate(*allocator, kStressDevice, kLong).is_ok());
  for (std::uint64_t n = 1;; ++n) {
    cache::HistorySnapshot taken;
    cache::History history;
    Status snapped;
    Status read;
    {
      const Refusal refusal(n);
      snapped = cache::history_snapshot(*allocator, kStressDevice, &taken);
    }
    const bool was_refused = host.refused != 0;
    {
      const Refusal refusal(n);
      read = cache::read_history(*allocator, kStressDevice, 0, &history);
    }
    if (!snapped.is_ok()) {
      EXPECT_EQ(snapped.code(), Code::kHostOutOfMemory);
      EXPECT_TRUE(taken.snapshot.segments.empty() && taken.snapshot.blocks.empty()) << n;
      EXPECT_TRUE(taken.history.events.empty() && taken.history.texts.empty()) << n;
    }
    if (!read.is_ok()) {
      EXPECT_EQ(read.code(), Code::kHostOutOfMemory);
      EXPECT_TRUE(history.events.empty() && history.texts.empty()) << n;
    }
    if (!was_refused) break;
    ASSERT_LT(n, 1000u);
  }
}

}  // namespace
}  // namespace ashlar::props
