// Where an opener gets descriptors and devices from (row DEV-21): descriptors that came, descriptors that it fetches, devices that
// share nothing.
//
// Imitates: a worker that is started without a standard input, an exporter whose process is gone, machines with devices of
// several makers. Does not prove: that a host permits to fetch (ci/gpu).
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "props/share/share_worlds.h"

namespace ashlar::props {
namespace {

using device::CallKind;
using device::ShareKind;
using share::ExportedMemory;
using share::ShareHeader;

/// An exporter whose pages travel as `kind`, and an opener.
struct Pair {
  explicit Pair(const spec::SimGpuOptions& options)
      : from(options), exporter(from.allocator()), opener(to.devices()), stream(from.stream()) {}
  ExportedMemory export_new(Bytes size) {
    return exporter.export_memory(from.allocator().allocate(size, stream).value()).value();
  }
  Bytes mapped() { return to.gpu().ledger().mappings.bytes; }

  const DescriptorBalance balance;
  ShareProcess from;
  ShareProcess to;
  share::MemoryExporter exporter;
  share::MemoryOpener opener;
  const Stream stream;
};

TEST(FetchingTest, OneDescriptorIsFetchedAsManyAre) {
  for (const Bytes size : {2_MiB, 6_MiB}) {
    Pair pair(ShareProcess::only(ShareKind::kDescriptor));
    const ExportedMemory memory = pair.export_new(size);
    ASSERT_EQ(memory.descriptors().size(), size / 2_MiB);
    const auto opened = pair.opener.open(memory.header());
    ASSERT_TRUE(opened.is_ok()) << opened.status().why();
    EXPECT_EQ(pair.mapped(), size);
  }
}

TEST(FetchingTest, OfPartsThatDifferThoseWithDescriptorsAreFetched) {
  spec::SimGpuOptions options = ShareProcess::usual();
  Pair pair(options);
  // The device refuses one fabric handle: later pages have descriptors.
  pair.from.gpu().fail(CallKind::kPageCreate, 2, spec::FailMode::kOnce, Code::kUnsupported);
  const ExportedMemory memory = pair.export_new(6_MiB);
  ASSERT_EQ(memory.descriptors().size(), 2u) << "of three parts";
  const auto opened = pair.opener.open(memory.header());
  ASSERT_TRUE(opened.is_ok()) << opened.status().why();
  EXPECT_EQ(pair.mapped(), 6_MiB);
}

TEST(FetchingTest, WithoutDescriptorsTheExportersProcessIsNotNeeded) {
  Pair pair(ShareProcess::only(ShareKind::kFabric));
  const ExportedMemory memory = pair.export_new(4_MiB);
  ShareHeader header = share::read_header(memory.header()).value();
  header.process = -1;
  const auto opened = pair.opener.open(share::write_header(header));
  EXPECT_TRUE(opened.is_ok()) << opened.status().why();
}

TEST(FetchingTest, DescriptorsThatCameAreUsedWhateverTheirNumbersAreThere) {
  Pair pair(ShareProcess::only(ShareKind::kDescriptor));
  const ExportedMemory memory = pair.export_new(4_MiB);
  ShareHeader header = share::read_header(memory.header()).value();
  for (share::SharedPart& part : header.parts) part.handle.descriptor = -1;
  const auto opened = pair.opener.open(share::write_header(header), memory.descriptors());
  ASSERT_TRUE(opened.is_ok()) << opened.status().why();
  EXPECT_EQ(pair.mapped(), 4_MiB);
}

TEST(FetchingTest, AProcessWithoutAStandardInputFetchesToo) {
  Pair pair(ShareProcess::only(ShareKind::kDescriptor));
  const ExportedMemory memory = pair.export_new(2_MiB);
  const int input = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0);
  ASSERT_GE(input, 0);
  close(STDIN_FILENO);  // the next descriptor has its number, 0
  const Status status = pair.opener.open(memory.header()).status();  // and closes it
  const bool is_free = fcntl(STDIN_FILENO, F_GETFD) == -1;
  dup2(input, STDIN_FILENO);
  close(input);
  EXPECT_TRUE(status.is_ok()) << status.why();
  EXPECT_TRUE(is_free) << "D10: the exporter's process is left open";
}

TEST(FetchingTest, ASegmentsHeaderSaysWhereItLiesInTheExporter) {
  spec::SimGpuOptions options = ShareProcess::usual();
  Pair pair(options);
  const ExportedMemory first = pair.export_new(30_MiB);
  const ExportedMemory second = pair.export_new(3_MiB);
  for (const ExportedMemory* each : {&first, &second}) {
    const ShareHeader header = share::read_header(each->header()).value();
    EXPECT_EQ(header.segment + header.parts_offset + header.offset, each->range().base);
  }
}

TEST(FetchingTest, AWholeSegmentIsAsLongAsItIs) {
  ShareProcess from;
  CachingAllocator& allocator = from.allocator("cache:off");
  const Address p = allocator.allocate(1000_B, from.stream()).value();
  {
    share::MemoryExporter exporter(allocator);
    const ExportedMemory memory = exporter.export_memory(p).value();
    ASSERT_TRUE(memory.is_whole_segment());
    const ShareHeader header = share::read_header(memory.header()).value();
    const Bytes segment = from.gpu().ledger().segments.bytes;
    ASSERT_LT(segment, from.device().traits().page_granularity) << "the test is about less";
    EXPECT_EQ(header.parts.front().size, segment);
    EXPECT_EQ(header.segment_size, segment);
  }
  EXPECT_TRUE(allocator.free(p).is_ok());
}

TEST(FetchingTest, ADeviceThatSharesNothingIsNotInTheWayOfAnother) {
  Pair pair(ShareProcess::only(ShareKind::kFabric));
  const ExportedMemory memory = pair.export_new(4_MiB);
  device::HostDevice host(DeviceId{1}, 64_MiB);
  device::Device* const devices[] = {&host, &pair.to.device()};
  share::MemoryOpener opener(devices);
  const auto opened = opener.open(memory.header());
  ASSERT_TRUE(opened.is_ok()) << opened.status().why();
  EXPECT_EQ(opened.value().device(), DeviceId{0});
  device::Device* const alone[] = {&host};
  share::MemoryOpener of_host(alone);
  EXPECT_EQ(of_host.open(memory.header()).code(), Code::kNotFound);
}

TEST(FetchingTest, ADeviceWithoutVirtualMemoryOpensNoPages) {
  Pair pair(ShareProcess::only(ShareKind::kFabric));
  const ExportedMemory memory = pair.export_new(4_MiB);
  spec::SimGpuOptions options = ShareProcess::usual();
  options.virtual_memory = false;
  ShareProcess plain(options);
  share::MemoryOpener opener(plain.devices());
  EXPECT_EQ(opener.open(memory.header()).code(), Code::kInvalidArgument);
  EXPECT_EQ(plain.gpu().account().of(CallKind::kAddressReserve).calls, 0u)
      << "the device is not asked";
}

}  // namespace
}  // namespace ashlar::props
