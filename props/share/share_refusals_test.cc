// The host refuses memory while an allocation is exported, sent and opened: each allocation of records in turn (D10, C21).
//
// Imitates: a host that refuses the n-th allocation, or all from there on; the devices' own records are never refused. Does not
// prove: anything about several threads. This executable links host_memory/refusing_host.cc.
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ashlar/device/forwarding_device.h>
#include <ashlar/device/forwarding_sharing.h>

#include "props/host_memory/refusing_host.h"
#include "props/share/share_worlds.h"
#include "props/share/socket_ends.h"

namespace ashlar::props {
namespace {

using device::CallKind;
using device::CaptureMode;
using device::ShareHandle;
using device::ShareKind;

/// While this lives nothing is counted or refused.
struct Unrefused {
  Unrefused() { host.is_off = true; }
  ~Unrefused() { host.is_off = false; }
};

class UnrefusedSharing final : public device::ForwardingSharing {
 public:
  using ForwardingSharing::ForwardingSharing;
  Result<device::DeviceUuid> uuid() const noexcept override {
    const Unrefused off;
    return ForwardingSharing::uuid();
  }
  Result<ShareHandle> page_export(PageHandle page) noexcept override {
    const Unrefused off;
    return ForwardingSharing::page_export(page);
  }
  Result<PageHandle> page_import(const ShareHandle& handle, Bytes size) noexcept override {
    const Unrefused off;
    return ForwardingSharing::page_import(handle, size);
  }
  Result<ShareHandle> segment_export(Address base) noexcept override {
    const Unrefused off;
    return ForwardingSharing::segment_export(base);
  }
  Result<PageHandle> segment_page(Address base) noexcept override {
    const Unrefused off;
    return ForwardingSharing::segment_page(base);
  }
  Result<Address> segment_open(const ShareHandle& handle) noexcept override {
    const Unrefused off;
    return ForwardingSharing::segment_open(handle);
  }
  Status segment_close(Address base) noexcept override {
    const Unrefused off;
    return ForwardingSharing::segment_close(base);
  }
};

/// A simulated device whose own records are never refused.
class UnrefusedDevice final : public device::ForwardingDevice {
 public:
  explicit UnrefusedDevice(device::Device& inner)
      : ForwardingDevice(inner), shares_(*inner.sharing()) {}
  device::Sharing* sharing() noexcept override { return &shares_; }
  Result<Address> address_reserve(Bytes size, Bytes alignment) noexcept override {
    const Unrefused off;
    return ForwardingDevice::address_reserve(size, alignment);
  }
  Status address_release(Address base, Bytes size) noexcept override {
    const Unrefused off;
    return ForwardingDevice::address_release(base, size);
  }
  Status page_map(Address at, Bytes size, PageHandle page) noexcept override {
    const Unrefused off;
    return ForwardingDevice::page_map(at, size, page);
  }
  Status page_access(Address at, Bytes size) noexcept override {
    const Unrefused off;
    return ForwardingDevice::page_access(at, size);
  }
  Status page_unmap(Address at, Bytes size) noexcept override {
    const Unrefused off;
    return ForwardingDevice::page_unmap(at, size);
  }
  Status page_release(PageHandle page) noexcept override {
    const Unrefused off;
    return ForwardingDevice::page_release(page);
  }
  Result<CaptureMode> exchange_capture_mode(CaptureMode mode) noexcept override {
    const Unrefused off;
    return ForwardingDevice::exchange_capture_mode(mode);
  }

 private:
  UnrefusedSharing shares_;
};

/// An exporter with an allocation of three pages, or one segment, and an opener.
class RefusedSharing : public ::testing::TestWithParam<std::pair<const char*, ShareKind>> {
 protected:
  RefusedSharing()
      : from_(ShareProcess::only(GetParam().second)),
        there_(from_.shareable()),
        here_(to_.device()),
        devices_{&there_},
        openers_{&here_} {
    const Config config = parse_config(GetParam().first, nullptr).value();
    allocator_ = CachingAllocator::create(devices_, config).value();
    memory_ = allocator_->allocate(6_MiB, from_.stream()).value();
  }
  ~RefusedSharing() override {
    EXPECT_TRUE(allocator_->free(memory_).is_ok());
    allocator_.reset();
    EXPECT_TRUE(from_.gpu().leak_check());
    EXPECT_TRUE(to_.gpu().leak_check());
  }

  /// call() with each of its allocations refused in turn, alone and with all behind it; the code of each refusal is right, and
  /// nothing_left() after each.
  void refuse_each(const std::function<Code()>& call, const std::function<void()>& nothing_left) {
    for (const bool all : {false, true}) {
      for (std::uint64_t n = 1;; ++n) {
        host = {.fail_at = n, .stays_empty = all, .throws = true};
        const Code code = call();
        const std::uint64_t refused = host.refused;
        host = {};
        nothing_left();
        if (refused == 0) {
          EXPECT_EQ(code, Code::kOk);
          EXPECT_GT(n, 1u) << "nothing was refused";
          break;
        }
        EXPECT_EQ(code, Code::kHostOutOfMemory) << n;
      }
    }
  }

  const DescriptorBalance balance_;
  ShareProcess from_;
  ShareProcess to_;
  UnrefusedDevice there_;
  UnrefusedDevice here_;
  device::Device* const devices_[1];
  device::Device* const openers_[1];
  std::unique_ptr<CachingAllocator> allocator_;
  Address memory_;
};

INSTANTIATE_TEST_SUITE_P(Kinds, RefusedSharing,
                         ::testing::Values(std::pair{"backing:pages", ShareKind::kDescriptor},
                                           std::pair{"backing:pages", ShareKind::kFabric},
                                           std::pair{"backing:segments", ShareKind::kSegment}));

TEST_P(RefusedSharing, AnExportWithoutMemoryLeavesNothingOpenAndNothingPinned) {
  share::MemoryExporter exporter(*allocator_);
  ASSERT_TRUE(
      exporter.export_memory(memory_).is_ok());  // the simulated memory has its files from now on
  const std::ptrdiff_t before = open_descriptors();
  refuse_each([&] { return exporter.export_memory(memory_).code(); },
              [&] { EXPECT_EQ(open_descriptors(), before); });
  EXPECT_TRUE(allocator_->free(std::exchange(memory_, {})).is_ok());
  EXPECT_TRUE(allocator_->trim(DeviceId{0}).is_ok());
  EXPECT_EQ(from_.gpu().ledger().pages.count + from_.gpu().ledger().segments.count, 0u)
      << "C21: a pin was left";
}

TEST_P(RefusedSharing, AnOpeningWithoutMemoryLeavesNothingMapped) {
  share::MemoryExporter exporter(*allocator_);
  const share::ExportedMemory exported = exporter.export_memory(memory_).value();
  const std::ptrdiff_t before = open_descriptors();
  share::MemoryOpener opener(openers_);
  refuse_each([&] { return opener.open(exported.header(), exported.descriptors()).code(); },
              [&] {
                EXPECT_EQ(to_.gpu().ledger().mappings.count, 0u);
                EXPECT_EQ(to_.gpu().ledger().reservations.count, 0u);
                EXPECT_EQ(open_descriptors(), before);
              });
  const auto first = opener.open(exported.header(), exported.descriptors()).value();
  const std::ptrdiff_t with_one = open_descriptors();
  refuse_each([&] { return opener.open(exported.header(), exported.descriptors()).code(); },
              [&] { EXPECT_EQ(open_descriptors(), with_one); });
}

TEST_P(RefusedSharing, AFetchWithoutMemoryLeavesNoDescriptorOpen) {
  share::MemoryExporter exporter(*allocator_);
  const share::ExportedMemory exported = exporter.export_memory(memory_).value();
  const std::ptrdiff_t before = open_descriptors();
  share::MemoryOpener opener(openers_);
  refuse_each([&] { return opener.open(exported.header()).code(); },
              [&] {
                EXPECT_EQ(to_.gpu().ledger().mappings.count, 0u);
                EXPECT_EQ(to_.gpu().ledger().reservations.count, 0u);
                EXPECT_EQ(open_descriptors(), before);
              });
}

TEST_P(RefusedSharing, WhatTheDriverRefusesToTakeBackIsRememberedWithoutMemory) {
  constexpr CallKind kReleases[] = {CallKind::kPageRelease, CallKind::kSegmentClose};
  constexpr int kOpened = 5;
  share::MemoryExporter exporter(*allocator_);
  std::vector<share::ExportedMemory> exported;
  for (int i = 0; i < kOpened; ++i) {
    const Address memory = allocator_->allocate(6_MiB, from_.stream()).value();
    exported.push_back(exporter.export_memory(memory).value());
    ASSERT_TRUE(allocator_->free(memory).is_ok());
  }
  const auto open = [&](share::MemoryOpener& opener, const share::ExportedMemory& memory) {
    return opener.open(memory.header(), memory.descriptors());
  };
  std::optional<share::MemoryOpener> opener(std::in_place, openers_);
  const auto refuse = [&] {
    for (const CallKind kind : kReleases) to_.gpu().fail(kind, 1, spec::FailMode::kOn);
  };
  refuse();
  refuse_each([&] { return open(*opener, exported.front()).code(); },
              [&] {
                to_.gpu().heal();
                opener.emplace(openers_);
                EXPECT_TRUE(to_.gpu().leak_check());
                refuse();
              });
  std::vector<share::OpenedMemory> opened;
  for (const share::ExportedMemory& each : exported) opened.push_back(open(*opener, each).value());
  host = {.fail_at = 1, .stays_empty = true, .throws = true};
  opened.clear();
  host = {};
  EXPECT_FALSE(to_.gpu().ledger().nothing_held()) << "the driver refused";
  to_.gpu().heal();
  opener.reset();
}

TEST_P(RefusedSharing, AMessageWithoutMemoryLeavesNoDescriptorOpen) {
  share::MemoryExporter exporter(*allocator_);
  const share::ExportedMemory exported = exporter.export_memory(memory_).value();
  for (const bool all : {false, true}) {
    for (std::uint64_t n = 1;; ++n) {
      const Ends ends;
      ASSERT_TRUE(share::send_memory(ends.both[0], exported).is_ok());
      const std::ptrdiff_t before = open_descriptors();
      host = {.fail_at = n, .stays_empty = all, .throws = true};
      const Code code = share::receive_memory(ends.both[1]).code();
      const std::uint64_t refused = host.refused;
      host = {};
      EXPECT_EQ(open_descriptors(), before);
      if (refused == 0) break;
      EXPECT_EQ(code, Code::kHostOutOfMemory);
    }
  }
}

TEST(RefusedMessage, DescriptorsThatNobodyAnnouncedNeedNoMemory) {
  for (std::uint64_t n = 1;; ++n) {
    const DescriptorBalance balance;
    const Ends ends;
    ends.announce(0, 1);
    ends.send_descriptors(3);
    host = {.fail_at = n, .throws = true};
    const Code code = share::receive_memory(ends.both[1]).code();
    const std::uint64_t refused = host.refused;
    host = {};
    EXPECT_EQ(code, refused == 0 ? Code::kMalformed : Code::kHostOutOfMemory) << n;
    if (refused == 0) break;
  }
}

}  // namespace
}  // namespace ashlar::props
