// What a driver refuses to take back of another process's memory is asked for again: a mirror's addresses, an imported page's
// handle, an opened segment (row DEV-21).
//
// Imitates: two processes, as two machines in one; a driver that refuses one call, or all for a while. Does not prove: when a
// driver refuses.
#include <gtest/gtest.h>

#include <optional>

#include "props/share/share_worlds.h"

namespace ashlar::props {
namespace {

using device::CallKind;
using share::ExportedMemory;
using share::MemoryExporter;
using share::MemoryOpener;
using share::OpenedMemory;

/// A call of an opener that may be refused, and the memory that leads to it.
struct RefusedCall {
  CallKind kind;
  const char* settings;
  const char* name;
};

class RefusedReleasesTest : public ::testing::TestWithParam<RefusedCall> {
 protected:
  RefusedReleasesTest()
      : first_(from_.allocator(GetParam().settings).allocate(24_MiB, from_.stream()).value()),
        second_(from_.allocator().allocate(24_MiB, from_.stream()).value()),
        exporter_(from_.allocator()),
        opener_(std::make_unique<MemoryOpener>(to_.devices())) {}
  ~RefusedReleasesTest() override {
    opener_.reset();
    for (const Address each : {first_, second_})
      EXPECT_EQ(from_.allocator().free(each).code(), Code::kOk);
    from_.end_allocator();
    EXPECT_TRUE(from_.gpu().leak_check());
    EXPECT_TRUE(to_.gpu().leak_check());
    EXPECT_TRUE(to_.gpu().take_faults().empty());
  }

  OpenedMemory open(const ExportedMemory& memory) { return opener_->open(memory.header()).value(); }
  void refuse(spec::FailMode mode) { to_.gpu().fail(GetParam().kind, 1, mode); }
  bool holds_nothing() { return to_.gpu().ledger().nothing_held(); }

  const DescriptorBalance balance_;
  ShareProcess from_;
  ShareProcess to_;
  const Address first_;
  const Address second_;  ///< of another stream, so of another segment
  MemoryExporter exporter_;
  std::unique_ptr<MemoryOpener> opener_;
};

INSTANTIATE_TEST_SUITE_P(
    Calls, RefusedReleasesTest,
    ::testing::Values(RefusedCall{CallKind::kAddressRelease, "backing:pages", "Addresses"},
                      RefusedCall{CallKind::kPageRelease, "backing:pages", "Pages"},
                      RefusedCall{CallKind::kPageUnmap, "backing:pages", "Mappings"},
                      RefusedCall{CallKind::kSegmentClose, "backing:segments", "Segments"}),
    [](const auto& call) { return call.param.name; });

TEST_P(RefusedReleasesTest, TheNextClosingAsksAgain) {
  const ExportedMemory first = exporter_.export_memory(first_).value();
  const ExportedMemory second = exporter_.export_memory(second_).value();
  std::optional<OpenedMemory> other = open(second);
  refuse(spec::FailMode::kOnce);
  static_cast<void>(open(first));  // and closes it
  other.reset();
  EXPECT_TRUE(holds_nothing());
}

TEST_P(RefusedReleasesTest, TheNextOpeningAsksAgain) {
  const ExportedMemory first = exporter_.export_memory(first_).value();
  const ExportedMemory second = exporter_.export_memory(second_).value();
  const std::optional<OpenedMemory> kept = open(second);
  const spec::Ledger before = to_.gpu().ledger();
  refuse(spec::FailMode::kOnce);
  static_cast<void>(open(first));
  const OpenedMemory again = open(second);
  const spec::Ledger after = to_.gpu().ledger();
  for (const auto held :
       {&spec::Ledger::reservations, &spec::Ledger::mappings, &spec::Ledger::opened})
    EXPECT_EQ((after.*held).count, (before.*held).count);
}

TEST_P(RefusedReleasesTest, TheOpenersEndAsksAgain) {
  const ExportedMemory first = exporter_.export_memory(first_).value();
  refuse(GetParam().kind == CallKind::kPageRelease ? spec::FailMode::kOn : spec::FailMode::kOnce);
  static_cast<void>(open(first));
  EXPECT_FALSE(holds_nothing());
  to_.gpu().heal();
  opener_.reset();
  EXPECT_TRUE(holds_nothing());
}

TEST_P(RefusedReleasesTest, AskingAgainDisturbsNoCapture) {
  const ExportedMemory first = exporter_.export_memory(first_).value();
  refuse(spec::FailMode::kOn);
  static_cast<void>(open(first));
  to_.gpu().heal();
  const Stream capturing = to_.stream();
  ASSERT_TRUE(to_.gpu().begin_capture(capturing, device::CaptureMode::kGlobal).is_ok());
  opener_.reset();
  EXPECT_TRUE(holds_nothing());
  EXPECT_TRUE(to_.gpu().end_capture(capturing).is_ok());
}

TEST_P(RefusedReleasesTest, WhatIsRefusedForAWhileIsAskedForUntilItIsDone) {
  const ExportedMemory first = exporter_.export_memory(first_).value();
  const ExportedMemory second = exporter_.export_memory(second_).value();
  refuse(spec::FailMode::kOn);
  for (int i = 0; i < 3; ++i) {
    const OpenedMemory a = open(first);
    const OpenedMemory b = open(second);
    const OpenedMemory again = open(first);
  }
  EXPECT_FALSE(holds_nothing());
  to_.gpu().heal();
  static_cast<void>(open(first));
  EXPECT_TRUE(holds_nothing());
  EXPECT_TRUE(to_.gpu().take_faults().empty());
}

}  // namespace
}  // namespace ashlar::props
