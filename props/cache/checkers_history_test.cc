// Planted bugs of histories (row DEV-18).
//
// Imitates: an allocator that loses events, tells them in another order, forgets memory that moved, or takes its
// snapshot at another moment than its history.
#include <algorithm>

#include "props/cache/planted_run.h"

namespace ashlar::props {
namespace {

constexpr const char* kRun =
    "stream s1 d0\nhistory d0 20\nalloc p0 3MiB s0\nalloc p1 1KiB s0\nkernel s1 p0 w\nuse p0 "
    "s1\nfree p0\n"
    "free p1\ndrain d0\nprocess d0\nhistory d0 2\ntrim d0\nhistory d0 1\nhistory d0 0\n";

/// Changes the events that are read.
class TamperedHistory : public ForwardingSubject {
 public:
  using ForwardingSubject::ForwardingSubject;
  Status read_history(DeviceId device, std::uint64_t first, cache::History* out) override {
    const Status got = ForwardingSubject::read_history(device, first, out);
    for (cache::HistoryEvent& event : out->events) tamper(&event);
    return got;
  }

 protected:
  virtual void tamper(cache::HistoryEvent* event) = 0;
};

class ForgetsCompletions final : public TamperedHistory {
 public:
  using TamperedHistory::TamperedHistory;
  void tamper(cache::HistoryEvent* event) override {
    if (event->action == cache::HistoryAction::kFreeCompleted)
      event->action = cache::HistoryAction::kSnapshot;
  }
};

class ForgetsMemory final : public TamperedHistory {
 public:
  using TamperedHistory::TamperedHistory;
  void tamper(cache::HistoryEvent* event) override {
    if (event->action == cache::HistoryAction::kSegmentFree)
      event->action = cache::HistoryAction::kSnapshot;
  }
};

class TellsTheSizeAsRounded final : public TamperedHistory {
 public:
  using TamperedHistory::TamperedHistory;
  void tamper(cache::HistoryEvent* event) override {
    if (event->action == cache::HistoryAction::kFreeRequested)
      event->size = event->block_size + 1_B;
  }
};

class NamesAnotherStream final : public TamperedHistory {
 public:
  using TamperedHistory::TamperedHistory;
  void tamper(cache::HistoryEvent* event) override {
    if (event->action == cache::HistoryAction::kFreeRequested) event->stream = StreamId{77};
  }
};

class GoesBackInTime final : public TamperedHistory {
 public:
  using TamperedHistory::TamperedHistory;
  void tamper(cache::HistoryEvent* event) override {
    if (event->action == cache::HistoryAction::kFreeRequested) event->time_us = 1;
  }
};

class SkipsANumber final : public TamperedHistory {
 public:
  using TamperedHistory::TamperedHistory;
  void tamper(cache::HistoryEvent* event) override {
    if (event->action == cache::HistoryAction::kUserDefined) ++event->sequence;
  }
};

class TakesTheSnapshotEarlier final : public ForwardingSubject {
 public:
  using ForwardingSubject::ForwardingSubject;
  Status history_snapshot(DeviceId device, cache::HistorySnapshot* out) override {
    const Status got = ForwardingSubject::history_snapshot(device, out);
    out->snapshot = {};
    return got;
  }
};

class TakesNoEventOfIt final : public ForwardingSubject {
 public:
  using ForwardingSubject::ForwardingSubject;
  Status history_snapshot(DeviceId device, cache::HistorySnapshot* out) override {
    const Status got = ForwardingSubject::history_snapshot(device, out);
    if (!out->history.events.empty()) out->history.events.pop_back();
    return got;
  }
};

class BeginsTwice final : public ForwardingSubject {
 public:
  using ForwardingSubject::ForwardingSubject;
  Status set_history(DeviceId device, const cache::HistoryOptions* options) override {
    const Status got = ForwardingSubject::set_history(device, options);
    return got.code() == Code::kBusy ? Status::ok() : got;
  }
};

constexpr const char* kHeld =
    "history d0 20\nalloc p0 3MiB s0\nhistory d0 1\nfree p0\nhistory d0 1\n";

TEST(CheckersOfHistory, Dev18FiresOnAnEventThatIsMissing) {
  EXPECT_EQ(dense_clause<ForgetsCompletions>(kRun), "DEV-18");
  EXPECT_EQ(dense_clause<ForgetsMemory>(kRun), "DEV-18");
  EXPECT_EQ(dense_clause<SkipsANumber>(kRun), "DEV-18");
}

TEST(CheckersOfHistory, Dev18FiresOnAnEventThatSaysSomethingElse) {
  EXPECT_EQ(dense_clause<TellsTheSizeAsRounded>(kRun), "DEV-18");
  EXPECT_EQ(dense_clause<NamesAnotherStream>(kRun), "DEV-18");
  EXPECT_EQ(dense_clause<GoesBackInTime>(kRun), "DEV-18");
}

TEST(CheckersOfHistory, Dev18FiresOnASnapshotOfAnotherMoment) {
  EXPECT_EQ(dense_clause<TakesTheSnapshotEarlier>(kHeld), "DEV-18");
  EXPECT_EQ(dense_clause<TakesNoEventOfIt>(kHeld), "DEV-18");
}

TEST(CheckersOfHistory, Dev18FiresOnASecondBeginning) {
  EXPECT_EQ(dense_clause<BeginsTwice>("history d0 20\nhistory d0 20\n"), "DEV-18");
}

}  // namespace
}  // namespace ashlar::props
