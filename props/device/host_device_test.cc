// HostDevice beyond the common contract: its memory is real, its handles are checked, and its
// ledger counts what is handed out.
//
// Imitates: code that writes to the memory it mapped, moves a page to another address, and passes
// dead handles.
// Does not prove: behaviour when the kernel runs out of memory.
#include <gtest/gtest.h>

#include <csetjmp>
#include <csignal>
#include <cstring>

#include <ashlar/device/host_device.h>

namespace ashlar {
namespace {

unsigned char* bytes_at(Address a) { return static_cast<unsigned char*>(a.pointer()); }

TEST(HostDeviceTest, ASegmentCanBeWrittenFromItsFirstByteToItsLast) {
  device::HostDevice device;
  const Bytes size = 5_MiB + 77_B;
  const auto base = device.segment_alloc(size);
  ASSERT_TRUE(base.is_ok());
  EXPECT_EQ(base.value().value() % (2_MiB).count(), 0u);
  std::memset(base.value().pointer(), 0x5a, size.count());
  EXPECT_EQ(bytes_at(base.value())[size.count() - 1], 0x5a);
  EXPECT_TRUE(device.segment_free(base.value()).is_ok());
}

TEST(HostDeviceTest, APageKeepsItsBytesWhenItMovesToAnotherAddress) {
  device::HostDevice device;
  const auto range = device.address_reserve(4_MiB, 0_B);
  const auto page = device.page_create(2_MiB);
  ASSERT_TRUE(range.is_ok() && page.is_ok());
  const Address low = range.value();
  const Address high = low + 2_MiB;
  ASSERT_TRUE(device.page_map(low, 2_MiB, page.value()).is_ok());
  ASSERT_TRUE(device.page_access(low, 2_MiB).is_ok());
  std::strcpy(static_cast<char*>(low.pointer()), "ashlar");
  ASSERT_TRUE(device.page_map(high, 2_MiB, page.value()).is_ok());
  ASSERT_TRUE(device.page_access(high, 2_MiB).is_ok());
  ASSERT_TRUE(device.page_unmap(low, 2_MiB).is_ok());
  EXPECT_STREQ(static_cast<const char*>(high.pointer()), "ashlar");
  EXPECT_TRUE(device.page_unmap(high, 2_MiB).is_ok());
  EXPECT_TRUE(device.page_release(page.value()).is_ok());
  EXPECT_TRUE(device.address_release(low, 4_MiB).is_ok());
}

TEST(HostDeviceTest, AReservationHasAnAlignmentAboveThePageSize) {
  device::HostDevice device;
  for (int i = 0; i < 4; ++i) {
    const auto range = device.address_reserve(2_MiB, 64_MiB);
    ASSERT_TRUE(range.is_ok());
    EXPECT_EQ(range.value().value() % (64_MiB).count(), 0u);
  }
  EXPECT_EQ(device.address_reserve(2_MiB, 3_MiB).code(), Code::kInvalidArgument);
  EXPECT_EQ(device.address_reserve(Bytes{std::uint64_t{1} << 60}, 0_B).code(),
            Code::kOutOfAddresses);
}

sigjmp_buf fault_exit;
void on_fault(int) { siglongjmp(fault_exit, 1); }

/// True if a write to `at` is a fault.
bool faults(Address at) {
  struct sigaction action {};
  struct sigaction segv_before {};
  struct sigaction bus_before {};
  action.sa_handler = on_fault;
  sigaction(SIGSEGV, &action, &segv_before);
  sigaction(SIGBUS, &action, &bus_before);
  volatile bool faulted = true;
  if (sigsetjmp(fault_exit, 1) == 0) {
    *static_cast<volatile unsigned char*>(at.pointer()) = 1;
    faulted = false;
  }
  sigaction(SIGSEGV, &segv_before, nullptr);
  sigaction(SIGBUS, &bus_before, nullptr);
  return faulted;
}

TEST(HostDeviceTest, AnAccessFaultsUnlessTheRangeIsMappedAndHasAccess) {
  device::HostDevice device;
  const Address at = device.address_reserve(2_MiB, 0_B).value_or(Address{});
  const PageHandle page = device.page_create(2_MiB).value_or(PageHandle{});
  EXPECT_TRUE(faults(at)) << "reserved only";
  ASSERT_TRUE(device.page_map(at, 2_MiB, page).is_ok());
  EXPECT_TRUE(faults(at)) << "mapped, without access";
  ASSERT_TRUE(device.page_access(at, 2_MiB).is_ok());
  EXPECT_FALSE(faults(at)) << "mapped, with access";
  ASSERT_TRUE(device.page_unmap(at, 2_MiB).is_ok());
  EXPECT_TRUE(faults(at)) << "unmapped again";
}

TEST(HostDeviceTest, DeadAndForeignHandlesAreErrors) {
  device::HostDevice device;
  const auto event = device.event_create();
  const auto stream = device.create_stream();
  const auto page = device.page_create(2_MiB);
  ASSERT_TRUE(event.is_ok() && stream.is_ok() && page.is_ok());
  EXPECT_TRUE(device.event_destroy(event.value()).is_ok());
  EXPECT_EQ(device.event_destroy(event.value()).code(), Code::kInvalidHandle);
  EXPECT_EQ(device.event_query(event.value()).code(), Code::kInvalidHandle);
  EXPECT_EQ(device.event_record(event.value(), device::HostDevice::kDefaultStream).code(),
            Code::kInvalidHandle);
  EXPECT_EQ(device.event_synchronize(event.value(), 0).code(), Code::kInvalidHandle);
  EXPECT_TRUE(device.destroy_stream(stream.value().handle).is_ok());
  EXPECT_EQ(device.destroy_stream(stream.value().handle).code(), Code::kInvalidHandle);
  EXPECT_EQ(device.destroy_stream(device::HostDevice::kDefaultStream).code(), Code::kInvalidHandle);
  EXPECT_EQ(device.identify(stream.value().handle).code(), Code::kInvalidHandle);
  EXPECT_EQ(device.capture_status(stream.value().handle).code(), Code::kInvalidHandle);
  EXPECT_TRUE(device.page_release(page.value()).is_ok());
  EXPECT_EQ(device.page_release(page.value()).code(), Code::kInvalidHandle);
}

TEST(HostDeviceTest, TheDefaultStreamsOfTwoDevicesHaveDifferentIdentities) {
  device::HostDevice first(DeviceId{0});
  device::HostDevice second(DeviceId{1});
  const auto a = first.identify(device::HostDevice::kDefaultStream);
  const auto b = second.identify(device::HostDevice::kDefaultStream);
  ASSERT_TRUE(a.is_ok() && b.is_ok());
  EXPECT_NE(a.value().id, b.value().id);
  EXPECT_EQ(b.value().device, DeviceId{1});
}

TEST(HostDeviceTest, TheLedgerCountsWhatIsHandedOut) {
  device::HostDevice device;
  const auto base = device.segment_alloc(3_MiB);
  const auto event = device.event_create();
  ASSERT_TRUE(base.is_ok() && event.is_ok());
  EXPECT_EQ(device.ledger().segments, 1u);
  EXPECT_EQ(device.ledger().events, 1u);
  EXPECT_EQ(device.ledger().held, 3_MiB);
  EXPECT_TRUE(device.segment_free(base.value()).is_ok());
  EXPECT_TRUE(device.event_destroy(event.value()).is_ok());
  EXPECT_EQ(device.ledger(), device::HostLedger{});
}

}  // namespace
}  // namespace ashlar
