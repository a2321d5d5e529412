// Memory that stays under its addresses, and observers of what comes there and goes away, as users see them.
//
// What is pinned, and what observers are told, is judged in lockstep (clause_backing.cc). Imitates: a network
// library that registers a buffer by its address, frees it, and sends again; one that pins it; observers that
// call the allocator. Does not imitate: exports to other processes.
#include <atomic>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <ashlar/cache/pins.h>

#include "props/cache/liveness_fixture.h"

namespace ashlar::cache {
namespace {

using device::CallKind;

class PinsTest : public ::testing::Test {
 protected:
  void make(const char* conf, Bytes capacity = 64_MiB) {
    allocator_.reset();
    spec::SimGpuOptions options;
    options.capacities = {capacity};
    gpu_ = std::make_unique<spec::SimGpu>(options);
    device::Device* devices[] = {&gpu_->device(0)};
    allocator_ = make_allocator(devices, conf);
    stream_ = gpu_->create_stream(kDevice).value();
  }
  /// Notes every event; `then`, if set, is called after that.
  void observe(const std::function<void(const MappingEvent&)>& then = {}) {
    allocator_->add_mapping_observer([this, then](const MappingEvent& event) {
      events_.push_back(event);
      if (then) then(event);
    });
  }
  Address alloc(Bytes size) {
    const Result<Address> got = allocator_->allocate(size, stream_);
    EXPECT_TRUE(got.is_ok()) << got.status().why();
    return got.value_or(Address{});
  }
  void free(Address address) { EXPECT_TRUE(allocator_->free(address).is_ok()); }
  void trim() { EXPECT_TRUE(allocator_->trim(kDevice).is_ok()); }
  Bytes reserved() { return Bytes{allocator_->stats(kDevice).value().reserved_bytes[0].current}; }
  bool has_faults() { return !gpu_->take_faults().empty(); }

  std::vector<MappingEvent> events_;
  std::unique_ptr<spec::SimGpu> gpu_;
  std::unique_ptr<CachingAllocator> allocator_;  // tells its observers at its end
  Stream stream_;
};

TEST_F(PinsTest, AFreedRangeThatIsPinnedKeepsItsPagesAndTheOthersGo) {
  make("backing:pages");
  const Address first = alloc(8_MiB);
  const Address pinned = alloc(4_MiB);
  const Address last = alloc(8_MiB);
  const PinnedRange pin = allocator_->pin(pinned).value();
  for (const Address each : {first, pinned, last}) free(each);
  trim();
  EXPECT_EQ(reserved(), 4_MiB);
  EXPECT_EQ(alloc(4_MiB), pinned) << "the bytes are used again";
  EXPECT_EQ(allocator_->backing_generation(pinned).value(), pin.generation);
  free(pinned);
  EXPECT_TRUE(allocator_->unpin(pin).is_ok());
  trim();
  EXPECT_EQ(reserved(), 0_B);
  EXPECT_EQ(allocator_->validate(), nullptr);
}

TEST_F(PinsTest, AFreedSegmentThatIsPinnedStaysAndTheOthersGo) {
  make("");
  const Address pinned = alloc(30_MiB);
  const Address other = alloc(30_MiB);
  const PinnedRange pin = allocator_->pin(pinned).value();
  free(pinned);
  free(other);
  EXPECT_TRUE(allocator_->set_memory_limit(kDevice, 0_B).is_ok());
  EXPECT_EQ(reserved(), 30_MiB);
  EXPECT_EQ(allocator_->make_room(kDevice, 60_MiB).code(), Code::kOutOfMemory);
  EXPECT_TRUE(allocator_->unpin(pin).is_ok());
  EXPECT_TRUE(allocator_->make_room(kDevice, 60_MiB).is_ok());
}

TEST_F(PinsTest, ARangeWithTwoPinsStaysUntilBothHaveEnded) {
  make("backing:pages");
  const Address address = alloc(3_MiB);
  const PinnedRange pin = allocator_->pin(address).value();
  EXPECT_EQ(allocator_->pin(address).value(), pin);
  free(address);
  EXPECT_TRUE(allocator_->unpin(pin).is_ok());
  trim();
  EXPECT_EQ(reserved(), 4_MiB) << "in whole pages";
  EXPECT_TRUE(allocator_->unpin(pin).is_ok());
  EXPECT_EQ(allocator_->unpin(pin).code(), Code::kNotFound);
  trim();
  EXPECT_EQ(reserved(), 0_B);
}

TEST_F(PinsTest, WhatIsNoPinOrNoAllocationIsATypedError) {
  make("backing:pages");
  const Address address = alloc(4_MiB);
  EXPECT_EQ(allocator_->pin(Address{}).code(), Code::kUnknownPointer);
  EXPECT_EQ(allocator_->pin(address + 1_MiB).code(), Code::kUnknownPointer);
  EXPECT_EQ(allocator_->backing_generation(address + 1_MiB).code(), Code::kUnknownPointer);
  EXPECT_EQ(allocator_->unpin({}).code(), Code::kNotFound);
  const PinnedRange pin = allocator_->pin(address).value();
  for (const PinnedRange& wrong : {PinnedRange{pin.base, pin.size, pin.generation + 1},
                                   PinnedRange{pin.base, 2_MiB, pin.generation},
                                   PinnedRange{pin.base + 2_MiB, 2_MiB, pin.generation}})
    EXPECT_EQ(allocator_->unpin(wrong).code(), Code::kNotFound);
  free(address);
  EXPECT_EQ(allocator_->pin(address).code(), Code::kUnknownPointer);
  EXPECT_TRUE(allocator_->unpin(pin).is_ok());
}

TEST_F(PinsTest, PagesOnBothSidesOfAPinnedOneMove) {
  make("backing:pages");
  const Address first = alloc(20_MiB);
  const Address pinned = alloc(4_MiB);
  const Address last = alloc(20_MiB);
  alloc(20_MiB);
  const PinnedRange pin = allocator_->pin(pinned).value();
  for (const Address each : {first, pinned, last}) free(each);
  // 44 MiB are free in one block, of which 4 stay where they are: 40 can move.
  EXPECT_TRUE(allocator_->set_memory_limit(kDevice, 24_MiB).is_ok());
  EXPECT_EQ(reserved(), 24_MiB);
  EXPECT_EQ(allocator_->validate(), nullptr);
  EXPECT_TRUE(allocator_->unpin(pin).is_ok());
}

TEST_F(PinsTest, AnotherStreamsSegmentPassesOnWithItsPin) {
  make("");
  const Stream other = gpu_->create_stream(kDevice).value();
  const Address address = alloc(60_MiB);
  const PinnedRange pin = allocator_->pin(address).value();
  free(address);
  EXPECT_EQ(allocator_->allocate(60_MiB, other).value_or(Address{}), address);
  free(address);
  EXPECT_TRUE(allocator_->retire_stream(other).is_ok());
  trim();
  EXPECT_EQ(reserved(), 60_MiB);
  EXPECT_EQ(allocator_->validate(), nullptr);
  EXPECT_TRUE(allocator_->unpin(pin).is_ok());
  trim();
  EXPECT_EQ(reserved(), 0_B);
}

TEST_F(PinsTest, TheAccountOfAnOutOfMemoryNamesWhatIsPinned) {
  make("backing:pages,wait_ms:0");
  const Address address = alloc(5_MiB);
  const PinnedRange pin = allocator_->pin(address).value();
  static_cast<void>(allocator_->pin(address).value());
  free(address);
  for (const Bytes size : {4_MiB, 1_MiB})  // in the same pages; in the small pool
    static_cast<void>(allocator_->pin(alloc(size)).value());
  OutOfMemory account;
  EXPECT_EQ(allocator_->allocate(64_MiB, stream_, &account).code(), Code::kOutOfMemory);
  EXPECT_EQ(account.pinned, 8_MiB) << "three pages, and one of the small pool";
  EXPECT_NE(account.message().find("Of what it holds 8.00 MiB (8388608 bytes) is pinned"),
            std::string::npos)
      << account.message();
  static_cast<void>(allocator_->unpin(pin));
}

TEST_F(PinsTest, OtherMemoryUnderAnAddressHasAnotherGeneration) {
  for (const char* const conf : {"", "backing:pages"}) {
    make(conf);
    const Address before = alloc(20_MiB);
    const std::uint64_t generation = allocator_->backing_generation(before).value();
    free(before);
    EXPECT_EQ(alloc(20_MiB), before);
    EXPECT_EQ(allocator_->backing_generation(before).value(), generation) << "the same memory";
    free(before);
    trim();
    const Address after = alloc(20_MiB);
    EXPECT_NE(allocator_->backing_generation(after).value(), generation);
  }
}

TEST_F(PinsTest, OneOtherPageIsEnough) {
  make("backing:pages");
  const Address address = alloc(20_MiB);
  const std::uint64_t generation = allocator_->backing_generation(address).value();
  free(address);
  EXPECT_TRUE(allocator_->set_memory_limit(kDevice, 18_MiB).is_ok());
  EXPECT_TRUE(allocator_->set_memory_limit(kDevice, Bytes::max()).is_ok());
  EXPECT_EQ(alloc(20_MiB), address);
  EXPECT_NE(allocator_->backing_generation(address).value(), generation);
}

TEST_F(PinsTest, ObserversAreToldOfRunsOfPagesBeforeTheyGoAndWhenTheyHaveCome) {
  make("backing:pages");
  observe([this](const MappingEvent& event) {
    const bool is_there = gpu_->register_range(event.device, event.address, event.size).is_ok();
    EXPECT_TRUE(is_there) << "before it goes, or when it has come";
  });
  const Address address = alloc(8_MiB);
  ASSERT_EQ(events_.size(), 1u);
  EXPECT_EQ(events_[0].device, kDevice);
  EXPECT_EQ(events_[0].change, MappingChange::kMapped);
  EXPECT_EQ(events_[0].address, address);
  EXPECT_EQ(events_[0].size, 8_MiB);
  EXPECT_EQ(events_[0].generation, allocator_->backing_generation(address).value());
  free(address);
  EXPECT_TRUE(allocator_->set_memory_limit(kDevice, 2_MiB).is_ok());
  ASSERT_EQ(events_.size(), 2u);
  EXPECT_EQ(events_[1].change, MappingChange::kUnmapping);
  EXPECT_EQ(events_[1].address, address + 2_MiB);
  EXPECT_EQ(events_[1].size, 6_MiB);
  EXPECT_EQ(events_[1].generation, events_[0].generation);
}

TEST_F(PinsTest, ObserversAreToldOfSegments) {
  make("");
  observe();
  const Address address = alloc(8_MiB);
  free(address);
  trim();
  ASSERT_EQ(events_.size(), 2u);
  for (const MappingEvent& event : events_) {
    EXPECT_EQ(event.address, address);
    EXPECT_EQ(event.size, 20_MiB);
    EXPECT_EQ(event.generation, events_[0].generation);
  }
  EXPECT_EQ(events_[0].change, MappingChange::kMapped);
  EXPECT_EQ(events_[1].change, MappingChange::kUnmapping);
}

TEST_F(PinsTest, WhereTheDriverRefusesObserversAreToldThatTheMemoryHasStayed) {
  for (const auto& [conf, kind] :
       {std::pair{"", CallKind::kSegmentFree}, std::pair{"backing:pages", CallKind::kPageUnmap}}) {
    make(conf);
    observe();
    const Address address = alloc(20_MiB);
    const std::uint64_t generation = allocator_->backing_generation(address).value();
    free(address);
    events_.clear();
    gpu_->fail(kind, 1, spec::FailMode::kOnce);
    static_cast<void>(allocator_->set_memory_limit(kDevice, 0_B));
    ASSERT_GE(events_.size(), 2u);
    EXPECT_EQ(events_[0].change, MappingChange::kUnmapping);
    EXPECT_EQ(events_[1].change, MappingChange::kMapped);
    EXPECT_EQ(events_[1].address, events_[0].address);
    EXPECT_EQ(events_[1].size, events_[0].size);
    EXPECT_EQ(events_[1].generation, generation);
  }
}

TEST_F(PinsTest, AtTheAllocatorsEndObserversAreTold) {
  make("backing:pages");
  observe();
  free(alloc(8_MiB));
  allocator_.reset();
  ASSERT_EQ(events_.size(), 2u);
  EXPECT_EQ(events_[1].change, MappingChange::kUnmapping);
  EXPECT_EQ(events_[1].size, 8_MiB);
}

TEST_F(PinsTest, WhatIsPinnedAtTheAllocatorsEndStaysWithTheDevice) {
  make("backing:pages");
  const Address address = alloc(8_MiB);
  static_cast<void>(allocator_->pin(address).value());
  free(address);
  allocator_.reset();
  EXPECT_EQ(gpu_->ledger(kDevice).pages.bytes, 8_MiB);
}

/// Of a library that caches registrations by address (H56).
TEST_F(PinsTest, WithoutAnObserverACacheOfRegistrationsGoesStaleAndWithOneItDoesNot) {
  for (const char* const conf : {"", "backing:pages", "backing:pages,move:never"}) {
    for (const bool listens : {false, true}) {
      make(conf);
      spec::RegistrationCache library(*gpu_);
      if (listens) {
        observe([&library](const MappingEvent& event) {
          if (event.change == MappingChange::kUnmapping) library.drop(event.address, event.size);
        });
      }
      const Address buffer = alloc(20_MiB);
      alloc(20_MiB);
      EXPECT_TRUE(library.send(kDevice, buffer, 20_MiB).is_ok());
      free(buffer);
      trim();
      const Address again = alloc(20_MiB);
      ASSERT_EQ(again, buffer) << "the simulated machine gives out what came back last";
      EXPECT_EQ(library.send(kDevice, again, 20_MiB).is_ok(), listens) << conf;
      EXPECT_EQ(has_faults(), !listens);
      allocator_.reset();  // before the library
    }
  }
}

TEST_F(PinsTest, ARegistrationOfAPinnedRangeStaysGoodWithoutAnObserver) {
  make("backing:pages");
  const Address buffer = alloc(20_MiB);
  alloc(20_MiB);
  const PinnedRange pin = allocator_->pin(buffer).value();
  const spec::RegistrationId id = gpu_->register_range(kDevice, pin.base, pin.size).value();
  free(buffer);
  EXPECT_EQ(allocator_->allocate(44_MiB, stream_).code(), Code::kOutOfMemory);
  trim();
  EXPECT_TRUE(gpu_->send(id, pin.base, pin.size).is_ok());
  EXPECT_TRUE(allocator_->unpin(pin).is_ok());
  // A page that moves stays mapped where it was: the address loses it when other pages come there.
  const Address moved = alloc(40_MiB);
  EXPECT_TRUE(gpu_->send(id, pin.base, pin.size).is_ok());
  free(moved);
  trim();
  EXPECT_FALSE(gpu_->send(id, pin.base, pin.size).is_ok());
  EXPECT_TRUE(has_faults());
}

/// A step that repeats. More addresses are used than there is memory: pages serve `large` and `small` in turn, and from
/// the twelfth step on they come from one to the other without a device call.
class LentPagesTest : public PinsTest {
 protected:
  struct Places {
    Address large;
    Address small;
    friend bool operator==(const Places&, const Places&) = default;
  };
  struct Hooks {
    std::function<void(Address large)> while_large_is_live;
    std::function<void()> before_small;
  };
  Places step(const Hooks& hooks = {}) {
    const Address first = alloc(10_MiB);
    const Address second = alloc(22_MiB);
    free(first);
    const Address large = alloc(38_MiB);
    if (hooks.while_large_is_live) hooks.while_large_is_live(large);
    free(second);
    free(large);
    free(alloc(10_MiB));
    free(alloc(30_MiB));
    if (hooks.before_small) hooks.before_small();
    const Address small = alloc(14_MiB);
    free(small);
    return {large, small};
  }
  void settle() {
    make("backing:pages");
    for (unsigned n = 0; n < 20; ++n) settled_ = step();
    const std::uint64_t before = calls();
    EXPECT_EQ(step(), settled_);
    ASSERT_EQ(calls(), before);
    ASSERT_GT(settled_.large + 38_MiB - settled_.small, 64_MiB) << "some of it is the same memory";
  }
  std::uint64_t calls() {
    const DeviceStats stats = allocator_->stats(kDevice).value();
    return std::accumulate(stats.device_calls.begin(), stats.device_calls.end(), std::uint64_t{0});
  }
  /// Where no memory is.
  std::string unmapped_ranges() {
    Snapshot map;
    EXPECT_TRUE(allocator_->snapshot(kDevice, &map).is_ok());
    std::string text;
    for (const SnapshotBlock& block : map.blocks) {
      if (block.state != BlockState::kUnmapped) continue;
      text +=
          std::to_string(block.address.value()) + " + " + std::to_string(block.size.count()) + "\n";
    }
    return text;
  }

  Places settled_;
};

TEST_F(LentPagesTest, APageThatComesHomeHasTheGenerationThatItHad) {
  settle();
  std::uint64_t generation = 0;
  const auto read = [&](Address large) {
    const std::uint64_t before =
        std::exchange(generation, allocator_->backing_generation(large).value());
    EXPECT_TRUE(before == 0 || before == generation);
  };
  for (unsigned n = 0; n < 3; ++n) EXPECT_EQ(step({read, {}}), settled_);
}

TEST_F(LentPagesTest, APinnedPageIsNotLent) {
  settle();
  PinnedRange pin;
  const Places pinned = step({[&](Address large) { pin = allocator_->pin(large).value(); }, {}});
  EXPECT_EQ(pinned.large, settled_.large);
  EXPECT_NE(pinned.small, settled_.small) << "some of its pages are pinned";
  for (unsigned n = 0; n < 20; ++n) {
    step();
    ASSERT_EQ(allocator_->validate(), nullptr) << "each pinned page is at home";
  }
  EXPECT_TRUE(allocator_->unpin(pin).is_ok());
}

/// Another stream, whose requests the log of places does not know, pins the first of the pages' homes.
TEST_F(LentPagesTest, APlaceThatLacksOnePinnedPageIsNotBorrowedInPart) {
  settle();
  const Stream other = gpu_->create_stream(kDevice).value();
  PinnedRange pin;
  std::string before;
  const auto pin_some = [&] {
    const Address there = allocator_->allocate(54_MiB, other).value_or(Address{});
    EXPECT_LT(there + 54_MiB, settled_.large + 38_MiB);
    EXPECT_GT(there + 54_MiB, settled_.large + 28_MiB);
    pin = allocator_->pin(there).value();
    free(there);
    static_cast<void>(gpu_->drain_all());
    before = unmapped_ranges();
  };
  const Places places = step({{}, pin_some});
  EXPECT_NE(places.small, settled_.small);
  EXPECT_EQ(unmapped_ranges(), before);
  EXPECT_TRUE(allocator_->unpin(pin).is_ok());
}

/// While one thread pins what it frees, the other takes away all that it may.
TEST_F(PinsTest, AThreadsPinsHoldAgainstAnotherThreadsTrims) {
  for (const char* const conf : {"", "backing:pages"}) {
    make(conf, 256_MiB);
    std::atomic<bool> is_over{false};
    std::thread trims([&] {
      while (!is_over) static_cast<void>(allocator_->trim(kDevice));
    });
    for (int round = 0; round < 300; ++round) {
      const Address address = alloc(1_MiB * (1 + static_cast<std::uint64_t>(round % 7)));
      const Result<PinnedRange> pin = allocator_->pin(address);
      if (!pin.is_ok()) break;
      const spec::RegistrationId id =
          gpu_->register_range(kDevice, pin.value().base, pin.value().size).value();
      free(address);
      std::this_thread::yield();
      EXPECT_TRUE(gpu_->send(id, pin.value().base, pin.value().size).is_ok());
      EXPECT_TRUE(allocator_->unpin(pin.value()).is_ok());
      EXPECT_TRUE(gpu_->deregister(id).is_ok());
    }
    is_over = true;
    trims.join();
    EXPECT_FALSE(has_faults());
    trim();
    EXPECT_EQ(reserved(), 0_B);
    EXPECT_EQ(allocator_->validate(), nullptr);
  }
}

/// Under the reclaim lock, and without it.
TEST_F(PinsTest, AnObserverFreesQueriesAndPinsAndIsRefusedTheRest) {
  make("backing:pages");
  const Stream fresh = gpu_->create_stream(kDevice).value();
  Address kept;
  Address freed;
  unsigned calls = 0;
  bool is_at_its_end = false;
  observe([&](const MappingEvent& event) {
    if (event.change != MappingChange::kUnmapping || is_at_its_end) return;
    ++calls;
    const PinnedRange pin = allocator_->pin(kept).value();
    EXPECT_EQ(pin.generation, allocator_->backing_generation(kept).value());
    EXPECT_TRUE(allocator_->unpin(pin).is_ok());
    EXPECT_TRUE(allocator_->stats(kDevice).is_ok());
    EXPECT_EQ(allocator_->allocate(1_KiB, stream_).code(), Code::kReentrant);
    EXPECT_EQ(allocator_->trim(kDevice).code(), Code::kReentrant);
    EXPECT_EQ(allocator_->make_room(kDevice, 1_MiB).code(), Code::kReentrant);
    EXPECT_EQ(allocator_->set_memory_limit(kDevice, 1_MiB).code(), Code::kReentrant);
    EXPECT_EQ(allocator_->retire_stream(stream_).code(), Code::kReentrant);
    EXPECT_EQ(allocator_->begin_capture(stream_).code(), Code::kReentrant);
    EXPECT_EQ(allocator_->end_capture(stream_).code(), Code::kReentrant);
    EXPECT_EQ(allocator_->retain_pool(kDevice, {0, 1}).code(), Code::kReentrant);
    // Of a stream that has no heap yet: making one tries the lock that this thread may have.
    if (calls == 1) {
      EXPECT_TRUE(allocator_->free(freed, fresh).is_ok());
    }
  });
  kept = alloc(4_MiB);
  freed = alloc(4_MiB);
  free(alloc(4_MiB));
  trim();
  EXPECT_GE(calls, 1u);
  EXPECT_EQ(allocator_->validate(), nullptr);
  is_at_its_end = true;
  allocator_.reset();
}

}  // namespace
}  // namespace ashlar::cache
