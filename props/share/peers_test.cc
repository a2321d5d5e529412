// Memory of one device for another, and copies between devices (row DEV-21), on the simulated devices and on CudaDevices over the
// driver's functions of the simulated GPU.
//
// Imitates: machines whose GPUs can use each other's memory, and machines whose GPUs cannot. Does not prove: what a driver does
// with the copies: no suite runs on two GPUs.
#include <gtest/gtest.h>

#include <ashlar/device/forwarding_device.h>
#include <ashlar/device/forwarding_sharing.h>

#include "props/share/share_worlds.h"

namespace ashlar::props {
namespace {

using device::CallKind;

/// A copy as a device was asked for it; the owners are null where it is an ordinary one.
struct Copied {
  Address to;
  device::Sharing* to_owner = nullptr;
  Address from;
  device::Sharing* from_owner = nullptr;
  Bytes size;
  StreamHandle stream;
  friend bool operator==(const Copied&, const Copied&) = default;
};

/// A device that writes down its copies, and passes them on.
class CopyWitness final : public device::ForwardingDevice {
 public:
  explicit CopyWitness(device::Device& inner)
      : ForwardingDevice(inner), shares_(*inner.sharing()) {}
  device::Sharing* sharing() noexcept override { return &shares_; }
  const std::vector<Copied>& copies() const { return shares_.copies; }

 private:
  struct Shares final : device::ForwardingSharing {
    using ForwardingSharing::ForwardingSharing;
    Status copy(Address to, Address from, Bytes size, StreamHandle stream) noexcept override {
      copies.push_back({to, nullptr, from, nullptr, size, stream});
      return ForwardingSharing::copy(to, from, size, stream);
    }
    Status copy_between(Address to, Sharing& to_owner, Address from, Sharing& from_owner,
                        Bytes size, StreamHandle stream) noexcept override {
      copies.push_back({to, &to_owner, from, &from_owner, size, stream});
      return ForwardingSharing::copy_between(to, to_owner, from, from_owner, size, stream);
    }
    std::vector<Copied> copies;
  };
  Shares shares_;
};

class PeersTest : public ::testing::TestWithParam<bool> {
 protected:
  PeersTest() { rebuild({}); }
  using Peers = std::vector<std::uint64_t>;  ///< SimGpuOptions::peers
  void rebuild(const Peers& peers) {
    process_.reset();
    spec::SimGpuOptions options = ShareProcess::usual();
    options.peers = peers;
    process_ = std::make_unique<ShareProcess>(options, GetParam());
    streams_ = {process_->stream(0), process_->stream(1)};
  }
  Address allocate(int device) {
    return process_->allocator("backing:segments")
        .allocate(1_MiB, streams_[static_cast<std::size_t>(device)])
        .value();
  }
  /// What a kernel of device 1 on memory of device 0 is told.
  std::size_t faults_of_a_touch(Address at) {
    spec::Touch touch;
    touch.at = at;
    touch.size = 512_B;
    EXPECT_TRUE(process_->gpu().launch(streams_[1], touch).is_ok());
    EXPECT_TRUE(process_->gpu().drain_all().is_ok());
    return process_->gpu().take_faults().size();
  }

  /// How often the driver was asked about peers, or to enable one.
  std::uint64_t asked() { return process_->gpu().account().of(CallKind::kReach).calls; }

  std::unique_ptr<ShareProcess> process_;
  std::vector<Stream> streams_;
};

INSTANTIATE_TEST_SUITE_P(Devices, PeersTest, ::testing::Bool());

TEST_P(PeersTest, EnablingReachesSegmentsThatAreThereAndThoseToCome) {
  const Address p = allocate(0);
  EXPECT_EQ(faults_of_a_touch(p), 1u);
  share::PeerAccess peers(process_->devices());
  EXPECT_TRUE(peers.enable(DeviceId{1}, DeviceId{0}).value());
  EXPECT_EQ(faults_of_a_touch(p), 0u);
  EXPECT_EQ(faults_of_a_touch(allocate(0)), 0u);
  EXPECT_EQ(asked(), 2u) << "whether, and to do it";
  EXPECT_TRUE(peers.enable(DeviceId{1}, DeviceId{0}).value());
  EXPECT_EQ(asked(), 2u) << "it is remembered";
  EXPECT_TRUE(peers.enable(DeviceId{0}, DeviceId{0}).value());
  share::PeerAccess others(process_->devices());
  EXPECT_TRUE(others.enable(DeviceId{1}, DeviceId{0}).value()) << "somebody enabled it before";
}

TEST_P(PeersTest, PagesAreReachedWithoutIt) {
  const Address p = process_->allocator("backing:pages").allocate(4_MiB, streams_[0]).value();
  EXPECT_EQ(faults_of_a_touch(p), 0u);
}

TEST_P(PeersTest, WhereDevicesCannotPagesGrowAllTheSame) {
  rebuild({0, 0});
  const Address p = process_->allocator("backing:pages").allocate(4_MiB, streams_[0]).value();
  EXPECT_EQ(faults_of_a_touch(p), 1u) << "the caller's: its devices are no peers";
  share::PeerAccess peers(process_->devices());
  const std::uint64_t before = asked();
  for (int i = 0; i < 2; ++i) EXPECT_FALSE(peers.enable(DeviceId{1}, DeviceId{0}).value());
  EXPECT_EQ(asked(), before + 1) << "it is remembered, and nothing is enabled that cannot be";
}

TEST_P(PeersTest, AGrowthByPagesAsksOnceWhoCanUseThem) {
  for (const Peers& each : {Peers{0, 0}, Peers{0, 1}}) {
    rebuild(each);
    const std::uint64_t can = each[1];
    process_->allocator("backing:pages");
    for (std::uint64_t growths = 1; growths <= 3; ++growths) {
      EXPECT_TRUE(process_->allocator().allocate(20_MiB, streams_[0]).is_ok());
      EXPECT_EQ(asked(), 1u) << "a driver refuses those that are no peers with various errors";
      EXPECT_EQ(process_->gpu().account().of(CallKind::kPageAccess).calls, growths * (1 + can));
    }
  }
}

TEST_P(PeersTest, WhereThatIsNotKnownAccessIsTried) {
  process_->allocator("backing:pages");
  process_->gpu().fail(CallKind::kReach, 1, spec::FailMode::kOnce);
  const Address p = process_->allocator().allocate(4_MiB, streams_[0]).value();
  EXPECT_EQ(faults_of_a_touch(p), 0u);
  EXPECT_EQ(process_->gpu().account().of(CallKind::kPageAccess).calls, 2u);
}

TEST_P(PeersTest, SegmentsOfOneHandleAreForThePeersThatWereNamed) {
  {
    share::SingleHandleDevice alone(process_->device(0));
    const Address p = alone.segment_alloc(2_MiB).value();
    share::PeerAccess peers(process_->devices());
    EXPECT_TRUE(peers.enable(DeviceId{1}, DeviceId{0}).value());
    EXPECT_EQ(faults_of_a_touch(p), 1u) << "they are mapped: peers have no access by that";
    EXPECT_TRUE(alone.segment_free(p).is_ok());
  }
  {
    share::SingleHandleDevice shared(process_->device(0), process_->devices());
    const Address p = shared.segment_alloc(2_MiB).value();
    EXPECT_EQ(faults_of_a_touch(p), 0u);
    EXPECT_TRUE(shared.segment_free(p).is_ok());
    process_->gpu().fail(CallKind::kPageAccess, 2, spec::FailMode::kOnce);
    EXPECT_EQ(shared.segment_alloc(2_MiB).code(), Code::kDriverError) << "the peer's";
    EXPECT_TRUE(process_->gpu().ledger().nothing_held());
  }
  rebuild({0, 0});
  share::SingleHandleDevice among_strangers(process_->device(0), process_->devices());
  const Address p = among_strangers.segment_alloc(2_MiB).value();
  EXPECT_EQ(faults_of_a_touch(p), 1u) << "its devices are no peers";
  EXPECT_TRUE(among_strangers.segment_free(p).is_ok());
}

TEST_P(PeersTest, ADriverThatCannotEnableWhatItSaidItCanIsNotAskedAgain) {
  share::PeerAccess peers(process_->devices());
  process_->gpu().fail(CallKind::kReach, 2, spec::FailMode::kOnce, Code::kUnsupported);
  const auto enabled = peers.enable(DeviceId{1}, DeviceId{0});
  ASSERT_TRUE(enabled.is_ok()) << enabled.status().why();
  EXPECT_FALSE(enabled.value());
  EXPECT_FALSE(peers.enable(DeviceId{1}, DeviceId{0}).value());
  EXPECT_EQ(asked(), 2u);
}

TEST_P(PeersTest, ADeviceThatSharesNothingReachesNobodyAndNobodyReachesIt) {
  device::HostDevice host(DeviceId{1}, 64_MiB);
  device::Device* const devices[] = {&process_->device(), &host};
  share::PeerAccess peers(devices);
  EXPECT_FALSE(peers.enable(DeviceId{0}, DeviceId{1}).value());
  EXPECT_FALSE(peers.enable(DeviceId{1}, DeviceId{0}).value());
  EXPECT_EQ(asked(), 0u);
}

TEST_P(PeersTest, OfManyDevicesEachPairIsAPairOfItsOwn) {
  constexpr std::int32_t kDevices = 4096;  // in turn the two that there are
  rebuild({0, 1});
  std::vector<device::Device*> devices;
  for (std::int32_t i = 0; i < kDevices; ++i) devices.push_back(&process_->device(i % 2));
  share::PeerAccess peers(devices);
  for (const std::int32_t user : {1, kDevices / 2, kDevices - 1}) {
    for (const std::int32_t owner : {0, kDevices / 2 - 1, kDevices - 2}) {
      if (user % 2 == owner % 2) continue;  // of one device
      EXPECT_EQ(peers.enable(DeviceId{user}, DeviceId{owner}).value(), user % 2 == 1)
          << user << " of " << owner;
    }
  }
}

TEST_P(PeersTest, OneDeviceMayReachAnotherThatDoesNotReachIt) {
  rebuild({0, 1});
  const Address p = allocate(0);
  share::PeerAccess peers(process_->devices());
  EXPECT_FALSE(peers.enable(DeviceId{0}, DeviceId{1}).value());
  EXPECT_EQ(faults_of_a_touch(p), 1u);
  EXPECT_TRUE(peers.enable(DeviceId{1}, DeviceId{0}).value());
  EXPECT_EQ(faults_of_a_touch(p), 0u);
}

TEST_P(PeersTest, ACopyIsTheRightOne) {
  for (const Peers& each : {Peers{}, Peers{0, 0}, Peers{0, 1}, Peers{2, 0}}) {
    rebuild(each);
    const Address a = allocate(0);
    const Address b = allocate(1);
    CopyWitness witnesses[] = {CopyWitness(process_->device(0)), CopyWitness(process_->device(1))};
    device::Device* const devices[] = {&witnesses[0], &witnesses[1]};
    share::PeerAccess peers(devices);
    for (const Stream& stream : streams_) {
      const auto by = static_cast<std::size_t>(stream.device.value());
      for (const auto& [to, to_device, from, from_device] :
           {std::tuple(a, 0, b, 1), std::tuple(b, 1, a, 0), std::tuple(a, 0, a + 512_B, 0)}) {
        const std::size_t before = witnesses[by].copies().size();
        EXPECT_TRUE(peers.copy(to, DeviceId{to_device}, from, DeviceId{from_device}, 512_B, stream)
                        .is_ok());
        Copied expected{to, nullptr, from, nullptr, 512_B, stream.handle};
        const auto is_here = [&](int owner) { return by == static_cast<std::size_t>(owner); };
        if (!is_here(to_device) || !is_here(from_device)) {
          expected.to_owner = witnesses[to_device].sharing();
          expected.from_owner = witnesses[from_device].sharing();
        }
        ASSERT_EQ(witnesses[by].copies().size(), before + 1);
        EXPECT_EQ(witnesses[by].copies().back(), expected);
      }
    }
    EXPECT_TRUE(process_->gpu().drain_all().is_ok());
    EXPECT_TRUE(process_->gpu().take_faults().empty());
  }
}

TEST_P(PeersTest, ADeviceThatIsNoneOfThemIsRefused) {
  share::PeerAccess peers(process_->devices());
  const Address a = allocate(0);
  const Address b = allocate(1);
  for (const int none : {-1, 2}) {
    Stream of_none = streams_[0];
    of_none.device = DeviceId{none};
    for (const Code code :
         {peers.copy(a, DeviceId{none}, b, DeviceId{1}, 512_B, streams_[0]).code(),
          peers.copy(a, DeviceId{0}, b, DeviceId{none}, 512_B, streams_[0]).code(),
          peers.copy(a, DeviceId{0}, b, DeviceId{1}, 512_B, of_none).code(),
          peers.enable(DeviceId{0}, DeviceId{none}).code(),
          peers.enable(DeviceId{none}, DeviceId{0}).code()})
      EXPECT_EQ(code, Code::kInvalidArgument) << none;
  }
}

TEST_P(PeersTest, ACopyWhosePeersAreNotKnownIsNotMade) {
  const Address a = allocate(0);
  const Address b = allocate(1);
  CopyWitness witness(process_->device(0));
  device::Device* const devices[] = {&witness, &process_->device(1)};
  share::PeerAccess peers(devices);
  const auto copy = [&](Address to, int to_device, Address from, int from_device) {
    process_->gpu().fail(CallKind::kReach, 1, spec::FailMode::kOnce);
    return peers.copy(to, DeviceId{to_device}, from, DeviceId{from_device}, 512_B, streams_[0]);
  };
  EXPECT_EQ(copy(a, 0, b, 1).code(), Code::kDriverError) << "what it reads";
  EXPECT_EQ(copy(b, 1, a, 0).code(), Code::kDriverError) << "what it writes";
  EXPECT_TRUE(witness.copies().empty());
  EXPECT_TRUE(peers.copy(a, DeviceId{0}, b, DeviceId{1}, 512_B, streams_[0]).is_ok());
  EXPECT_EQ(witness.copies().size(), 1u);
}

TEST_P(PeersTest, AnErrorOfTheDriverIsAskedAgain) {
  share::PeerAccess peers(process_->devices());
  process_->gpu().fail(CallKind::kReach, 1, spec::FailMode::kOnce);
  EXPECT_EQ(peers.enable(DeviceId{1}, DeviceId{0}).code(), Code::kDriverError);
  process_->gpu().fail(CallKind::kReach, 2, spec::FailMode::kOnce);
  EXPECT_EQ(peers.enable(DeviceId{1}, DeviceId{0}).code(), Code::kDriverError);
  EXPECT_TRUE(peers.enable(DeviceId{1}, DeviceId{0}).value());
}

}  // namespace
}  // namespace ashlar::props
