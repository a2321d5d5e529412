// Allocations that leave their process and are opened in another (row DEV-21, D9, D10, C21), on the simulated device and on
// CudaDevice over the driver's functions of the simulated GPU.
//
// Imitates: two processes, as two machines in one. Does not prove: that bytes are the same on both sides
// (ipc_main.cc), or that a driver's handles behave as the simulated ones (ci/gpu).
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <thread>

#include <ashlar/device/forwarding_device.h>
#include <ashlar/device/forwarding_sharing.h>

#include "props/cache/forked_child.h"
#include "props/share/share_worlds.h"

namespace ashlar::props {
namespace {

using device::CaptureMode;
using device::ShareKind;
using share::ExportedMemory;
using share::MemoryExporter;
using share::MemoryOpener;
using share::OpenedMemory;
using share::read_header;
using share::ShareHeader;

/// Which of the two processes calls the CUDA driver's functions.
enum class Cuda { kNone, kExporter, kOpener };

class ShareTest : public ::testing::TestWithParam<Cuda> {
 protected:
  ShareTest() { rebuild(ShareProcess::usual()); }

  void rebuild(const spec::SimGpuOptions& options) {
    to_.reset();
    from_.reset();
    from_ = std::make_unique<ShareProcess>(options, GetParam() == Cuda::kExporter);
    to_ = std::make_unique<ShareProcess>(ShareProcess::usual(), GetParam() == Cuda::kOpener);
    stream_ = from_->stream();
  }
  Address allocate(Bytes size, const char* settings = "backing:pages") {
    return from_->allocator(settings).allocate(size, stream_).value();
  }
  ShareHeader header_of(const ExportedMemory& memory) {
    return read_header(memory.header()).value();
  }
  void expect_nothing_held() {
    from_->end_allocator();
    EXPECT_TRUE(from_->gpu().leak_check());
    EXPECT_TRUE(to_->gpu().leak_check());
    EXPECT_TRUE(from_->gpu().take_faults().empty());
    EXPECT_TRUE(to_->gpu().take_faults().empty());
  }

  const DescriptorBalance balance_;
  std::unique_ptr<ShareProcess> from_;
  std::unique_ptr<ShareProcess> to_;
  Stream stream_;
};

INSTANTIATE_TEST_SUITE_P(Devices, ShareTest,
                         ::testing::Values(Cuda::kNone, Cuda::kExporter, Cuda::kOpener));

TEST_P(ShareTest, PagesAreOpenedAtTheirOffsets) {
  const Address p = allocate(5_MiB);
  const Address q = allocate(3_MiB);
  MemoryExporter exporter(from_->allocator());
  MemoryOpener opener(to_->devices());
  {
    const ExportedMemory a = exporter.export_memory(p).value();
    const ExportedMemory b = exporter.export_memory(q).value();
    EXPECT_FALSE(a.is_whole_segment());
    OpenedMemory at_p = opener.open(a.header()).value();
    const OpenedMemory at_q = opener.open(b.header()).value();
    EXPECT_EQ(at_p.size(), from_->allocator().info(p).value().size);
    EXPECT_EQ(at_p.device(), DeviceId{0});
    // Of one segment: the two lie to each other as they do there.
    EXPECT_EQ(at_q.address() - at_p.address(), q - p);
    const auto pages = to_->gpu().ledger().mappings.count;
    const OpenedMemory again = opener.open(a.header()).value();
    EXPECT_EQ(again.address(), at_p.address());
    EXPECT_EQ(to_->gpu().ledger().mappings.count, pages) << "what is open is not opened twice";
    at_p = OpenedMemory();
    EXPECT_EQ(to_->gpu().ledger().mappings.count, pages) << "somebody still has it";
  }
  EXPECT_EQ(to_->gpu().ledger().mappings.count, 0u) << "nobody has it";
  EXPECT_EQ(from_->allocator().free(p).code(), Code::kOk);
  EXPECT_EQ(from_->allocator().free(q).code(), Code::kOk);
  expect_nothing_held();
}

TEST_P(ShareTest, MemoryIsOfTheDeviceThatItIsOf) {
  const Stream second = from_->stream(1);
  const Address p = from_->allocator().allocate(4_MiB, second).value();
  MemoryExporter exporter(from_->allocator());
  MemoryOpener opener(to_->devices());
  {
    const ExportedMemory memory = exporter.export_memory(p).value();
    OpenedMemory opened = opener.open(memory.header()).value();
    EXPECT_EQ(opened.device(), DeviceId{1});
    EXPECT_EQ(header_of(memory).uuid, to_->device(1).sharing()->uuid().value());
    const Address there = opened.address();
    const OpenedMemory moved = std::move(opened);
    EXPECT_EQ(moved.device(), DeviceId{1});
    EXPECT_EQ(moved.address(), there);
    EXPECT_EQ(opened.address(), Address{})
        << "it is nothing now";         // NOLINT(bugprone-use-after-move)
    EXPECT_EQ(opened.size(), Bytes{});  // NOLINT(bugprone-use-after-move)
  }
  EXPECT_EQ(from_->allocator().free(p).code(), Code::kOk);
  expect_nothing_held();
}

TEST_P(ShareTest, ExportedMemoryStays) {
  const Address p = allocate(8_MiB);
  MemoryExporter exporter(from_->allocator());
  {
    const ExportedMemory memory = exporter.export_memory(p).value();
    EXPECT_EQ(from_->allocator().free(p).code(), Code::kOk);
    EXPECT_EQ(from_->allocator().trim(DeviceId{0}).code(), Code::kOk);
    EXPECT_EQ(from_->gpu().ledger().mappings.bytes, 8_MiB) << "C21";
  }
  EXPECT_EQ(from_->allocator().trim(DeviceId{0}).code(), Code::kOk);
  EXPECT_EQ(from_->gpu().ledger().mappings.bytes, Bytes{});
  expect_nothing_held();
}

TEST_P(ShareTest, OtherMemoryAtAPlaceIsOpenedElsewhere) {
  MemoryExporter exporter(from_->allocator());
  MemoryOpener opener(to_->devices());
  const Address p = allocate(4_MiB);
  const Address keeper = allocate(4_MiB);
  std::optional<ExportedMemory> first = exporter.export_memory(p).value();
  const std::uint64_t generation = header_of(*first).parts.front().generation;
  OpenedMemory older = opener.open(first->header()).value();
  first.reset();
  EXPECT_EQ(from_->allocator().free(p).code(), Code::kOk);
  EXPECT_EQ(from_->allocator().trim(DeviceId{0}).code(), Code::kOk);
  ASSERT_EQ(allocate(4_MiB), p) << "the test is about one place";
  {
    const ExportedMemory second = exporter.export_memory(p).value();
    EXPECT_NE(header_of(second).parts.front().generation, generation);
    const OpenedMemory newer = opener.open(second.header()).value();
    EXPECT_NE(newer.address(), older.address());
    EXPECT_EQ(to_->gpu().ledger().mappings.bytes, 8_MiB);
  }
  older = OpenedMemory();
  for (const Address each : {p, keeper}) EXPECT_EQ(from_->allocator().free(each).code(), Code::kOk);
  expect_nothing_held();
}

TEST_P(ShareTest, WhatIsOpenIsFoundInTheMirrorThatHasMostOfIt) {
  MemoryExporter exporter(from_->allocator());
  MemoryOpener opener(to_->devices());
  const Address p = allocate(4_MiB);
  const Address keeper = allocate(4_MiB);
  const ExportedMemory kept = exporter.export_memory(keeper).value();
  std::optional<ExportedMemory> first = exporter.export_memory(p).value();
  const OpenedMemory beside = opener.open(kept.header()).value();  // keeps the first mirror
  std::optional<OpenedMemory> older = opener.open(first->header()).value();
  first.reset();
  EXPECT_EQ(from_->allocator().free(p).code(), Code::kOk);
  EXPECT_EQ(from_->allocator().trim(DeviceId{0}).code(), Code::kOk);
  ASSERT_EQ(allocate(4_MiB), p) << "the test is about one place";
  const ExportedMemory second = exporter.export_memory(p).value();
  const OpenedMemory newer = opener.open(second.header()).value();
  older.reset();  // its place in the first mirror is free again
  const auto mapped = to_->gpu().ledger().mappings.bytes;
  const OpenedMemory again = opener.open(second.header()).value();
  EXPECT_EQ(again.address(), newer.address());
  EXPECT_EQ(to_->gpu().ledger().mappings.bytes, mapped) << "what is open is not opened twice";
}

TEST_P(ShareTest, SegmentsAreOpenedWhole) {
  const Address p = allocate(3_MiB, "backing:segments");
  const Address q = allocate(4_MiB);
  MemoryExporter exporter(from_->allocator());
  MemoryOpener opener(to_->devices());
  {
    const ExportedMemory a = exporter.export_memory(p).value();
    const ExportedMemory b = exporter.export_memory(q).value();
    EXPECT_TRUE(a.is_whole_segment());
    EXPECT_TRUE(a.descriptors().empty());
    const OpenedMemory at_p = opener.open(a.header()).value();
    const OpenedMemory at_q = opener.open(b.header()).value();
    EXPECT_EQ(at_q.address() - at_p.address(), q - p);
    EXPECT_EQ(to_->gpu().ledger().opened.count, 1u) << "of one segment";
    EXPECT_EQ(to_->gpu().ledger().device_bytes(), Bytes{}) << "it is the exporter's memory";
  }
  EXPECT_EQ(from_->allocator().free(p).code(), Code::kOk);
  EXPECT_EQ(from_->allocator().free(q).code(), Code::kOk);
  expect_nothing_held();
}

TEST_P(ShareTest, EachPartSaysHowItIsShared) {
  // From the third page on the device refuses fabric handles: the host's administrator took the permission back.
  from_->gpu().fail(device::CallKind::kPageCreate, 3, spec::FailMode::kOnce, Code::kUnsupported);
  const Address p = allocate(8_MiB);
  MemoryExporter exporter(from_->allocator());
  MemoryOpener opener(to_->devices());
  {
    const ExportedMemory memory = exporter.export_memory(p).value();
    const ShareHeader header = header_of(memory);
    ASSERT_EQ(header.parts.size(), 4u);
    EXPECT_EQ(header.parts[0].handle.kind, ShareKind::kFabric);
    EXPECT_EQ(header.parts[1].handle.kind, ShareKind::kFabric);
    EXPECT_EQ(header.parts[2].handle.kind, ShareKind::kDescriptor);
    EXPECT_EQ(header.parts[3].handle.kind, ShareKind::kDescriptor);
    EXPECT_EQ(memory.descriptors().size(), 2u);
    EXPECT_EQ(from_->shareable().page_kind(), ShareKind::kDescriptor);
    const OpenedMemory opened = opener.open(memory.header(), memory.descriptors()).value();
    EXPECT_EQ(to_->gpu().ledger().mappings.bytes, 8_MiB);
  }
  EXPECT_EQ(from_->allocator().free(p).code(), Code::kOk);
  expect_nothing_held();
}

TEST_P(ShareTest, WhatTheDeviceCannotShareIsRefusedAndNothingIsPinned) {
  spec::SimGpuOptions none = ShareProcess::usual();
  none.share_kinds = 0;
  rebuild(none);
  const Address p = allocate(4_MiB);
  MemoryExporter exporter(from_->allocator());
  EXPECT_EQ(exporter.export_memory(p).code(), Code::kUnsupported);
  EXPECT_EQ(exporter.export_memory(p + 512_B).code(), Code::kUnknownPointer);
  EXPECT_EQ(exporter.export_memory(Address{}).code(), Code::kUnknownPointer);
  EXPECT_EQ(from_->allocator().free(p).code(), Code::kOk);
  EXPECT_EQ(from_->allocator().trim(DeviceId{0}).code(), Code::kOk);
  EXPECT_EQ(from_->gpu().ledger().mappings.bytes, Bytes{}) << "a refused export pins nothing";
  expect_nothing_held();
}

TEST_P(ShareTest, APoolWhoseSegmentsHaveOneHandleEach) {
  share::SingleHandleDevice source(from_->shareable());
  constexpr MemoryPoolId kPool{7, 0};
  CachingAllocator& allocator = from_->allocator();
  MemoryPoolOptions pool_options;
  pool_options.growth = &source;
  ASSERT_TRUE(allocator.create_pool(DeviceId{0}, kPool, pool_options).is_ok());
  ASSERT_TRUE(allocator.begin_pool(DeviceId{0}, kPool, [](const Stream&) { return true; }).is_ok());
  const Address p = allocate(30_MiB);
  ASSERT_TRUE(allocator.end_pool(DeviceId{0}, kPool).is_ok());
  EXPECT_EQ(from_->gpu().ledger().pages.count, 1u);
  MemoryExporter exporter(allocator);
  MemoryOpener opener(to_->devices());
  {
    const ExportedMemory memory = exporter.export_memory(p).value();
    const ShareHeader header = header_of(memory);
    ASSERT_EQ(header.parts.size(), 1u);
    EXPECT_EQ(header.parts[0].size, 30_MiB);
    EXPECT_FALSE(memory.is_whole_segment()) << "its memory lasts as long as any process has it";
    const OpenedMemory opened = opener.open(memory.header()).value();
    EXPECT_EQ(to_->gpu().ledger().mappings.bytes, 30_MiB);
  }
  EXPECT_TRUE(allocator.free(p).is_ok());
  EXPECT_TRUE(allocator.release_pool(DeviceId{0}, kPool).is_ok());
  EXPECT_TRUE(allocator.release_pool(DeviceId{0}, kPool).is_ok()) << "create and begin";
  expect_nothing_held();
}

TEST_P(ShareTest, PhysicalRangesAreThoseUnderAPin) {
  const Address p = allocate(5_MiB);
  CachingAllocator& allocator = from_->allocator();
  const PinnedRange range = allocator.pin(p).value();
  std::vector<cache::PhysicalRange> ranges;
  ASSERT_TRUE(cache::physical_ranges(allocator, range, &ranges).is_ok());
  ASSERT_EQ(ranges.size(), 3u) << "of pages of 2 MiB";
  ASSERT_TRUE(cache::physical_ranges(allocator, range, &ranges).is_ok());
  ASSERT_EQ(ranges.size(), 3u) << "they replace what was there";
  Address reached = ranges.front().address;
  EXPECT_LE(reached, p);
  for (const cache::PhysicalRange& each : ranges) {
    EXPECT_EQ(each.address, reached);
    EXPECT_EQ(each.size, 2_MiB);
    EXPECT_NE(each.page.value(), 0u);
    EXPECT_EQ(each.source, static_cast<device::Device*>(&from_->shareable()));
    reached = reached + each.size;
  }
  EXPECT_GE(reached, p + range.size);
  EXPECT_EQ(cache::physical_ranges(allocator, range, nullptr).code(), Code::kInvalidArgument);
  EXPECT_TRUE(allocator.unpin(range).is_ok());
  EXPECT_EQ(cache::physical_ranges(allocator, range, &ranges).code(), Code::kNotFound);
  EXPECT_TRUE(ranges.empty());
  EXPECT_TRUE(allocator.free(p).is_ok());
}

TEST_P(ShareTest, DescriptorsGoOverASocket) {
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  if (limit.rlim_max < 2048) GTEST_SKIP() << "the host permits too few descriptors";
  limit.rlim_cur = std::max<rlim_t>(limit.rlim_cur, 2048);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  rebuild(ShareProcess::only(ShareKind::kDescriptor));
  const Address p = allocate(600_MiB);  // more pages than a message carries
  MemoryExporter exporter(from_->allocator());
  MemoryOpener opener(to_->devices());
  {
    const ExportedMemory memory = exporter.export_memory(p).value();
    ASSERT_EQ(memory.descriptors().size(), 300u);
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    std::thread sender([&] {
      EXPECT_TRUE(share::send_memory(ends[0], memory).is_ok());
      EXPECT_TRUE(share::send_memory(ends[0], memory).is_ok());
      close(ends[0]);
    });
    for (int i = 0; i < 2; ++i) {
      const share::ReceivedMemory received = share::receive_memory(ends[1]).value();
      EXPECT_EQ(received.descriptors.all().size(), 300u);
      const OpenedMemory opened = opener.open(received.header, received.descriptors.all()).value();
      EXPECT_EQ(to_->gpu().ledger().mappings.bytes, 600_MiB);
    }
    sender.join();
    EXPECT_EQ(share::receive_memory(ends[1]).code(), Code::kNotFound) << "closed";
    EXPECT_EQ(share::send_memory(ends[1], memory).code(), Code::kWriteFailed);
    close(ends[1]);
  }
  EXPECT_TRUE(from_->allocator().free(p).is_ok());
  expect_nothing_held();
}

TEST_P(ShareTest, WhatIsNoHeaderIsRefused) {
  const Address p = allocate(4_MiB);
  MemoryExporter exporter(from_->allocator());
  MemoryOpener opener(to_->devices());
  {
    const ExportedMemory memory = exporter.export_memory(p).value();
    const std::vector<std::byte> good(memory.header().begin(), memory.header().end());
    for (std::size_t length = 0; length < good.size(); ++length)
      EXPECT_EQ(opener.open({good.data(), length}).code(), Code::kMalformed) << length;
    const int three[] = {0, 1, 2};
    EXPECT_EQ(opener.open(good, three).code(), Code::kInvalidArgument) << "too many descriptors";
    std::vector<std::byte> bad = good;
    bad[16] ^= std::byte{0x40};  // the exporter's number: another exporter, so another mirror
    EXPECT_TRUE(opener.open(bad).is_ok());
    bad = good;
    bad[28] ^= std::byte{0x40};  // nothing this version knows
    EXPECT_EQ(opener.open(bad).code(), Code::kMalformed);
    bad = good;
    bad[32] ^= std::byte{0x40};  // the GPU's name
    EXPECT_EQ(opener.open(bad).code(), Code::kNotFound);
  }
  EXPECT_TRUE(from_->allocator().free(p).is_ok());
  expect_nothing_held();
}

TEST_P(ShareTest, EveryCallThatFailsLeavesNothingBehind) {
  using device::CallKind;
  const Address p = allocate(6_MiB);
  MemoryExporter exporter(from_->allocator());
  MemoryOpener opener(to_->devices());
  for (std::uint64_t n = 1; n <= 4; ++n) {
    from_->gpu().fail(CallKind::kPageExport, n, spec::FailMode::kOnce);
    static_cast<void>(exporter.export_memory(p));
    from_->gpu().heal();
  }
  const ExportedMemory memory = exporter.export_memory(p).value();
  std::uint64_t failures = 0;
  for (const CallKind kind : {CallKind::kPageImport, CallKind::kPageMap, CallKind::kPageAccess,
                              CallKind::kAddressReserve, CallKind::kPageRelease}) {
    for (std::uint64_t n = 1; n <= 3; ++n) {
      to_->gpu().fail(kind, n, spec::FailMode::kOnce);
      if (!opener.open(memory.header()).is_ok()) ++failures;
      to_->gpu().heal();
      const spec::Ledger held = to_->gpu().ledger();
      EXPECT_EQ(held.mappings.count + held.reservations.count, 0u)
          << device::call_name(kind) << " " << n;
    }
  }
  EXPECT_EQ(failures, 10u) << "three of each but one reservation; a refused release is no failure";
  EXPECT_TRUE(opener.open(memory.header()).is_ok());
}

TEST_P(ShareTest, APlaceThatIsNeitherReachedNorUnmappedIsAskedOfTheDriverAgain) {
  const Address p = allocate(6_MiB);
  MemoryExporter exporter(from_->allocator());
  MemoryOpener opener(to_->devices());
  const ExportedMemory memory = exporter.export_memory(p).value();
  to_->gpu().fail(device::CallKind::kPageAccess, 2, spec::FailMode::kOn);
  to_->gpu().fail(device::CallKind::kPageUnmap, 1, spec::FailMode::kOn);
  EXPECT_FALSE(opener.open(memory.header()).is_ok());
  EXPECT_EQ(to_->gpu().ledger().mappings.count, 2u) << "the driver refused";
  to_->gpu().heal();
  EXPECT_TRUE(opener.open(memory.header()).is_ok());
  EXPECT_TRUE(to_->gpu().leak_check()) << "both were asked for again";
}

TEST_P(ShareTest, APlaceThatTheDriverDoesNotUnmapIsNotUsedAgain) {
  const Address p = allocate(2_MiB);
  MemoryExporter exporter(from_->allocator());
  MemoryOpener opener(to_->devices());
  const ExportedMemory memory = exporter.export_memory(p).value();
  std::optional<OpenedMemory> first = opener.open(memory.header()).value();
  const Address there = first->address();
  to_->gpu().fail(device::CallKind::kPageUnmap, 1, spec::FailMode::kOn);
  first.reset();
  std::optional<OpenedMemory> second = opener.open(memory.header()).value();
  EXPECT_NE(second->address(), there);
  to_->gpu().heal();
  second.reset();
  EXPECT_TRUE(to_->gpu().leak_check()) << "the driver is asked again";
}

TEST_P(ShareTest, AnOpenersEndAsksOnceMoreAndDisturbsNoCapture) {
  const Address p = allocate(2_MiB);
  MemoryExporter exporter(from_->allocator());
  const ExportedMemory memory = exporter.export_memory(p).value();
  for (const bool captures : {false, true}) {
    std::optional<MemoryOpener> opener(std::in_place, to_->devices());
    std::optional<OpenedMemory> opened = opener->open(memory.header()).value();
    to_->gpu().fail(device::CallKind::kPageUnmap, 1, spec::FailMode::kOn);
    opened.reset();
    to_->gpu().heal();
    EXPECT_EQ(to_->gpu().ledger().mappings.count, 1u) << "the driver refused";
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      opener.reset();
      end_child(to_->gpu().ledger().mappings.count == 1 ? 0 : 1);  // C25
    }
    int status = 1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    const Stream capturing = to_->stream();
    const auto begin = [&] { return to_->gpu().begin_capture(capturing, CaptureMode::kGlobal); };
    ASSERT_TRUE(!captures || begin().is_ok());
    opener.reset();
    EXPECT_EQ(to_->gpu().ledger().mappings.count, 0u);
    EXPECT_EQ(to_->gpu().ledger().reservations.count, 0u);
    EXPECT_TRUE(!captures || to_->gpu().end_capture(capturing).is_ok());
  }
}

TEST_P(ShareTest, TheThreadsCaptureModeComesBack) {
  const Address p = allocate(4_MiB);
  MemoryExporter exporter(from_->allocator());
  MemoryOpener opener(to_->devices());
  const ExportedMemory memory = exporter.export_memory(p).value();
  for (const CaptureMode mode :
       {CaptureMode::kThreadLocal, CaptureMode::kRelaxed, CaptureMode::kGlobal}) {
    ASSERT_TRUE(to_->device().exchange_capture_mode(mode).is_ok());
    EXPECT_TRUE(opener.open(memory.header()).is_ok());
    EXPECT_EQ(to_->device().exchange_capture_mode(mode).value(), mode);
  }
}

TEST_P(ShareTest, ACaptureOfAnotherStreamGoesOn) {
  const Address p = allocate(4_MiB);
  MemoryExporter exporter(from_->allocator());
  MemoryOpener opener(to_->devices());
  const ExportedMemory memory = exporter.export_memory(p).value();
  const Stream capturing = to_->stream();
  ASSERT_TRUE(to_->gpu().begin_capture(capturing, device::CaptureMode::kGlobal).is_ok());
  {
    const auto opened = opener.open(memory.header());
    EXPECT_TRUE(opened.is_ok()) << opened.status().why();
  }
  EXPECT_EQ(to_->device().capture_status(capturing.handle).value(), device::CaptureStatus::kActive);
  EXPECT_TRUE(to_->gpu().end_capture(capturing).is_ok());
  EXPECT_TRUE(to_->gpu().leak_check());
}

TEST_P(ShareTest, AForkedChildOpensAndClosesNothing) {
  const Address p = allocate(4_MiB);
  MemoryExporter exporter(from_->allocator());
  MemoryOpener opener(to_->devices());
  const ExportedMemory memory = exporter.export_memory(p).value();
  std::optional<OpenedMemory> opened = opener.open(memory.header()).value();
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const Code code = opener.open(memory.header()).code();
    const auto before = to_->gpu().ledger().mappings.count;
    opened.reset();
    end_child(code == Code::kForked && to_->gpu().ledger().mappings.count == before ? 0 : 1);
  }
  int status = 1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_P(ShareTest, ALostDeviceIsTheAnswer) {
  const Address p = allocate(2_MiB);
  MemoryExporter exporter(from_->allocator());
  MemoryOpener opener(to_->devices());
  const ExportedMemory memory = exporter.export_memory(p).value();
  const OpenedMemory opened = opener.open(memory.header()).value();
  to_->gpu().lose(DeviceId{0});
  EXPECT_TRUE(opener.open(memory.header()).is_ok()) << "what is open needs no call";
  MemoryOpener other(to_->devices());
  EXPECT_EQ(other.open(memory.header()).code(), Code::kDeviceLost);
  from_->gpu().lose(DeviceId{0});
  EXPECT_EQ(exporter.export_memory(p).code(), Code::kDeviceLost);
}

TEST(Share, ADeviceThatSharesNothingSaysSo) {
  device::HostDevice host(DeviceId{0}, 64_MiB);
  device::Device* const devices[] = {&host};
  const auto allocator = CachingAllocator::create(devices, Config{}).value();
  const Stream stream = host.identify(host.create_stream().value().handle).value();
  const Address p = allocator->allocate(1_MiB, stream).value();
  MemoryExporter exporter(*allocator);
  EXPECT_EQ(exporter.export_memory(p).code(), Code::kUnsupported);
  share::PeerAccess peers(devices);
  EXPECT_EQ(peers.copy(p, DeviceId{0}, p, DeviceId{0}, 512_B, stream).code(), Code::kUnsupported);
  EXPECT_EQ(peers.enable(DeviceId{0}, DeviceId{1}).code(), Code::kInvalidArgument);
  EXPECT_EQ(peers.enable(DeviceId{-1}, DeviceId{0}).code(), Code::kInvalidArgument);
  EXPECT_TRUE(allocator->free(p).is_ok());
}

/// A device whose driver does not say its name.
class Nameless final : public device::ForwardingDevice {
 public:
  explicit Nameless(device::Device& inner) : ForwardingDevice(inner), shares_(*inner.sharing()) {}
  device::Sharing* sharing() noexcept override { return &shares_; }

 private:
  class Shares final : public device::ForwardingSharing {
   public:
    using ForwardingSharing::ForwardingSharing;
    Result<device::DeviceUuid> uuid() const noexcept override {
      return Status{Code::kUnsupported, "no name"};
    }
  };
  Shares shares_;
};

TEST(Share, ADeviceWithoutANameIsNotInTheWayOfAnother) {
  ShareProcess from(ShareProcess::usual());
  ShareProcess to(ShareProcess::usual());
  MemoryExporter exporter(from.allocator());
  Nameless first(to.device(0));
  device::Device* const devices[] = {&first, &to.device(1)};
  MemoryOpener opener(devices);
  const Address p = from.allocator().allocate(4_MiB, from.stream(0)).value();
  const Address q = from.allocator().allocate(4_MiB, from.stream(1)).value();
  const ExportedMemory of_first = exporter.export_memory(p).value();
  const ExportedMemory of_second = exporter.export_memory(q).value();
  EXPECT_EQ(opener.open(of_first.header()).code(), Code::kUnsupported)
      << "it may be the exporter's";
  const auto opened = opener.open(of_second.header());
  ASSERT_TRUE(opened.is_ok()) << opened.status().why();
  EXPECT_EQ(opened.value().device(), DeviceId{1});
}

TEST(ShareOverCuda, ADriverThatLacksACallSharesNothing) {
  ShareProcess process(ShareProcess::usual());
  struct Lack {
    const char* function;
    bool of_peers;
  };
  for (const Lack lack :
       {Lack{"cuDeviceGetUuid", false}, Lack{"cuIpcGetMemHandle", false},
        Lack{"cuIpcOpenMemHandle", false}, Lack{"cuIpcCloseMemHandle", false},
        Lack{"cuMemGetAllocationPropertiesFromHandle", false},
        Lack{"cuMemExportToShareableHandle", false}, Lack{"cuMemImportFromShareableHandle", false},
        Lack{"cuDeviceCanAccessPeer", true}, Lack{"cuCtxEnablePeerAccess", true},
        Lack{"cuMemcpyAsync", true}, Lack{"cuMemcpyPeerAsync", true}}) {
    SCOPED_TRACE(lack.function);
    spec::cuda_face::attach(&process.gpu());
    spec::cuda_face::hide(lack.function);
    {
      const auto zero = cuda::CudaDevice::open(0, DeviceId{0}, nullptr).value();
      const auto one = cuda::CudaDevice::open(1, DeviceId{1}, nullptr).value();
      device::Sharing& shares = *zero->sharing();
      device::Sharing& others = *one->sharing();
      const Code share = lack.of_peers ? Code::kOk : Code::kUnsupported;
      EXPECT_EQ(shares.uuid().code(), share);
      const auto page = shares.page_create(2_MiB, ShareKind::kDescriptor);
      EXPECT_EQ(page.code(), share);
      const PageHandle handle = page.is_ok() ? page.value() : zero->page_create(2_MiB).value();
      EXPECT_EQ(shares.page_kind(handle).code(), share);
      EXPECT_EQ(shares.page_export(handle).code(), share);
      EXPECT_TRUE(zero->page_release(handle).is_ok());
      const Address segment = zero->segment_alloc(2_MiB).value();
      EXPECT_EQ(shares.segment_export(segment).code(), share);
      EXPECT_TRUE(zero->segment_free(segment).is_ok());
      if (!lack.of_peers) {
        device::ShareHandle none;
        none.kind = ShareKind::kFabric;
        EXPECT_EQ(shares.page_import(none, 2_MiB).code(), Code::kUnsupported);
        EXPECT_EQ(shares.segment_open(none).code(), Code::kUnsupported);
        EXPECT_EQ(shares.segment_close(segment).code(), Code::kUnsupported);
      } else {
        EXPECT_FALSE(shares.can_reach(others).value());
        EXPECT_EQ(shares.reach(others).code(), Code::kUnsupported);
        EXPECT_EQ(shares.copy(segment, segment, 512_B, StreamHandle{1}).code(), Code::kUnsupported);
        EXPECT_EQ(
            shares.copy_between(segment, others, segment, shares, 512_B, StreamHandle{1}).code(),
            Code::kUnsupported);
      }
    }
    spec::cuda_face::attach(nullptr);
  }
}

TEST(ShareOverCuda, WhatTheGpuOrTheProcessMayNotIsUnsupported) {
  ShareProcess process(ShareProcess::usual(), true);
  device::Sharing& shares = *process.device().sharing();
  EXPECT_EQ(shares.page_create(2_MiB, ShareKind::kSegment).code(), Code::kUnsupported);
  EXPECT_EQ(shares.page_create(2_MiB, ShareKind::kNone).code(), Code::kUnsupported);
  for (const cuda::CallResult answer : {cuda::kErrorNotPermitted, cuda::kErrorNotSupported}) {
    spec::cuda_face::answer_next(answer);
    EXPECT_EQ(shares.page_create(2_MiB, ShareKind::kFabric).code(), Code::kUnsupported);
  }
  const PageHandle plain = process.device().page_create(2_MiB).value();
  EXPECT_EQ(shares.page_kind(plain).value(), ShareKind::kNone);
  EXPECT_EQ(shares.page_export(plain).code(), Code::kUnsupported);
  EXPECT_TRUE(process.device().page_release(plain).is_ok());
  device::ShareHandle handle;
  EXPECT_EQ(shares.page_import(handle, 2_MiB).code(), Code::kUnsupported);
  handle.kind = ShareKind::kFabric;
  EXPECT_EQ(shares.page_import(handle, 2_MiB).code(), Code::kInvalidArgument);
  EXPECT_EQ(shares.segment_open(handle).code(), Code::kDriverError) << "invalid context";
  EXPECT_EQ(shares.segment_close(Address{4096}).code(), Code::kInvalidArgument);
  EXPECT_EQ(shares.segment_export(Address{4096}).code(), Code::kInvalidArgument);
  const Address own = process.device().segment_alloc(2_MiB).value();
  const device::ShareHandle of_this = shares.segment_export(own).value();
  EXPECT_EQ(shares.segment_open(of_this).code(), Code::kDriverError) << "of this process";
  EXPECT_TRUE(process.device().segment_free(own).is_ok());
  for (const int attribute : {cuda::kAttributeDescriptorHandles, cuda::kAttributeFabricHandles}) {
    spec::cuda_face::set_attribute(attribute, 0);
    const auto without = cuda::CudaDevice::open(0, DeviceId{0}, nullptr).value();
    const ShareKind kind =
        attribute == cuda::kAttributeFabricHandles ? ShareKind::kFabric : ShareKind::kDescriptor;
    EXPECT_EQ(without->sharing()->page_create(2_MiB, kind).code(), Code::kUnsupported);
    spec::cuda_face::set_attribute(attribute, 1);
  }
}

}  // namespace
}  // namespace ashlar::props
