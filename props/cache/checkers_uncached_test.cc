// The checkers of the mode without a cache fire (DEV-22, clause_uncached.cc): each has a planted bug, and the real
// allocator passes the same ops.
//
// Planted: an allocator that caches all the same; one that cuts its segments larger than the request; one that
// gives memory back before its work is done. Not proved: that no other bug slips through.
#include <optional>
#include <string>

#include "props/cache/planted_subjects.h"

namespace ashlar::props {
namespace {

/// Says that it caches nothing, whatever it does.
struct ClaimsNoCache : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  cache::Config config() const override { return config_in_segments("cache:off"); }
};

// Of 12 MiB the segment is as long as the request, cached or not.
constexpr char kFreed[] = "conf cache:off\nalloc p0 12MiB s0\nfree p0\nalloc p1 12MiB s0\n";

TEST(CheckersWithoutACache, Dev22FiresOnFreedMemoryThatServesALaterRequest) {
  EXPECT_EQ(dense_clause<ClaimsNoCache>(kFreed, ""), "DEV-22");
}

TEST(CheckersWithoutACache, Dev22FiresOnFreedMemoryThatIsKept) {
  // The second free has marked the first one's work, and all work is done.
  const std::string ops =
      "conf cache:off\nalloc p0 12MiB s0\nalloc p1 14MiB s0\nfree p0\nfree p1\ndrain d0\nalloc p2 "
      "16MiB s0\n"
      "free p2\n";
  EXPECT_EQ(dense_clause<ClaimsNoCache>(ops, ""), "DEV-22");
}

TEST(CheckersWithoutACache, Dev22FiresOnASegmentLongerThanItsRequest) {
  EXPECT_EQ(dense_clause<ClaimsNoCache>("conf cache:off\nalloc p0 512 s0\n", ""), "DEV-22");
  EXPECT_EQ(dense_clause<ClaimsNoCache>("conf cache:off\nalloc p0 2MiB s0\n", ""), "DEV-22");
}

/// Answers every question about an event with "done".
class HastyDevice final : public device::ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  Status event_query(EventHandle event) noexcept override {
    static_cast<void>(ForwardingDevice::event_query(event));
    return Status::ok();
  }
};
/// The real allocator over devices of that kind, of which the judge does not know.
template <class PlantedDevice>
class OverPlantedDevices : public ForwardingSubject {
 public:
  OverPlantedDevices(std::shared_ptr<spec::CacheSubject> inner,
                     std::span<device::Device* const> devices, const std::string& mode)
      : ForwardingSubject(std::move(inner), devices) {
    std::vector<device::Device*> wrapped;
    for (device::Device* device : devices) {
      planted_.push_back(std::make_unique<PlantedDevice>(*device));
      wrapped.push_back(planted_.back().get());
    }
    inner_ = caching_allocator_factory()(wrapped, in_segments(mode)).value();
  }
  ~OverPlantedDevices() override { inner_.reset(); }  // before the devices that it calls

 private:
  std::vector<std::unique_ptr<PlantedDevice>> planted_;
};
/// To the judge, one that gives back without asking.
struct GivesBackTooEarly : OverPlantedDevices<HastyDevice> {
  GivesBackTooEarly(std::shared_ptr<spec::CacheSubject> inner,
                    std::span<device::Device* const> devices)
      : OverPlantedDevices(std::move(inner), devices, "cache:off") {}
};
TEST(CheckersWithoutACache, C6FiresOnMemoryThatGoesBackBeforeItsWorkIsDone) {
  for (const char* uses : {"kernel s0 p0 w\nfree p0\n", "kernel s1 p0 w\nfree-on p0 s1\n"}) {
    const std::string ops = "conf cache:off\nstream s1 d0\nalloc p0 12MiB s0\n" +
                            std::string(uses) + "alloc p1 512 s0\n";
    EXPECT_EQ(dense_clause<GivesBackTooEarly>(ops), "C6") << uses;
  }
}

// The driver's pool.

/// Keeps what the pool has.
class KeepsItsPool final : public device::ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  Status stream_trim(Bytes) noexcept override {
    return ForwardingDevice::stream_trim(Bytes::max());
  }
};
/// Frees behind the work of the first stream that it has seen.
class FreesBehindAnotherStream final : public device::ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  Result<Address> stream_alloc(Bytes size, StreamHandle stream) noexcept override {
    if (!first_) first_ = stream;
    return ForwardingDevice::stream_alloc(size, stream);
  }
  Status stream_free(Address base, StreamHandle) noexcept override {
    return ForwardingDevice::stream_free(base, *first_);
  }

 private:
  std::optional<StreamHandle> first_;
};
template <class PlantedDevice>
struct OverDriversPool : OverPlantedDevices<PlantedDevice> {
  OverDriversPool(std::shared_ptr<spec::CacheSubject> inner,
                  std::span<device::Device* const> devices)
      : OverPlantedDevices<PlantedDevice>(std::move(inner), devices, "backend:cudaMallocAsync") {}
};
constexpr char kOverThePool[] = "conf backend:cudaMallocAsync\ndevice d0 64MiB\nstream s1 d0\n";

TEST(CheckersOfTheDriversPool, C12FiresWhereThePoolKeepsWhatARequestLacks) {
  // The handle names another thread's stream: a plain segment, for which the pool does not give way by itself.
  const std::string ops =
      kOverThePool + std::string(
                         "thread-stream s2 d0\nalloc p0 40MiB s0\nfree p0\ndrain d0\n"
                         "thread 1\nalloc p1 30MiB s2\n");
  EXPECT_EQ(dense_clause<OverDriversPool<KeepsItsPool>>(ops, ""), "C12");
}

TEST(CheckersOfTheDriversPool, C6FiresOnAFreeBehindAnotherStream) {
  const std::string ops =
      kOverThePool +
      std::string(
          "alloc p0 1MiB s0\nalloc p1 4MiB s1\nkernel s1 p1 w\nfree p1\nalloc p2 4MiB s0\n");
  EXPECT_EQ(dense_clause<OverDriversPool<FreesBehindAnotherStream>>(ops, ""), "C6");
}

/// Says that the driver keeps what is freed, and keeps it itself.
struct ClaimsTheDriversPool : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  cache::Config config() const override { return config_in_segments("backend:cudaMallocAsync"); }
};
TEST(CheckersOfTheDriversPool, Dev22FiresOnFreedMemoryThatServesALaterRequest) {
  const std::string ops =
      kOverThePool + std::string("alloc p0 12MiB s0\nfree p0\nalloc p1 12MiB s0\n");
  EXPECT_EQ(dense_clause<ClaimsTheDriversPool>(ops, ""), "DEV-22");
}

/// A free that waits for the whole device first, as the driver's own does.
struct WaitsInItsFrees : TalksToTheDevice {
  using TalksToTheDevice::TalksToTheDevice;
  Status free(Address address) override {
    talk(device::CallKind::kSynchronize, 1);
    return inner_->free(address);
  }
};
struct AsksInItsFrees : TalksToTheDevice {
  using TalksToTheDevice::TalksToTheDevice;
  Status free(Address address) override {
    talk(device::CallKind::kMemoryInfo, 100);
    return inner_->free(address);
  }
};
TEST(CheckersWithoutACache, C17FiresOnAFreeThatWaitsOrAsksTooMuch) {
  EXPECT_EQ(clause<WaitsInItsFrees>(kFreed), "C17");
  EXPECT_EQ(clause<AsksInItsFrees>(kFreed), "C17");
}

}  // namespace
}  // namespace ashlar::props
