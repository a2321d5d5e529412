// The checkers of what a call does beside its purpose fire: to other devices, by waiting or giving
// memory back without need, to whom it lends, and of what it says afterwards.
//
// Planted: allocators that work, and do too much, or misstate what they did.
// Imitated: synchronisations that cost the user his overlap; caches flushed for nothing; settings
// that are taken and not kept. Not proved: that no other misconduct slips through.
#include "props/cache/planted_subjects.h"

namespace ashlar::props {
namespace {

using cache::OutOfMemory;
using device::CallKind;

/// Does something to device 1 in calls on device 0: while 777 bytes are allocated, and at each free
/// that is refused. The statistics of device 1 count it.
template <CallKind kKind>
struct TouchesTheOther : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  std::uint64_t touched = 0;
  void touch() {
    if (kKind == CallKind::kSegmentFree) return static_cast<void>(inner_->trim(DeviceId{1}));
    ++touched;
    static_cast<void>(devices_[1]->synchronize_for(0));
  }
  Result<Address> allocate(Bytes size, const Stream& stream, OutOfMemory* account) override {
    if (size == 777_B) touch();
    return inner_->allocate(size, stream, account);
  }
  Status free(Address address) override {
    const Status freed = inner_->free(address);
    if (!freed.is_ok()) touch();
    return freed;
  }
  Status stats(DeviceId device, cache::DeviceStats* out) override {
    const Status got = inner_->stats(device, out);
    if (device == DeviceId{1})
      out->device_calls[static_cast<unsigned>(CallKind::kSynchronize)] += touched;
    return got;
  }
};
TEST(CheckersOfConduct, C17AndC13FireOnACallThatReachesForAnotherDevice) {
  const std::string two =
      "device d1 0\nstream s1 d1\nalloc p1 40MiB s1\nfree p1\ndrain d1\nalloc p0 512 s0\n";
  using Asks = TouchesTheOther<CallKind::kSynchronize>;
  using Flushes = TouchesTheOther<CallKind::kSegmentFree>;
  EXPECT_EQ(dense_clause<Asks>(two + "alloc p2 777 s0\n"), "C17");
  EXPECT_EQ(clause<Flushes>(two + "alloc p2 777 s0\n"), "C17");
  EXPECT_EQ(clause<Asks>(two + "free p0\nfree-stale p0\n"), "C13");
}

/// A base for subjects that wait in calls that need not; the statistics count it.
struct Waits : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  std::uint64_t waits = 0;
  void wait() {
    static_cast<void>(device_for(CallKind::kSynchronize).synchronize_for(1));
    ++waits;
  }
  Status stats(DeviceId device, cache::DeviceStats* out) override {
    const Status got = ForwardingSubject::stats(device, out);
    out->waits += waits;
    return got;
  }
};
struct WaitsAtARetirement : Waits {
  using Waits::Waits;
  Status retire_stream(const Stream& stream) override {
    return wait(), inner_->retire_stream(stream);
  }
};
struct WaitsAtACapture : Waits {
  using Waits::Waits;
  Status end_capture(const Stream& stream) override {
    const Status ended = inner_->end_capture(stream);
    return wait(), ended;
  }
};
struct WaitsForZeroBytes : Waits {
  using Waits::Waits;
  Result<Address> allocate(Bytes size, const Stream& stream, OutOfMemory* account) override {
    if (size == 0_B) wait();
    return inner_->allocate(size, stream, account);
  }
};
struct WaitsBeforeItGrows : Waits {
  using Waits::Waits;
  Result<Address> allocate(Bytes size, const Stream& stream, OutOfMemory* account) override {
    if (inner_->largest_free_block(stream).value_or(0_B) < size) wait();
    return inner_->allocate(size, stream, account);
  }
};
struct FlushesAtACapture : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  Status begin_capture(const Stream& stream) override {
    static_cast<void>(inner_->trim(DeviceId{0}));
    return inner_->begin_capture(stream);
  }
};
TEST(CheckersOfConduct, C17FiresOnAWaitOrAFlushThatNobodyNeeds) {
  const std::string idle = "stream s1 d0\nalloc p0 4MiB s1\nfree p0\n";
  EXPECT_EQ(clause<WaitsAtARetirement>(idle + "retire s1\n"), "C17");
  EXPECT_EQ(clause<WaitsAtACapture>(idle + "capture-begin s1 relaxed\ncapture-end s1\n"), "C17");
  EXPECT_EQ(clause<FlushesAtACapture>(idle + "drain d0\ncapture-begin s1 relaxed\n"), "C17");
  EXPECT_EQ(clause<WaitsForZeroBytes>("alloc p0 0 s0\n"), "C17");
  EXPECT_EQ(clause<WaitsBeforeItGrows>("alloc p0 4MiB s0\nalloc p1 40MiB s0\n"), "C17");
}

/// Gives all idle memory back whenever it has no fit.
struct FlushesAtEveryMiss : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  Result<Address> allocate(Bytes size, const Stream& stream, OutOfMemory* account) override {
    if (inner_->largest_free_block(stream).value_or(0_B) < size)
      static_cast<void>(inner_->trim(DeviceId{0}));
    return inner_->allocate(size, stream, account);
  }
};
TEST(CheckersOfConduct, Dev13FiresOnMemoryGivenBackThoughTheDeviceRefusedNothing) {
  EXPECT_EQ(dense_clause<FlushesAtEveryMiss>(
                "alloc p0 30MiB s0\nalloc p1 40MiB s0\nfree p0\nfree p1\ndrain d0\n"
                "alloc p3 60MiB s0\n"),
            "DEV-13");
}

/// Works by another value of a setting than it says.
template <const char* kClaim>
struct Claims : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  cache::Config config() const override { return config_in_segments(kClaim); }
  Status stats(DeviceId device, cache::DeviceStats* out) override {
    const Status got = ForwardingSubject::stats(device, out);
    out->steals = 0;
    return got;
  }
};
constexpr char kOwn[] = "reuse:own";
constexpr char kCompleted[] = "reuse:completed";
constexpr char kHalf[] = "per_process_memory_fraction:0.5";
TEST(CheckersOfConduct, Dev22FiresOnMemoryLentAgainstTheSetting) {
  // The first miss of s1 marks the work of s0, the second finds it done.
  const std::string marked =
      "conf reuse:own\nstream s1 d0\nalloc p0 20MiB s0\nfree p0\nalloc p1 20MiB s1\ndrain d0\n";
  EXPECT_EQ(dense_clause<Claims<kOwn>>(marked + "alloc p2 20MiB s1\n", "reuse:completed"), "DEV-22")
      << "a segment of another stream";
  EXPECT_EQ(dense_clause<Claims<kOwn>>(
                marked + "alloc p3 512 s0\nalloc p4 512 s0\nalloc p2 512 s1\n", "reuse:completed"),
            "DEV-22")
      << "a part of one";
  EXPECT_EQ(dense_clause<Claims<kCompleted>>(
                "conf reuse:completed\nstream s1 d0\nalloc p0 12MiB s0\nkernel s0 p0 w\nfree p0\n"
                "alloc p1 12MiB s1\n",
                "reuse:ordered"),
            "DEV-22");
}
TEST(CheckersOfConduct, Dev12FiresOnMemoryTakenUnderAFractionThatNobodyWorkedOut) {
  EXPECT_EQ(clause<Claims<kHalf>>("conf per_process_memory_fraction:0.5\ndevice d0 64MiB\n"
                                  "alloc p0 20MiB s0\n",
                                  "wait_ms:1000"),
            "DEV-12");
}

/// Cuts oversize blocks, as if max_split_size were not set.
struct CutsOversizeBlocks : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  cache::Config config() const override {
    return config_in_segments("max_split_size_mb:24,backing:segments");
  }
  Status stats(DeviceId device, cache::DeviceStats* out) override {
    const Status got = ForwardingSubject::stats(device, out);
    cache::Snapshot map;
    EXPECT_TRUE(inner_->snapshot(device, &map).is_ok());
    std::uint64_t blocks = 0;
    std::uint64_t segments = 0;
    for (const auto& each : map.segments) segments += each.size >= 24_MiB;
    for (const auto& each : map.blocks)
      blocks += each.size >= 24_MiB && each.state == BlockState::kLive;
    out->oversize_allocations = {blocks, blocks, blocks, 0};
    out->oversize_segments = {segments, segments, segments, 0};
    return got;
  }
};
TEST(CheckersOfConduct, Dev3FiresOnAnOversizeBlockCutForASmallerRequest) {
  EXPECT_EQ(dense_clause<CutsOversizeBlocks>(
                "conf max_split_size_mb:24\nalloc p0 200MiB s0\nfree p0\nalloc p1 12MiB s0\n",
                "wait_ms:1000"),
            "DEV-3");
}

struct CountsNoStreams : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  Status stats(DeviceId device, cache::DeviceStats* out) override {
    const Status got = ForwardingSubject::stats(device, out);
    out->streams = 0;
    return got;
  }
};
TEST(CheckersOfConduct, C15FiresOnStreamsWithMemoryThatAreNotCounted) {
  EXPECT_EQ(dense_clause<CountsNoStreams>("alloc p0 512 s0\n"), "C15");
}

struct TellsObserversNothing : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  void add_out_of_memory_observer(std::function<void(const OutOfMemory&)> observer) override {
    inner_->add_out_of_memory_observer([observer](const OutOfMemory&) { observer(OutOfMemory{}); });
  }
};
void name_another_device(OutOfMemory* account) { account->device = DeviceId{7}; }
void name_another_configuration(OutOfMemory* account) { account->config.granule = 1024_B; }
/// Makes its account without a question for the device's memory.
class MuteDevice final : public device::ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  Result<device::MemoryInfo> memory_info() noexcept override {
    return Status{Code::kDriverError, "planted"};
  }
};
struct DoesNotAskForMemory : ForwardingSubject {
  DoesNotAskForMemory(std::shared_ptr<spec::CacheSubject> inner,
                      std::span<device::Device* const> devices)
      : ForwardingSubject(std::move(inner), devices), mute_(*devices[0]) {
    device::Device* const all[] = {&mute_};
    inner_ = caching_allocator_factory()(all, in_segments("")).value();
  }
  ~DoesNotAskForMemory() override { inner_.reset(); }
  Status stats(DeviceId device, cache::DeviceStats* out) override {
    const Status got = inner_->stats(device, out);
    out->device_calls[static_cast<unsigned>(CallKind::kMemoryInfo)] = 0;
    return got;
  }
  MuteDevice mute_;
};
TEST(CheckersOfConduct, Dev14FiresOnAnAccountThatIsNotTheObserversOrNamesTheWrongDevice) {
  const std::string ops = "limit d0 1MiB\nalloc p0 512 s0\n";
  EXPECT_EQ(clause<TellsObserversNothing>(ops), "DEV-14");
  EXPECT_EQ(clause<ChangesTheAccount<name_another_device>>(ops), "DEV-14");
  EXPECT_EQ(clause<ChangesTheAccount<name_another_configuration>>(ops), "DEV-14");
  EXPECT_EQ(clause<DoesNotAskForMemory>(ops), "DEV-14");
}

struct InformsOfTheFreed : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  spec::CacheInfo last{};
  Result<spec::CacheInfo> info(Address address) override {
    const Result<spec::CacheInfo> got = inner_->info(address);
    if (got.is_ok()) last = got.value();
    return last;
  }
};
struct DeniesToKnowAStream : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  Status retire_stream(const Stream& stream) override {
    static_cast<void>(inner_->retire_stream(stream));
    return {Code::kNotFound, "planted"};
  }
};
struct RefusesForeignUsers : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  Status record_use(Address address, const Stream& stream) override {
    if (stream.device == DeviceId{1}) return {Code::kWrongDevice, "planted"};
    return inner_->record_use(address, stream);
  }
};
TEST(CheckersOfConduct, C16FiresOnAnswersThatAreNotTheCallers) {
  EXPECT_EQ(clause<InformsOfTheFreed>("alloc p0 512 s0\nfree p0\n"), "C16");
  EXPECT_EQ(clause<DeniesToKnowAStream>("stream s1 d0\nalloc p0 4MiB s1\nfree p0\nretire s1\n"),
            "C16");
  EXPECT_EQ(clause<RefusesForeignUsers>("device d1 0\nstream s1 d1\nalloc p0 512 s0\nuse p0 s1\n"),
            "C16");
}

/// Asks an event of its own at each free, in a capture too.
struct PollsInACapture : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  EventHandle event;
  Result<Address> allocate(Bytes size, const Stream& stream, OutOfMemory* account) override {
    if (size == 777_B) event = device_for(CallKind::kEventCreate).event_create().value();
    return inner_->allocate(size, stream, account);
  }
  Status free(Address address) override {
    static_cast<void>(device_for(CallKind::kEventQuery).event_query(event));
    return inner_->free(address);
  }
};
TEST(CheckersOfConduct, C9FiresOnAFreeThatAsksAnEventWhileACaptureIsAnnounced) {
  for (const char* mode : {"relaxed", "thread-local", "global"}) {
    EXPECT_EQ(failing_clause(broken<PollsInACapture>(),
                             std::string("stream s1 d0\nalloc p0 777 s0\ncapture-begin s1 ") +
                                 mode + "\nfree p0\n"),
              "C9");
  }
}

struct LeaksAtItsEnd : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  ~LeaksAtItsEnd() override {
    // Never destroyed: their devices are gone by then.
    static auto& kept = *new std::vector<std::shared_ptr<spec::CacheSubject>>;
    kept.push_back(inner_);
  }
};
TEST(CheckersOfConduct, C14FiresOnADestructorThatLeaksBesideAFailureThatDoesNotHappen) {
  const std::string ops = "alloc p0 4MiB s0\nfree p0\nfail pinned-alloc 1000 once\nend-now\n";
  spec::CacheLockstep::Options real;
  real.factory = caching_allocator_factory();
  EXPECT_EQ(failing_clause(real, ops), "");
  EXPECT_EQ(failing_clause(broken<LeaksAtItsEnd>(), ops), "C14");
}

}  // namespace
}  // namespace ashlar::props
