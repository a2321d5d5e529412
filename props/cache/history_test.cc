// The history of a device, event by event: contents, contexts, texts, overwriting, misuse.
//
// Imitates: a user who records a run, asks where memory was allocated, and reads the history bit by bit. Does not
// prove: that the events agree with the memory; the model judges that in every lockstep (spec/model/history_book.h).
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include <ashlar/ashlar.h>

#include "props/cache/liveness_fixture.h"

namespace ashlar::cache {
namespace {

class HistoryTest : public ::testing::Test {
 protected:
  void SetUp() override { make("backing:segments"); }
  void make(const char* conf) {
    allocator_.reset();
    spec::SimGpuOptions options;
    options.capacities = {64_MiB};
    gpu_ = std::make_unique<spec::SimGpu>(options);
    device::Device* devices[] = {&gpu_->device(0)};
    allocator_ = make_allocator(devices, conf);
    first_ = gpu_->create_stream(kDevice).value();
    second_ = gpu_->create_stream(kDevice).value();
  }
  void start(const HistoryOptions& options = {}) {
    ASSERT_TRUE(start_history(*allocator_, kDevice, options).is_ok());
  }
  History read(std::uint64_t from = 0) {
    History history;
    EXPECT_TRUE(read_history(*allocator_, kDevice, from, &history).is_ok());
    return history;
  }
  /// The actions of the events, a letter each.
  std::string letters() {
    std::string text;
    for (const HistoryEvent& event : read().events)
      text += "afcSFMUsox"[static_cast<unsigned>(event.action)];
    return text;
  }
  Address allocate(Bytes size, const Stream& stream) {
    return allocator_->allocate(size, stream).value();
  }

  std::unique_ptr<spec::SimGpu> gpu_;
  std::unique_ptr<CachingAllocator> allocator_;
  Stream first_, second_;
};

/// Numbers its calls, and says on which thread.
class CountingRecorder final : public ContextRecorder {
 public:
  ContextId gather() noexcept override { return ContextId{++calls}; }
  std::uint64_t calls = 0;
};

TEST_F(HistoryTest, APlainAllocationIsFourEventsAndItsFreeTwo) {
  start();
  const Address a = allocate(1000_B, first_);
  EXPECT_TRUE(allocator_->free(a).is_ok());
  EXPECT_EQ(letters(), "Safc");
  const std::vector<HistoryEvent> events = read().events;
  EXPECT_EQ(events[0].size, 2_MiB);
  EXPECT_EQ(events[1].address, a);
  EXPECT_EQ(events[1].size, 1000_B) << "what was asked for";
  EXPECT_EQ(events[1].block_size, 1024_B) << "what it takes";
  EXPECT_EQ(events[1].stream, first_.id);
  EXPECT_EQ(events[2].size, 1000_B);
  for (std::size_t i = 0; i < events.size(); ++i) EXPECT_EQ(events[i].sequence, i);
}

TEST_F(HistoryTest, AFreeWithAUseElsewhereIsCompletedWhenThatIsDone) {
  start();
  const Address a = allocate(1_MiB, first_);
  ASSERT_TRUE(gpu_->launch(second_, spec::Touch{a, 1_MiB}).is_ok());
  EXPECT_TRUE(allocator_->free(a, second_).is_ok());
  EXPECT_EQ(letters(), "Saf");
  static_cast<void>(gpu_->drain(kDevice));
  EXPECT_TRUE(process_events(*allocator_, kDevice).is_ok());
  EXPECT_EQ(letters(), "Safc");
}

TEST_F(HistoryTest, MemoryThatGoesBackAndPagesAreEvents) {
  start();
  EXPECT_TRUE(allocator_->free(allocate(4_MiB, first_)).is_ok());
  EXPECT_TRUE(allocator_->trim(kDevice).is_ok());
  EXPECT_EQ(letters(), "SafcF");
  make("backing:pages");
  start();
  EXPECT_TRUE(allocator_->free(allocate(4_MiB, first_)).is_ok());
  EXPECT_TRUE(allocator_->trim(kDevice).is_ok());
  EXPECT_EQ(letters(), "MafcU");
  EXPECT_EQ(read().events[0].size, 4_MiB);
}

TEST_F(HistoryTest, AnOutOfMemorySaysWhatWasAskedForAndWhatWasFree) {
  start();
  EXPECT_EQ(allocator_->allocate(100_MiB, first_).code(), Code::kOutOfMemory);
  const HistoryEvent failed = read().events.back();
  EXPECT_EQ(failed.action, HistoryAction::kOutOfMemory);
  EXPECT_EQ(failed.size, 100_MiB);
  EXPECT_EQ(failed.device_free, 64_MiB);
}

TEST_F(HistoryTest, OnlyTheNewestEventsAreKeptAndTheOthersCounted) {
  start({.events_max = 5});
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(allocator_->free(allocate(512_B, first_)).is_ok());
  const History history = read();
  ASSERT_EQ(history.events.size(), 5u);
  EXPECT_EQ(history.lost, 8u) << "13 events in all";
  EXPECT_EQ(history.events.front().sequence, 8u);
  const History later = read(10);
  EXPECT_EQ(later.events.size(), 3u);
  EXPECT_EQ(later.lost, 0u);
  EXPECT_EQ(read(2).lost, 6u) << "of those that were asked for";
  EXPECT_EQ(read(100).events.size(), 0u);
}

TEST_F(HistoryTest, TimesDoNotDecrease) {
  start();
  for (int i = 0; i < 50; ++i) EXPECT_TRUE(allocator_->free(allocate(512_B, first_)).is_ok());
  std::uint64_t before = 0;
  for (const HistoryEvent& event : read().events) {
    EXPECT_GE(event.time_us, before);
    before = event.time_us;
  }
  EXPECT_GT(before, 1'700'000'000'000'000u) << "microseconds since 1970";
}

TEST_F(HistoryTest, ContextsAreGatheredForAllocationsAndIfAskedForFrees) {
  CountingRecorder recorder;
  start({.recorder = &recorder});
  const Address a = allocate(512_B, first_);
  EXPECT_TRUE(allocator_->free(a).is_ok());
  EXPECT_EQ(recorder.calls, 1u);
  EXPECT_EQ(read().events[1].context, ContextId{1});
  EXPECT_EQ(read().events[2].context, ContextId{});
  EXPECT_TRUE(stop_history(*allocator_, kDevice).is_ok());
  static_cast<void>(allocate(512_B, first_));
  EXPECT_EQ(recorder.calls, 1u) << "nobody asks when the history is off";
  start({.recorder = &recorder, .has_free_contexts = true});
  const Address b = allocate(512_B, first_);
  const Address c = allocate(512_B, first_);
  EXPECT_TRUE(allocator_->free(b).is_ok());
  EXPECT_TRUE(allocator_->free(c, second_).is_ok());
  const std::vector<HistoryEvent> events = read().events;
  EXPECT_EQ(events[2].context, ContextId{4});
  EXPECT_EQ(events[4].context, ContextId{5});
}

TEST_F(HistoryTest, ALiveAllocationKeepsItsContextWhenItsEventIsGone) {
  CountingRecorder recorder;
  start({.events_max = 8, .recorder = &recorder});
  const Address kept = allocate(512_B, first_);
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(allocator_->free(allocate(512_B, first_)).is_ok());
  HistorySnapshot taken;
  ASSERT_TRUE(history_snapshot(*allocator_, kDevice, &taken).is_ok());
  ASSERT_EQ(taken.block_contexts.size(), taken.snapshot.blocks.size());
  for (std::size_t i = 0; i < taken.snapshot.blocks.size(); ++i) {
    const bool is_kept = taken.snapshot.blocks[i].address == kept;
    EXPECT_EQ(taken.block_contexts[i], is_kept ? ContextId{1} : ContextId{});
  }
}

TEST_F(HistoryTest, AnAllocationThatTheRecorderMakesHasNoContextAndAsksNobody) {
  class Nested final : public ContextRecorder {
   public:
    ContextId gather() noexcept override {
      ++calls;
      static_cast<void>(allocator->allocate(512_B, stream));
      return ContextId{7};
    }
    CachingAllocator* allocator = nullptr;
    Stream stream;
    int calls = 0;
  };
  Nested recorder;
  recorder.allocator = allocator_.get();
  recorder.stream = first_;
  start({.recorder = &recorder});
  static_cast<void>(allocate(512_B, first_));
  EXPECT_EQ(recorder.calls, 1);
  EXPECT_EQ(letters(), "Saa");
  EXPECT_EQ(read().events[1].context, ContextId{});
  EXPECT_EQ(read().events[2].context, ContextId{7});
}

TEST_F(HistoryTest, AnnotationsStandInTheirOrderWithTheirTexts) {
  start({.events_max = 4});
  EXPECT_TRUE(annotate(*allocator_, kDevice, "lost").is_ok());
  EXPECT_TRUE(annotate(*allocator_, kDevice, "forward").is_ok());
  static_cast<void>(allocate(512_B, first_));
  EXPECT_TRUE(annotate(*allocator_, kDevice, "backward").is_ok());
  const History history = read();
  EXPECT_EQ(letters(), "xSax");
  ASSERT_EQ(history.texts, (std::vector<std::string>{"forward", "backward"}));
  EXPECT_EQ(history.events[0].context, ContextId{1});
  EXPECT_EQ(history.events[3].context, ContextId{2});
}

TEST_F(HistoryTest, MisuseIsATypedError) {
  History history;
  HistorySnapshot taken;
  EXPECT_EQ(stop_history(*allocator_, kDevice).code(), Code::kNotFound);
  EXPECT_EQ(annotate(*allocator_, kDevice, "x").code(), Code::kNotFound);
  EXPECT_EQ(start_history(*allocator_, DeviceId{1}).code(), Code::kInvalidArgument);
  EXPECT_EQ(start_history(*allocator_, kDevice, {.events_max = 0}).code(), Code::kInvalidArgument);
  EXPECT_EQ(start_history(*allocator_, kDevice, {.events_max = ~std::uint64_t{0}}).code(),
            Code::kInvalidArgument);
  EXPECT_EQ(read_history(*allocator_, kDevice, 0, nullptr).code(), Code::kInvalidArgument);
  EXPECT_EQ(history_snapshot(*allocator_, kDevice, nullptr).code(), Code::kInvalidArgument);
  EXPECT_EQ(read_history(*allocator_, DeviceId{1}, 0, &history).code(), Code::kInvalidArgument);
  EXPECT_EQ(history_snapshot(*allocator_, DeviceId{-1}, &taken).code(), Code::kInvalidArgument);
  EXPECT_FALSE(has_history(*allocator_, kDevice).value());
  start();
  EXPECT_TRUE(has_history(*allocator_, kDevice).value());
  EXPECT_EQ(start_history(*allocator_, kDevice).code(), Code::kBusy);
}

TEST_F(HistoryTest, AfterItsEndItsEventsCanBeReadAndASnapshotHasNone) {
  start();
  static_cast<void>(allocate(512_B, first_));
  EXPECT_TRUE(stop_history(*allocator_, kDevice).is_ok());
  static_cast<void>(allocate(512_B, first_));
  EXPECT_EQ(letters(), "Sa");
  HistorySnapshot taken;
  ASSERT_TRUE(history_snapshot(*allocator_, kDevice, &taken).is_ok());
  EXPECT_TRUE(taken.history.events.empty());
  EXPECT_EQ(taken.snapshot.segments.size(), 1u);
  start();
  EXPECT_EQ(letters(), "") << "a new history begins with nothing";
}

TEST_F(HistoryTest, ASegmentThatPassesToAnotherStreamIsFreedAndAllocated) {
  start();
  EXPECT_TRUE(allocator_->free(allocate(40_MiB, first_)).is_ok());
  static_cast<void>(gpu_->drain(kDevice));
  const Address taken = allocate(40_MiB, second_);
  EXPECT_FALSE(taken.is_null());
  EXPECT_EQ(letters(), "SafcFSa");
  const std::vector<HistoryEvent> events = read().events;
  EXPECT_EQ(events[4].stream, first_.id);
  EXPECT_EQ(events[5].stream, second_.id);
  EXPECT_EQ(events[5].address, events[0].address);
}

}  // namespace
}  // namespace ashlar::cache
