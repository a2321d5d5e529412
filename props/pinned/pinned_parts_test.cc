// The parts of the allocator of page-locked memory, each by itself: the policy of NUMA nodes, memory that is touched, the space,
// and the thread that reaps.
//
// Imitates: a kernel that permits no NUMA policy; drivers that refuse to lock memory.
// Does not prove: that memory comes from the node that is preferred; most machines have one.
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <ashlar/device/forwarding_device.h>
#include <ashlar/device/host_device.h>
#include <ashlar/pinned/pinned_allocator.h>
#include <ashlar/pinned/thread_numa_policy.h>
#include <ashlar/pinned/touched_memory.h>

#include "props/cache/forked_child.h"
#include "spec/gpu/sim_gpu.h"

namespace ashlar {
namespace {

using pinned::PinnedSpace;
using pinned::ThreadNumaPolicy;

constexpr std::size_t kPage = 4096;

/// The calling thread's NUMA policy, as the kernel tells it.
struct NumaPolicy {
  NumaPolicy() {
    is_known =
        ::syscall(SYS_get_mempolicy, &mode, nodes.data(), pinned::kNodesMax + 1, nullptr, 0UL) == 0;
  }
  bool has(int node) const {
    return (nodes[static_cast<unsigned>(node) / 64] >> static_cast<unsigned>(node) % 64 & 1) != 0;
  }
  friend bool operator==(const NumaPolicy&, const NumaPolicy&) = default;

  bool is_known = false;
  int mode = 0;
  std::array<unsigned long, pinned::kNodesMax / 64> nodes{};
};

TEST(ThreadNumaPolicyTest, TheNodeIsPreferredWhileTheObjectLives) {
  const NumaPolicy before;
  if (!before.is_known) GTEST_SKIP() << "this kernel, or this container, has no NUMA policies";
  if (!std::filesystem::exists("/sys/devices/system/node")) GTEST_SKIP() << "there is no /sys";
  for (const int node : {0, 1, 2, 64, pinned::kNodesMax - 1}) {
    const bool exists =
        std::filesystem::exists("/sys/devices/system/node/node" + std::to_string(node));
    {
      errno = EPERM;  // of some earlier call
      const ThreadNumaPolicy policy(node);
      const NumaPolicy meanwhile;
      if (policy.status().is_ok()) {
        EXPECT_EQ(meanwhile.mode, 1) << "MPOL_PREFERRED";
        EXPECT_TRUE(meanwhile.has(node)) << node;
      } else {
        EXPECT_EQ(policy.status().code(), Code::kInvalidArgument);
        EXPECT_EQ(meanwhile, before);
      }
      EXPECT_EQ(policy.status().is_ok(), exists) << node;
    }
    EXPECT_EQ(NumaPolicy(), before) << node;
  }
  const ThreadNumaPolicy none(pinned::kAnyNode);
  EXPECT_TRUE(none.status().is_ok());
  EXPECT_EQ(NumaPolicy(), before);
}

/// Lets the kernel answer that call of this process from now on as `by` says. False if it does not.
bool forbid(long call, std::uint32_t by = SECCOMP_RET_ERRNO | EPERM) {
  const sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(call), 0, 1),
      BPF_STMT(BPF_RET | BPF_K, by), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  sock_fprog program{static_cast<unsigned short>(std::size(filter)),
                     const_cast<sock_filter*>(filter)};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

TEST(ThreadNumaPolicyTest, AKernelThatPermitsNoPolicyIsTypedAndNoMemoryLocked) {
  constexpr int kNoFilter = 7;
  const std::pair<long, const char*> kForbidden[] = {
      {SYS_get_mempolicy, "the kernel says nothing of NUMA policies"},
      {SYS_set_mempolicy, "the kernel permits no NUMA policy"}};
  for (const auto& [call, why] : kForbidden) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      if (!forbid(call)) props::end_child(kNoFilter);
      // A policy that cannot be read could not be set again: it is not changed.
      if (call == SYS_get_mempolicy && !forbid(SYS_set_mempolicy, SECCOMP_RET_KILL_PROCESS))
        props::end_child(kNoFilter);
      const ThreadNumaPolicy policy(0);
      const auto memory = pinned::map_touched(2_MiB, 2, 0);
      const bool is_good = policy.status().code() == Code::kUnsupported &&
                           std::string(policy.status().why()) == why &&
                           memory.code() == Code::kUnsupported;
      props::end_child(is_good ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status));
    if (WEXITSTATUS(status) == kNoFilter) GTEST_SKIP() << "this kernel has no seccomp filters";
    EXPECT_EQ(WEXITSTATUS(status), 0) << why;
  }
}

/// How many of the range's pages are present.
std::size_t present_pages(Address base, Bytes size) {
  std::vector<unsigned char> is_present(size.count() / kPage);
  EXPECT_EQ(::mincore(base.pointer(), size.count(), is_present.data()), 0);
  return static_cast<std::size_t>(
      std::count_if(is_present.begin(), is_present.end(), [](unsigned char c) { return c & 1; }));
}

/// Has the mapping that begins there the advice for huge pages?
bool is_advised(Address base) {
  std::ifstream maps("/proc/self/smaps");
  std::ostringstream begin;
  begin << std::hex << base.value() << '-';
  bool is_there = false;
  for (std::string line; std::getline(maps, line);) {
    if (line.rfind(begin.str(), 0) == 0) is_there = true;
    if (is_there && line.rfind("VmFlags:", 0) == 0) return line.find(" hg") != std::string::npos;
  }
  return false;
}

TEST(TouchedMemoryTest, EveryPageIsPresentAndZeroHoweverManyThreadsTouch) {
  for (const unsigned threads : {1u, 2u, 3u, 7u, pinned::kTouchThreadsMax}) {
    for (const Bytes size : {1_B, 2_MiB, 2_MiB + 1_B, 10_MiB, 34_MiB}) {
      const auto memory = pinned::map_touched(size, threads, pinned::kAnyNode);
      ASSERT_TRUE(memory.is_ok()) << memory.status().why();
      const Bytes whole = pinned::touched_size(size);
      EXPECT_EQ(memory.value().value() % (2_MiB).count(), 0u);
      EXPECT_EQ(present_pages(memory.value(), whole), whole.count() / kPage)
          << threads << " threads, " << size.count() << " bytes";
      const auto* const bytes = static_cast<const unsigned char*>(memory.value().pointer());
      EXPECT_TRUE(
          std::all_of(bytes, bytes + whole.count(), [](unsigned char b) { return b == 0; }));
      pinned::unmap_touched(memory.value(), size);
    }
  }
}

TEST(TouchedMemoryTest, AHostWithoutRoomForThreadsTouchesEveryPageAllTheSame) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer's own mappings pass any limit";
#endif
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    std::uint64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    // Room for the memory, at any alignment, and not for a thread's stack of 64 MiB.
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, std::size_t{64} << 20);
    pthread_setattr_default_np(&attributes);
    const rlimit limit{pages * kPage + (40u << 20), RLIM_INFINITY};
    if (setrlimit(RLIMIT_AS, &limit) != 0) props::end_child(2);
    const auto memory = pinned::map_touched(34_MiB, 4, pinned::kAnyNode);
    if (!memory.is_ok()) props::end_child(3);
    props::end_child(present_pages(memory.value(), 34_MiB) == (34_MiB).count() / kPage ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

long faults_of_thread() {
  rusage usage{};
  EXPECT_EQ(getrusage(RUSAGE_THREAD, &usage), 0);
  return usage.ru_minflt;
}

TEST(TouchedMemoryTest, TheThreadsShareThePages) {
  const auto own_faults = [](unsigned threads) {
    const long before = faults_of_thread();
    const auto memory = pinned::map_touched(128_MiB, threads, pinned::kAnyNode);
    EXPECT_TRUE(memory.is_ok());
    const long own = faults_of_thread() - before;
    pinned::unmap_touched(memory.value(), 128_MiB);
    return own;
  };
  const long alone = own_faults(1);
  const long of_four = own_faults(4);
  EXPECT_GE(alone, 64) << "a fault for each huge page, or each page";
  EXPECT_LE(of_four, alone / 2);
  EXPECT_GE(of_four, alone / 8) << "the calling thread touches its share too";
}

TEST(TouchedMemoryTest, TheKernelIsAskedForHugePages) {
  void* const at =
      ::mmap(nullptr, 4 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const bool has_advice = ::madvise(at, 4 << 20, MADV_HUGEPAGE) == 0;
  ::munmap(at, 4 << 20);
  if (!has_advice) GTEST_SKIP() << "this kernel has no huge pages";
  const auto memory = pinned::map_touched(4_MiB, 1, pinned::kAnyNode);
  ASSERT_TRUE(memory.is_ok());
  EXPECT_TRUE(is_advised(memory.value()));
  pinned::unmap_touched(memory.value(), 4_MiB);
}

/// Of a machine whose segments begin at multiples of 64 KiB.
class CoarseDevice final : public device::ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  device::DeviceTraits traits() const noexcept override {
    device::DeviceTraits traits = ForwardingDevice::traits();
    traits.address_alignment = 64_KiB;
    traits.host_accessible = false;
    return traits;
  }
};

TEST(PinnedSpaceTest, ItsTraitsAreThoseOfTheMemory) {
  spec::SimGpu gpu;
  CoarseDevice coarse(gpu.device());
  device::Device* const through[] = {&coarse};
  const PinnedSpace by_driver(DeviceId{3}, through, {});
  EXPECT_EQ(by_driver.traits().id, DeviceId{3});
  EXPECT_EQ(by_driver.traits().address_alignment, 64_KiB);
  EXPECT_TRUE(by_driver.traits().host_accessible);
  EXPECT_FALSE(by_driver.traits().has_virtual_memory);
  const PinnedSpace registered(DeviceId{3}, through, {.by = pinned::PinBy::kRegistration});
  EXPECT_EQ(registered.traits().address_alignment, 2_MiB);
  EXPECT_TRUE(registered.traits().host_accessible);
}

TEST(PinnedSpaceTest, ARefusedRangeIsNotHeld) {
  spec::SimGpu gpu;
  device::Device* const through[] = {&gpu.device()};
  PinnedSpace space(DeviceId{1}, through, {.capacity = 10_MiB});
  EXPECT_EQ(space.segment_alloc(0_B).code(), Code::kInvalidArgument);
  EXPECT_EQ(space.times().pin.calls, 0u) << "nobody was asked for nothing";
  gpu.fail(device::CallKind::kPinnedAlloc, 1, spec::FailMode::kOnce, Code::kDriverError);
  EXPECT_EQ(space.segment_alloc(8_MiB).code(), Code::kDriverError);
  EXPECT_EQ(space.memory_info().value().free, 10_MiB);
  const auto got = space.segment_alloc(10_MiB);
  ASSERT_TRUE(got.is_ok()) << got.status().why();
  EXPECT_EQ(space.memory_info().value().free, 0_B);
  EXPECT_EQ(space.segment_alloc(1_B).code(), Code::kOutOfMemory);
  gpu.fail(device::CallKind::kPinnedFree, 1, spec::FailMode::kOnce, Code::kDriverError);
  EXPECT_EQ(space.segment_free(got.value()).code(), Code::kDriverError);
  EXPECT_EQ(space.memory_info().value().free, 0_B) << "it is locked still";
  EXPECT_TRUE(space.segment_free(got.value()).is_ok());
  EXPECT_EQ(space.segment_free(got.value()).code(), Code::kInvalidArgument);
  EXPECT_EQ(space.memory_info().value().free, 10_MiB);
}

TEST(PinnedSpaceTest, TheCapacityCountsWhatIsLocked) {
  device::HostDevice host;
  device::Device* const through[] = {&host};
  PinnedSpace space(DeviceId{1}, through, {.by = pinned::PinBy::kRegistration, .capacity = 5_MiB});
  const auto first = space.segment_alloc(1_B);
  ASSERT_TRUE(first.is_ok());
  EXPECT_EQ(space.memory_info().value().free, 3_MiB) << "a huge page is locked";
  const auto second = space.segment_alloc(2_MiB);
  ASSERT_TRUE(second.is_ok());
  EXPECT_EQ(space.segment_alloc(1_B).code(), Code::kOutOfMemory);
  EXPECT_TRUE(space.segment_free(first.value()).is_ok());
  EXPECT_TRUE(space.segment_free(second.value()).is_ok());
  EXPECT_EQ(space.memory_info().value().free, 5_MiB);
}

TEST(PinnedSpaceTest, MoreThanAnyHostHasIsOutOfMemory) {
  device::HostDevice host;
  device::Device* const through[] = {&host};
  PinnedSpace space(DeviceId{1}, through, {.by = pinned::PinBy::kRegistration});
  for (const Bytes size : {Bytes::max(), Bytes::max() - 1_B, Bytes{std::uint64_t{1} << 60} + 1_B,
                           Bytes{std::uint64_t{1} << 60}})
    EXPECT_EQ(space.segment_alloc(size).code(), Code::kOutOfMemory);
  EXPECT_EQ(space.memory_info().value().free, space.memory_info().value().total);
}

std::size_t threads_of_process() {
  std::size_t found = 0;
  for ([[maybe_unused]] const auto& each : std::filesystem::directory_iterator("/proc/self/task"))
    ++found;
  return found;
}

/// An allocator with a reaper, a GPU, and a block on it that is freed and done with, but not known to be.
class ReaperTest : public ::testing::Test {
 protected:
  void make(std::uint32_t reap_ms, Bytes reserve = 0_B) {
    pinned::PinnedConfig config;
    config.reap_ms = reap_ms;
    config.reserve = reserve;
    device::Device* const devices[] = {&gpu_.device()};
    allocator_ = pinned::PinnedAllocator::create(devices, config).value();
    const Stream on = gpu_.create_stream(DeviceId{0}).value();
    const Address memory = allocator_->allocate(1_MiB).value();
    EXPECT_TRUE(gpu_.launch(on, {memory, 1_MiB}).is_ok());
    EXPECT_TRUE(allocator_->record_use(memory, nullptr, on).is_ok());
    EXPECT_TRUE(allocator_->free(memory).is_ok());
    EXPECT_TRUE(gpu_.drain_all().is_ok());
  }
  std::uint64_t active() {
    cache::DeviceStats stats;
    EXPECT_TRUE(allocator_->caching().stats(allocator_->device(), &stats).is_ok());
    return stats.active_bytes[0].current;
  }
  bool is_reaped_within(std::chrono::milliseconds limit) {
    const auto end = std::chrono::steady_clock::now() + limit;
    while (active() != 0 && std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return active() == 0;
  }

  spec::SimGpu gpu_;
  std::unique_ptr<pinned::PinnedAllocator> allocator_;
};

constexpr std::uint32_t kTenMinutesMs = 600'000;

TEST_F(ReaperTest, ItReapsOnceInAPeriodAndEndsAtOnce) {
  const std::size_t threads_before = threads_of_process();
  make(kTenMinutesMs);
  EXPECT_EQ(threads_of_process(), threads_before + 1);
  EXPECT_FALSE(is_reaped_within(std::chrono::milliseconds(50)));
  const auto began = std::chrono::steady_clock::now();
  allocator_.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(60));
  EXPECT_EQ(threads_of_process(), threads_before);
}

/// A device whose answers about events can be held up.
class HeldDevice final : public device::ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  Status event_query(EventHandle event) noexcept override {
    is_asked = true;
    while (is_held) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return ForwardingDevice::event_query(event);
  }
  std::atomic<bool> is_held{false};
  std::atomic<bool> is_asked{false};
};

TEST_F(ReaperTest, TheEndWaitsForTheCallThatItMakes) {
  HeldDevice held(gpu_.device());
  device::Device* const devices[] = {&held};
  pinned::PinnedConfig config;
  config.reap_ms = 1;
  auto allocator = pinned::PinnedAllocator::create(devices, config).value();
  const Stream on = gpu_.create_stream(DeviceId{0}).value();
  const Address memory = allocator->allocate(1_MiB).value();
  EXPECT_TRUE(gpu_.launch(on, {memory, 1_MiB}).is_ok());
  EXPECT_TRUE(allocator->record_use(memory, nullptr, on).is_ok());
  held.is_held = true;
  EXPECT_TRUE(allocator->free(memory).is_ok());
  while (!held.is_asked) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  std::atomic<bool> has_ended{false};
  std::thread ending([&] {
    allocator.reset();
    has_ended = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_FALSE(has_ended);
  EXPECT_TRUE(gpu_.drain_all().is_ok());
  held.is_held = false;
  ending.join();
}

TEST_F(ReaperTest, ItReapsBesideAReserve) {
  make(1, 8_MiB);
  EXPECT_TRUE(is_reaped_within(std::chrono::seconds(30)));
}

TEST(ArenasTest, AThreadKeepsItsArenaAndThereAreAsManyAsAsked) {
  spec::SimGpu gpu;
  device::Device* const devices[] = {&gpu.device()};
  const unsigned cores = std::max(std::thread::hardware_concurrency(), 1u);
  for (const unsigned asked : {0u, 1u, 3u, 4u, 64u}) {
    pinned::PinnedConfig config;
    config.arenas = asked;
    const auto allocator = pinned::PinnedAllocator::create(devices, config).value();
    std::vector<std::uint64_t> arenas;
    for (int i = 0; i < 130; ++i) {
      std::thread([&] {
        arenas.push_back(allocator->arena().id.value());
        EXPECT_EQ(allocator->arena().id.value(), arenas.back());
      }).join();
    }
    std::sort(arenas.begin(), arenas.end());
    arenas.erase(std::unique(arenas.begin(), arenas.end()), arenas.end());
    const std::size_t made = std::bit_ceil(std::min(asked == 0 ? cores : asked, 64u));
    EXPECT_EQ(arenas.size(), made) << asked;
    EXPECT_EQ(arenas.front(), 1u) << "the space's streams, from the first";
    EXPECT_EQ(arenas.back(), made);
  }
}

TEST(ArenasTest, MemoryComesInSegmentsWhateverIsConfigured) {
  spec::SimGpu gpu;
  device::Device* const devices[] = {&gpu.device()};
  pinned::PinnedConfig config;
  config.cache.backing = cache::Backing::kPages;
  const auto allocator = pinned::PinnedAllocator::create(devices, config).value();
  const auto got = allocator->allocate(1_MiB);
  ASSERT_TRUE(got.is_ok()) << got.status().why();
  EXPECT_EQ(allocator->caching().config().backing, cache::Backing::kSegments);
  EXPECT_TRUE(allocator->free(got.value()).is_ok());
}

}  // namespace
}  // namespace ashlar
