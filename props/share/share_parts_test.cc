// The parts of sharing one by one: headers, descriptors on their way, devices of one handle a segment.
//
// Imitates: processes that send other things than headers, hosts that do not let descriptors be fetched, drivers that refuse.
// Does not prove: anything about bytes (ipc_main.cc).
#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <functional>
#include <iterator>
#include <thread>

#include "props/share/share_worlds.h"
#include "props/share/socket_ends.h"

namespace ashlar::props {
namespace {

using device::CallKind;
using device::ShareKind;
using share::ShareHeader;

ShareHeader good_header() {
  ShareHeader header;
  header.exporter = 7;
  header.segment = Address{std::uint64_t{1} << 41};
  header.segment_size = 8_MiB;
  header.parts_offset = 2_MiB;
  header.offset = 4_KiB;
  header.size = 3_MiB;
  for (std::uint64_t i = 0; i < 2; ++i) {
    share::SharedPart part{2_MiB, i + 1, {}};
    part.handle.kind = ShareKind::kDescriptor;
    part.handle.descriptor = 5;
    header.parts.push_back(part);
  }
  return header;
}

Code code_of(const ShareHeader& header) {
  return share::read_header(share::write_header(header)).code();
}

TEST(ShareHeaderTest, WhatIsReadIsWhatWasWritten) {
  const ShareHeader read = share::read_header(share::write_header(good_header())).value();
  EXPECT_EQ(share::write_header(read), share::write_header(good_header()));
  EXPECT_EQ(read.descriptors(), 2u);
}

TEST(ShareHeaderTest, EveryPartThatCannotBeIsRefused) {
  using Change = std::function<void(ShareHeader&)>;
  const Change changes[] = {
      [](ShareHeader& h) { h.parts.clear(); },
      [](ShareHeader& h) { h.parts[0].size = Bytes{}; },
      [](ShareHeader& h) { h.parts[0].size = Bytes::max(); },
      [](ShareHeader& h) { h.parts[0].handle.kind = ShareKind::kNone; },
      [](ShareHeader& h) { h.parts[0].handle.kind = static_cast<ShareKind>(4); },
      [](ShareHeader& h) { h.parts[0].handle.kind = ShareKind::kSegment; },
      [](ShareHeader& h) { h.parts[1].handle.kind = ShareKind::kSegment; },
      [](ShareHeader& h) {  // the two are the whole segment
        h.parts[0].handle.kind = ShareKind::kSegment;
        h.parts_offset = Bytes{};
        h.segment_size = 4_MiB;
      },
      [](ShareHeader& h) {
        h.parts.resize(1);
        h.parts[0].handle.kind = ShareKind::kSegment;
        h.size = 1_MiB;
      },
      [](ShareHeader& h) { h.size = Bytes{}; },
      [](ShareHeader& h) { h.size = 4_MiB; },
      [](ShareHeader& h) { h.size = Bytes::max(); },
      [](ShareHeader& h) { h.offset = 4_MiB; },
      [](ShareHeader& h) { h.parts_offset = 6_MiB; },
      [](ShareHeader& h) { h.parts_offset = Bytes::max(); },
      [](ShareHeader& h) { h.segment_size = 4_MiB; },
  };
  EXPECT_EQ(code_of(good_header()), Code::kOk);
  for (const Change& change : changes) {
    ShareHeader header = good_header();
    change(header);
    EXPECT_EQ(code_of(header), Code::kMalformed) << &change - changes;
  }
}

TEST(ShareHeaderTest, PartsThatAreNoPagesOfTheDeviceAreRefused) {
  ShareProcess process;
  share::MemoryOpener opener(process.devices());
  const int none[] = {-1, -1};
  using Change = std::function<void(ShareHeader&)>;
  for (const Change& change : {Change([](ShareHeader& h) { h.parts[0].size = 1_MiB; }),
                               Change([](ShareHeader& h) { h.parts_offset = 1_MiB; }),
                               Change([](ShareHeader& h) { h.segment_size = 9_MiB; })}) {
    ShareHeader header = good_header();
    header.size = 1_MiB;
    change(header);
    EXPECT_EQ(opener.open(share::write_header(header), none).code(), Code::kInvalidArgument);
  }
  for (const CallKind kind : {CallKind::kAddressReserve, CallKind::kPageImport})
    EXPECT_EQ(process.gpu().account().by_kind[static_cast<unsigned>(kind)].calls, 0u)
        << "the device is not asked: " << device::call_name(kind);
  EXPECT_TRUE(process.gpu().leak_check());
}

class DescriptorsTest : public ::testing::Test {
 protected:
  DescriptorsTest()
      : from_(ShareProcess::only(ShareKind::kDescriptor)),
        exporter_(from_.allocator()),
        opener_(to_.devices()),
        stream_(from_.stream()) {}
  share::ExportedMemory export_new() {
    return exporter_.export_memory(from_.allocator().allocate(4_MiB, stream_).value()).value();
  }

  const DescriptorBalance balance_;
  ShareProcess from_;
  ShareProcess to_;
  share::MemoryExporter exporter_;
  share::MemoryOpener opener_;
  Stream stream_;
};

TEST_F(DescriptorsTest, AreFetchedFromTheExporter) {
  const share::ExportedMemory memory = export_new();
  ASSERT_EQ(memory.descriptors().size(), 2u);
  const std::ptrdiff_t before = open_descriptors();
  {
    const auto opened = opener_.open(memory.header());
    EXPECT_TRUE(opened.is_ok()) << opened.status().why();
  }
  EXPECT_EQ(open_descriptors(), before) << "neither copies nor the process's own stay open";
}

TEST_F(DescriptorsTest, ThatCannotBeFetchedAreSaidToBe) {
  ShareHeader header = share::read_header(export_new().header()).value();
  EXPECT_FALSE(opener_.open(share::write_header(header)).is_ok()) << "closed since";
  const std::ptrdiff_t before = open_descriptors();
  header.parts[1].handle.descriptor = -1;  // the second of two
  EXPECT_EQ(opener_.open(share::write_header(header)).code(), Code::kUnsupported);
  EXPECT_EQ(open_descriptors(), before);
  header.process = -1;
  EXPECT_EQ(opener_.open(share::write_header(header)).code(), Code::kUnsupported) << "no process";
}

TEST_F(DescriptorsTest, AnExportThatIsReplacedEnds) {
  share::ExportedMemory memory = export_new();
  const cache::PinnedRange first = memory.range();
  memory = export_new();
  EXPECT_EQ(from_.allocator().unpin(first).code(), Code::kNotFound) << "it is not pinned any more";
  const share::ExportedMemory moved = std::move(memory);
  EXPECT_EQ(moved.descriptors().size(), 2u);
}

TEST_F(DescriptorsTest, AnythingElseOnASocketIsRefused) {
  const share::ExportedMemory memory = export_new();
  const std::uint32_t sizes[][2] = {{0, ~0u}, {~0u, 0}, {88, 1}, {4, 0}};
  for (const auto& size : sizes) {
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    const std::vector<char> junk(88 + 1, 'x');
    ASSERT_EQ(write(ends[0], size, sizeof size), static_cast<ssize_t>(sizeof size));
    ASSERT_EQ(write(ends[0], junk.data(), size[0] == 4 ? 3 : junk.size()),
              size[0] == 4 ? 3 : static_cast<ssize_t>(junk.size()));
    close(ends[0]);
    EXPECT_EQ(share::receive_memory(ends[1]).code(), Code::kMalformed) << size[0];
    close(ends[1]);
  }
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  ASSERT_EQ(write(ends[0], "abc", 3), 3);
  close(ends[0]);
  EXPECT_EQ(share::receive_memory(ends[1]).code(), Code::kMalformed) << "cut short";
  close(ends[1]);
  EXPECT_EQ(share::receive_memory(-1).code(), Code::kInvalidArgument);
  EXPECT_EQ(share::send_memory(-1, memory).code(), Code::kInvalidArgument);
}

TEST_F(DescriptorsTest, TooMuchIsRefusedBeforeAnythingMoreIsTakenAndTheMostIsNot) {
  const auto most = static_cast<std::uint32_t>(share::header_bytes_max());
  struct Announced {
    std::uint32_t header_bytes;
    std::uint32_t descriptors;
    int left;  ///< of the bytes behind it
  };
  for (const Announced& each :
       {Announced{88, share::kSharedPartsMax + 1, 88}, Announced{most + 1, 0, 88},
        Announced{88, share::kSharedPartsMax, 0}, Announced{most, 0, 0}}) {
    const Ends ends;
    const std::vector<char> junk(88, 'x');
    ends.announce(each.header_bytes, each.descriptors);
    ASSERT_EQ(write(ends.both[0], junk.data(), junk.size()), 88);
    ASSERT_EQ(shutdown(ends.both[0], SHUT_WR), 0);  // no end is waited for
    EXPECT_EQ(share::receive_memory(ends.both[1]).code(), Code::kMalformed);
    EXPECT_EQ(ends.waiting(), each.left) << each.header_bytes << " " << each.descriptors;
  }
}

TEST_F(DescriptorsTest, WhatHasNotComeYetIsNotTheEnd) {
  const share::ExportedMemory memory = export_new();
  const Ends ends;
  ASSERT_EQ(fcntl(ends.both[1], F_SETFL, O_NONBLOCK), 0);
  EXPECT_EQ(share::receive_memory(ends.both[1]).code(), Code::kNotReady);
  ASSERT_TRUE(share::send_memory(ends.both[0], memory).is_ok());
  EXPECT_TRUE(share::receive_memory(ends.both[1]).is_ok());
}

TEST_F(DescriptorsTest, MoreThanWereAnnouncedAreClosed) {
  const std::ptrdiff_t before = open_descriptors();
  {
    const Ends ends;
    ends.announce(0, 1);
    ends.send_descriptors(3);
    EXPECT_EQ(share::receive_memory(ends.both[1]).code(), Code::kMalformed);
  }
  EXPECT_EQ(open_descriptors(), before);
}

TEST_F(DescriptorsTest, AProgramThatTheReceiverStartsDoesNotHaveThem) {
  const share::ExportedMemory memory = export_new();
  const Ends ends;
  ASSERT_TRUE(share::send_memory(ends.both[0], memory).is_ok());
  const share::ReceivedMemory received = share::receive_memory(ends.both[1]).value();
  ASSERT_EQ(received.descriptors.all().size(), 2u);
  for (const int each : received.descriptors.all())
    EXPECT_NE(fcntl(each, F_GETFD) & FD_CLOEXEC, 0) << each;
}

/// Interrupts a thread's calls again and again while this lives.
class Interrupter {
 public:
  explicit Interrupter(pthread_t thread) : thread_(thread) {
    struct sigaction caught {};
    caught.sa_handler = [](int) {};  // not SA_RESTART: a call that waits fails with EINTR
    sigaction(SIGUSR1, &caught, &before_);
    worker_ = std::thread([this] {
      while (!is_over_) {
        pthread_kill(thread_, SIGUSR1);
        std::this_thread::sleep_for(std::chrono::microseconds(200));
      }
    });
  }
  ~Interrupter() {
    is_over_ = true;
    worker_.join();
    struct sigaction ignored {};
    ignored.sa_handler = SIG_IGN;  // drops a signal that is still on its way
    sigaction(SIGUSR1, &ignored, nullptr);
    sigaction(SIGUSR1, &before_, nullptr);
  }
  Interrupter(const Interrupter&) = delete;
  Interrupter& operator=(const Interrupter&) = delete;

 private:
  const pthread_t thread_;
  struct sigaction before_ {};
  std::atomic<bool> is_over_{false};
  std::thread worker_;
};

TEST_F(DescriptorsTest, SignalsDoNotEndATransfer) {
  ShareProcess of_fabric;  // nothing but a header is sent
  share::MemoryExporter exporter(of_fabric.allocator());
  const Address p = of_fabric.allocator().allocate(4_MiB, of_fabric.stream()).value();
  const share::ExportedMemory plain = exporter.export_memory(p).value();
  const share::ExportedMemory carried = export_new();
  ASSERT_TRUE(plain.descriptors().empty());
  constexpr int kSent = 40;
  for (const auto& [memory, is_sender] : {std::pair(&plain, false), std::pair(&plain, true),
                                          std::pair(&carried, false), std::pair(&carried, true)}) {
    const Ends ends;
    const int least = 1;  // the kernel's least: a sender soon waits
    ASSERT_EQ(setsockopt(ends.both[0], SOL_SOCKET, SO_SNDBUF, &least, sizeof least), 0);
    // The other side is slow, so the one that is interrupted waits in every kind of call.
    const auto rest = [] { std::this_thread::sleep_for(std::chrono::milliseconds(2)); };
    const auto pass_on = [&, sent = memory](bool sends) {
      const Status done = sends ? share::send_memory(ends.both[0], *sent)
                                : share::receive_memory(ends.both[1]).status();
      EXPECT_TRUE(done.is_ok()) << done.why();
      if (!done.is_ok()) shutdown(ends.both[0], SHUT_RDWR);  // nobody waits for the rest
    };
    std::thread other([&, sends = !is_sender] {
      for (int i = 0; i < kSent; ++i) {
        rest();
        pass_on(sends);
      }
    });
    {
      const Interrupter interrupter(pthread_self());
      for (int i = 0; i < kSent; ++i) pass_on(is_sender);
    }
    other.join();
  }
}

TEST_F(DescriptorsTest, EachExporterHasANumberOfItsOwn) {  // mirrors are told apart by it
  ShareProcess other(ShareProcess::only(ShareKind::kDescriptor));
  share::MemoryExporter of_other(other.allocator());
  const Address p = other.allocator().allocate(4_MiB, other.stream()).value();
  const share::ExportedMemory a = export_new();
  const share::ExportedMemory b = of_other.export_memory(p).value();
  const ShareHeader here = share::read_header(a.header()).value();
  const ShareHeader there = share::read_header(b.header()).value();
  EXPECT_EQ(here.segment, there.segment) << "two processes may have memory at one address";
  EXPECT_NE(here.exporter, there.exporter);
  const share::OpenedMemory first = opener_.open(a.header(), a.descriptors()).value();
  const share::OpenedMemory second = opener_.open(b.header(), b.descriptors()).value();
  EXPECT_NE(first.address(), second.address());
}

TEST_F(DescriptorsTest, AReceiverWithoutRoomForThemIsToldSo) {
  const share::ExportedMemory memory = export_new();
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  ASSERT_TRUE(share::send_memory(ends[0], memory).is_ok());
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const int next = dup(ends[0]);  // the lowest number that is free
  close(next);
  const rlimit one_more{static_cast<rlim_t>(next) + 1, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &one_more), 0);
  const auto received = share::receive_memory(ends[1]);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(received.code(), Code::kDriverError) << received.status().why();
  close(ends[0]);
  close(ends[1]);
}

TEST_F(DescriptorsTest, CredentialsBesideThemDoNoHarm) {
  constexpr std::size_t kMost = 250;  // that a message carries
  for (const std::size_t count : {std::size_t{1}, kMost}) {
    const Ends ends;
    const int on = 1;
    ASSERT_EQ(setsockopt(ends.both[1], SOL_SOCKET, SO_PASSCRED, &on, sizeof on), 0);
    ends.announce(0, static_cast<std::uint32_t>(count));
    ends.send_descriptors(count);
    const auto received = share::receive_memory(ends.both[1]);
    ASSERT_TRUE(received.is_ok()) << received.status().why();
    EXPECT_EQ(received.value().descriptors.all().size(), count);
  }
}

TEST(SingleHandleTest, ASegmentShorterThanItsPageIsOpenedWithThePage) {
  ShareProcess from;
  ShareProcess to;
  share::SingleHandleDevice single(from.shareable());
  device::Device* const devices[] = {&single};
  const Config config = parse_config("cache:off", nullptr).value();
  const auto allocator = CachingAllocator::create(devices, config).value();
  const Address p = allocator->allocate(1000_B, from.stream()).value();
  {
    share::MemoryExporter exporter(*allocator);
    share::MemoryOpener opener(to.devices());
    const share::ExportedMemory memory = exporter.export_memory(p).value();
    const auto opened = opener.open(memory.header());
    EXPECT_TRUE(opened.is_ok()) << opened.status().why();
  }
  EXPECT_TRUE(allocator->free(p).is_ok());
}

TEST(SingleHandleTest, EveryCallThatFailsLeavesNothingBehind) {
  ShareProcess process;
  share::SingleHandleDevice single(process.shareable());
  for (const CallKind kind : {CallKind::kPageCreate, CallKind::kAddressReserve, CallKind::kPageMap,
                              CallKind::kPageAccess}) {
    process.gpu().fail(kind, 1, spec::FailMode::kOnce);
    const auto got = single.segment_alloc(3_MiB);
    EXPECT_EQ(got.code(), kind == CallKind::kPageCreate || kind == CallKind::kAddressReserve
                              ? Code::kOutOfMemory
                              : Code::kDriverError);
    EXPECT_TRUE(process.gpu().ledger().nothing_held()) << device::call_name(kind);
  }
  EXPECT_EQ(single.segment_alloc(Bytes::max()).code(), Code::kOutOfMemory);
  const Address base = single.segment_alloc(3_MiB).value();
  EXPECT_EQ(process.gpu().ledger().pages.bytes, 4_MiB) << "whole pages";
  EXPECT_TRUE(single.sharing()->segment_page(base).is_ok());
  EXPECT_EQ(single.sharing()->segment_page(base + 2_MiB).code(), Code::kInvalidArgument);
  EXPECT_EQ(single.segment_free(base + 2_MiB).code(), Code::kInvalidArgument);
  process.gpu().fail(CallKind::kPageUnmap, 1, spec::FailMode::kOnce);
  EXPECT_EQ(single.segment_free(base).code(), Code::kDriverError);
  EXPECT_TRUE(single.segment_free(base).is_ok()) << "the refusal changed nothing";
  EXPECT_EQ(single.segment_free(base).code(), Code::kInvalidArgument);
  EXPECT_TRUE(process.gpu().ledger().nothing_held());
  EXPECT_TRUE(process.gpu().take_faults().empty());
}

/// A device that makes a call as soon as addresses are given back, as another thread would.
class AtRelease final : public device::ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  Status address_release(Address base, Bytes size) noexcept override {
    const Status released = ForwardingDevice::address_release(base, size);
    if (then) std::exchange(then, nullptr)();
    return released;
  }
  std::function<void()> then;
};

TEST(SingleHandleTest, AddressesThatComeBackAtOnceAreTheNewSegments) {
  spec::SimGpuOptions options = ShareProcess::usual();
  options.adversarial = false;  // the lowest addresses that are free
  ShareProcess process(options);
  AtRelease inner(process.device());
  share::SingleHandleDevice single(inner);
  const Address base = single.segment_alloc(4_MiB).value();
  Address next;
  inner.then = [&] { next = single.segment_alloc(4_MiB).value(); };
  EXPECT_TRUE(single.segment_free(base).is_ok());
  ASSERT_EQ(next, base) << "the test is about one place";
  EXPECT_TRUE(single.sharing()->segment_page(next).is_ok());
  EXPECT_TRUE(single.segment_free(next).is_ok());
  EXPECT_TRUE(process.gpu().ledger().nothing_held());
}

TEST(SingleHandleTest, OfADeviceThatSharesNothingNeitherDoesIt) {
  device::HostDevice host(DeviceId{0}, 64_MiB);
  share::SingleHandleDevice single(host);
  EXPECT_EQ(single.sharing(), nullptr);
}

TEST(ShareKindTest, EachHasAName) {
  EXPECT_STREQ(device::share_kind_name(ShareKind::kNone), "none");
  EXPECT_STREQ(device::share_kind_name(ShareKind::kSegment), "segment");
  EXPECT_STREQ(device::share_kind_name(ShareKind::kDescriptor), "descriptor");
  EXPECT_STREQ(device::share_kind_name(ShareKind::kFabric), "fabric");
  EXPECT_STREQ(device::share_kind_name(static_cast<ShareKind>(9)), "unknown");
}

}  // namespace
}  // namespace ashlar::props
