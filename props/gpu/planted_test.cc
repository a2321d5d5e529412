// Tests the oracle itself. Imitates: small caching allocators with bugs that real ones had, each
// under thousands of random operations of a caller that keeps the rules. The sound allocator must
// cause no fault; every planted bug must be reported as the allocator's fault, never as the
// caller's. Does not prove: anything about the library's allocator.
#include <vector>

#include "props/gpu/fixture.h"
#include "spec/ops/random.h"

namespace ashlar::spec {
namespace {

enum class Bug {
  kNone,
  kIgnoresStreams,        // hands any free block to any stream
  kForgetsAnnouncedUses,  // record_use is a no-op
  // a heap per handle value: a recycled handle inherits a dead stream's blocks
  kKeysOnHandles,
  // the event of an announced use is recorded at record_use, not at the free
  kRecordsBeforeLastUse,
  kTakesNotReadyForDone,   // takes any answer of event_query as done
  kFreesSegmentsInUse,     // trims without asking whether kernels are done
  kSharesTheThreadStream,  // takes the per-thread handle of two threads for one stream
  kHandsOutTwice,          // a block is handed out while live
};

// 4 KiB blocks, one segment each; a block idles on its stream's list, or waits for its events.
class MiniAllocator {
 public:
  MiniAllocator(device::Device& device, Bug bug) : device_(device), bug_(bug) {}

  struct Block {
    Address at;
    Stream stream;
    std::vector<Stream> uses;
    std::vector<EventHandle> events;
  };

  std::uint64_t key(const Stream& s) const {
    if (bug_ == Bug::kKeysOnHandles) return s.handle.value();
    if (bug_ == Bug::kSharesTheThreadStream && s.thread_bound) return s.handle.value();
    return s.id.value() << 32;
  }

  Block allocate(const Stream& s) {
    poll();
    if (bug_ == Bug::kHandsOutTwice && ++count_ % 10 == 0 && !last_.at.is_null()) return last_;
    for (auto it = idle_.begin(); it != idle_.end(); ++it) {
      if (bug_ != Bug::kIgnoresStreams && key(it->stream) != key(s)) continue;
      Block block = *it;
      idle_.erase(it);
      block.stream = s;
      return last_ = block;
    }
    return last_ = Block{device_.segment_alloc(4_KiB).value(), s, {}, {}};
  }
  void use(Block& block, const Stream& s) {
    if (bug_ == Bug::kForgetsAnnouncedUses) return;
    block.uses.push_back(s);
    if (bug_ == Bug::kRecordsBeforeLastUse) record(block, s);
  }
  void free(Block block) {
    last_ = Block{};
    if (bug_ != Bug::kRecordsBeforeLastUse) {
      for (const Stream& s : block.uses) record(block, s);
    }
    block.uses.clear();
    (block.events.empty() ? idle_ : pending_).push_back(block);
  }
  void trim() {
    poll();
    if (bug_ != Bug::kFreesSegmentsInUse) {
      EXPECT_TRUE(device_.synchronize().is_ok());
    }
    for (const Block& block : idle_) EXPECT_TRUE(device_.segment_free(block.at).is_ok());
    idle_.clear();
  }

 private:
  void record(Block& block, const Stream& s) {
    const EventHandle event = device_.event_create().value();
    EXPECT_TRUE(device_.event_record(event, s.handle).is_ok());
    block.events.push_back(event);
  }
  void poll() {
    for (auto it = pending_.begin(); it != pending_.end();) {
      while (!it->events.empty()) {
        const Status done = device_.event_query(it->events.back());
        if (!done.is_ok() && bug_ != Bug::kTakesNotReadyForDone) break;
        EXPECT_TRUE(device_.event_destroy(it->events.back()).is_ok());
        it->events.pop_back();
      }
      if (!it->events.empty()) {
        ++it;
        continue;
      }
      idle_.push_back(*it);
      it = pending_.erase(it);
    }
  }

  device::Device& device_;
  Bug bug_;
  std::vector<Block> idle_;
  std::vector<Block> pending_;
  Block last_;
  int count_ = 0;
};

// A caller that keeps the rules: uses a block on its own stream, or announces and orders the use.
class Caller {
 public:
  /// `strict`: it does not count that work happens to be done; the allocator must have learnt it.
  Caller(std::uint64_t seed, Bug bug, bool strict)
      : sim_(SimGpuOptions{.seed = seed,
                           .drop_edges = strict ? std::uint32_t{kEdgeCompletion} : 0u}),
        allocator_(sim_.device(), bug),
        rng_(seed),
        churns_(bug == Bug::kNone || bug == Bug::kKeysOnHandles),
        trims_(bug == Bug::kNone || bug == Bug::kFreesSegmentsInUse) {
    for (std::size_t i = 0; i < kStreams; ++i)
      streams_.push_back(sim_.create_stream(kFirstDevice).value());
    for (std::uint32_t thread : {1u, 0u}) {
      sim_.act_as_thread(thread);
      streams_.push_back(sim_.default_stream(kFirstDevice, kPerThreadStream));
    }
  }

  std::vector<Fault> run(int steps) {
    for (int i = 0; i < steps; ++i) step();
    return sim_.take_faults();
  }

 private:
  static constexpr std::size_t kStreams = 3;
  struct Held {
    MiniAllocator::Block block;
    AllocationTag tag;
  };

  // The per-thread handle means this stream only on its own thread.
  void act_for(std::size_t stream) { sim_.act_as_thread(stream == kStreams ? 1 : 0); }

  void kernel(const Stream& s, const Held& held) {
    EXPECT_TRUE(sim_.launch(s, Touch{held.block.at, 4_KiB, Access::kReadWrite, held.tag}).is_ok());
  }
  void use_elsewhere(Held& held, std::size_t on) {
    const Stream& s = streams_[on];
    if (s == held.block.stream || s.thread_bound || held.block.stream.thread_bound) return;
    {
      const SimGpu::CallerScope own;
      const EventHandle after = sim_.device().event_create().value();
      EXPECT_TRUE(sim_.device().event_record(after, held.block.stream.handle).is_ok());
      EXPECT_TRUE(sim_.device().stream_wait(s.handle, after).is_ok());
      EXPECT_TRUE(sim_.device().event_destroy(after).is_ok());
    }
    sim_.on_use_announced(held.tag, s);
    allocator_.use(held.block, s);
    for (int i = 0; i < 4; ++i) kernel(s, held);  // announced once, used several times
  }
  bool in_use(const Stream& s) const {
    for (const Held& held : held_) {
      if (held.block.stream == s) return true;
      for (const Stream& use : held.block.uses) {
        if (use == s) return true;
      }
    }
    return false;
  }
  void replace_stream(std::size_t on) {
    if (on >= kStreams || in_use(streams_[on])) return;
    EXPECT_TRUE(sim_.destroy_stream(streams_[on]).is_ok());
    streams_[on] = sim_.create_stream(kFirstDevice).value();
  }
  void step() {
    const std::uint64_t what = rng_.below(100);
    const std::size_t on = rng_.below(streams_.size());
    act_for(on);
    if (what < 30) {
      Held held{allocator_.allocate(streams_[on]), ++tag_};
      sim_.on_allocate(held.tag, held.block.at, 4_KiB, streams_[on]);
      kernel(streams_[on], held);
      held_.push_back(held);
    } else if (what < 60 && !held_.empty()) {
      const std::size_t i = rng_.below(held_.size());
      const Held held = held_[i];
      held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(i));
      sim_.on_free(held.tag);
      allocator_.free(held.block);
    } else if (what < 80 && !held_.empty()) {
      use_elsewhere(held_[rng_.below(held_.size())], on);
    } else if (what < 84 && churns_) {
      replace_stream(on);
    } else if (what < 86 && trims_) {
      allocator_.trim();
    } else {
      sim_.progress(rng_.below(20));  // about as fast as work is enqueued
    }
  }
  SimGpu sim_;
  MiniAllocator allocator_;
  Random rng_;
  bool churns_;
  bool trims_;
  std::vector<Stream> streams_;
  std::vector<Held> held_;
  AllocationTag tag_ = 0;
};

TEST(Planted, SoundAllocatorIsSilent) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    for (const bool strict : {false, true}) {
      for (const Fault& fault : Caller(seed, Bug::kNone, strict).run(1200))
        ADD_FAILURE() << seed << ": " << fault.text;
    }
  }
}

struct Expected {
  const char* name;
  Bug bug;
  FaultKind kind;
};

class Planted : public testing::TestWithParam<Expected> {};

TEST_P(Planted, IsCaughtAndBlamedOnTheAllocator) {
  int caught = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const std::vector<Fault> faults = Caller(seed, GetParam().bug, true).run(400);
    for (const Fault& fault : faults) {
      EXPECT_EQ(fault.by, Blame::kAllocator) << fault.text;
      if (fault.kind == GetParam().kind) {
        ++caught;
        break;
      }
    }
  }
  EXPECT_GE(caught, 19) << "of 20 worlds caught it";
}

INSTANTIATE_TEST_SUITE_P(
    Bugs, Planted,
    testing::Values(
        Expected{"IgnoresStreams", Bug::kIgnoresStreams, FaultKind::kEarlyReuse},
        Expected{"ForgetsAnnouncedUses", Bug::kForgetsAnnouncedUses, FaultKind::kEarlyReuse},
        Expected{"KeysOnHandles", Bug::kKeysOnHandles, FaultKind::kEarlyReuse},
        Expected{"RecordsBeforeLastUse", Bug::kRecordsBeforeLastUse, FaultKind::kEarlyReuse},
        Expected{"TakesNotReadyForDone", Bug::kTakesNotReadyForDone, FaultKind::kEarlyReuse},
        Expected{"FreesSegmentsInUse", Bug::kFreesSegmentsInUse, FaultKind::kInFlight},
        Expected{"SharesTheThreadStream", Bug::kSharesTheThreadStream, FaultKind::kEarlyReuse},
        Expected{"HandsOutTwice", Bug::kHandsOutTwice, FaultKind::kOverlap}),
    [](const testing::TestParamInfo<Expected>& made) { return std::string(made.param.name); });

}  // namespace
}  // namespace ashlar::spec
