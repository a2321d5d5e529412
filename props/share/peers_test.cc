// Memory of one device for another, and copies between devices (row DEV-21), on the simulated devices and on CudaDevices over the
// driver's functions of the simulated GPU.
//
// Imitates: machines whose GPUs can use each other's memory, and machines whose GPUs cannot. Does not prove: what a driver does
// with the copies: no suite runs on two GPUs.
#include <gtest/gtest.h>

#include "props/share/share_worlds.h"

namespace ashlar::props {
namespace {

using device::CallKind;

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
  const std::uint64_t asked =
      process_->gpu().account().by_kind[static_cast<unsigned>(CallKind::kReach)].calls;
  EXPECT_TRUE(peers.enable(DeviceId{1}, DeviceId{0}).value());
  EXPECT_EQ(process_->gpu().account().by_kind[static_cast<unsigned>(CallKind::kReach)].calls, asked)
      << "it is remembered";
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
  EXPECT_FALSE(peers.enable(DeviceId{1}, DeviceId{0}).value());
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
    share::PeerAccess peers(process_->devices());
    for (const Stream& stream : streams_) {
      for (const auto& [to, to_device, from, from_device] :
           {std::tuple(a, 0, b, 1), std::tuple(b, 1, a, 0), std::tuple(a, 0, a + 512_B, 0)}) {
        EXPECT_TRUE(peers.copy(to, DeviceId{to_device}, from, DeviceId{from_device}, 512_B, stream)
                        .is_ok());
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
