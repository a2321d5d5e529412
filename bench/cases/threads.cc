// Two threads on two streams, and two threads on one, against one thread: the 1 MiB pair, and the
// mix with 10^3 live each.
//
// A repetition is one moment of a few milliseconds: the first thread alone, both on a stream each,
// the second alone, both on one stream; who does not run sleeps. Scaling is a quotient within the
// moment: one allocator serves all repetitions of a case, and where medians of single parts, each
// over other states of its heaps, were divided, anything came out from 1.5 to 2.5 (in a heap that a
// mix has gone through, a pair costs a third more than in a new one: free blocks of other sizes are
// in the index). The empty adapter's scaling is the machine's own.
#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include <sys/resource.h>
#include <time.h>

#include <benchmark/benchmark.h>

#include "bench/cases/adapters.h"
#include "bench/cases/cases.h"
#include "bench/cases/repetition.h"
#include "bench/cases/steady_mix.h"

namespace ashlar::bench {
namespace {

constexpr std::uint64_t kPairBytes = 1 << 20;
constexpr std::size_t kLivePerThread = 1000;
constexpr double kPartSeconds = 0.002;
constexpr int kTurnsBetweenLooks = 50;  // at the clock
constexpr int kRepetitions = 100;

template <class Adapter>
class Pair {
 public:
  Pair(Adapter& adapter, unsigned stream)
      : adapter_(adapter), stream_(stream), block_(adapter.allocate(kPairBytes, stream)) {}
  ~Pair() { adapter_.free(block_); }
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;

  void turn() {
    adapter_.free(block_);
    block_ = adapter_.allocate(kPairBytes, stream_);
  }

 private:
  Adapter& adapter_;
  unsigned stream_;
  typename Adapter::Handle block_;
};

using Clock = std::chrono::steady_clock;

/// What the calling thread has had of its core so far.
struct CoreUse {
  double cpu_seconds = 0;
  long preemptions = 0;

  static CoreUse now() {
    timespec time{};
    rusage usage{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    getrusage(RUSAGE_THREAD, &usage);
    return {static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9,
            usage.ru_nivcsw};
  }
};

/// What a thread did in one part of a moment.
struct Part {
  Clock::time_point begin, end;
  std::uint64_t turns = 0;
  CoreUse core;

  double seconds() const { return std::chrono::duration<double>(end - begin).count(); }
  /// Turns per second.
  double rate() const { return static_cast<double>(turns) / seconds(); }
  /// Did the scheduler leave it its core, but for a tenth of the time? A thread that waits gives
  /// its core away itself, and is not preempted.
  bool kept_its_core() const {
    return core.preemptions == 0 || core.cpu_seconds >= 0.9 * seconds();
  }
};

template <class Work>
Part go_on_with(Work& work) {
  Part part;
  const CoreUse before = CoreUse::now();
  part.begin = Clock::now();
  do {
    for (int i = 0; i < kTurnsBetweenLooks; ++i) work.turn();
    part.turns += kTurnsBetweenLooks;
    part.end = Clock::now();
  } while (part.seconds() < kPartSeconds);
  const CoreUse after = CoreUse::now();
  part.core = {after.cpu_seconds - before.cpu_seconds, after.preemptions - before.preemptions};
  return part;
}

/// Did both run at the same time, but for a tenth of it? One that was kept from its core ran when
/// the other had ended.
bool were_together(const Part (&parts)[2]) {
  const auto both = std::min(parts[0].end, parts[1].end) - std::max(parts[0].begin, parts[1].begin);
  return std::chrono::duration<double>(both).count() >=
         0.9 * std::max(parts[0].seconds(), parts[1].seconds());
}

/// Two threads that go through a moment's parts together.
class Couple {
 public:
  /// Sleeps until the other is here too.
  void meet() { barrier_.arrive_and_wait(); }
  /// The same, but begins within nanoseconds of the other: a sleeper would begin when it has been
  /// woken.
  void meet_awake() {
    meet();
    awake_.fetch_add(1);
    while (awake_.load() % 2 != 0) {
    }
  }

 private:
  std::barrier<> barrier_{2};
  std::atomic<unsigned> awake_{0};
};

/// By thread.
struct Parts {
  Part alone[2], two_streams[2], one_stream[2];

  bool are_sound() const {
    for (const auto* both : {&alone, &two_streams, &one_stream}) {
      if (!(*both)[0].kept_its_core() || !(*both)[1].kept_its_core()) return false;
    }
    return were_together(two_streams) && were_together(one_stream);
  }
};

/// One thread's part in the moment. make(stream, seed) makes what it turns.
template <class Make>
void go_through(Couple& couple, unsigned thread, Make&& make, Parts* parts) {
  {
    auto work = make(thread, thread + 1);
    go_on_with(work);  // warms up
    couple.meet();
    if (thread == 0) parts->alone[0] = go_on_with(work);
    couple.meet_awake();
    parts->two_streams[thread] = go_on_with(work);
    couple.meet();
    if (thread == 1) parts->alone[1] = go_on_with(work);
    couple.meet();
  }
  auto work = make(0, thread + 1);
  couple.meet_awake();
  parts->one_stream[thread] = go_on_with(work);
}

/// Nothing where the moment is unsound.
template <class Make>
std::optional<Counters> moment(Make&& make) {
  Couple couple;
  Parts parts;
  std::thread second([&] { go_through(couple, 1, make, &parts); });
  go_through(couple, 0, make, &parts);
  second.join();
  if (!parts.are_sound()) return {};
  const double alone = (parts.alone[0].rate() + parts.alone[1].rate()) / 2;
  const double two_streams = parts.two_streams[0].rate() + parts.two_streams[1].rate();
  const double one_stream = parts.one_stream[0].rate() + parts.one_stream[1].rate();
  return Counters{{"alone_ns", 1e9 / alone},
                  {"two_streams_ns", 1e9 / two_streams},
                  {"one_stream_ns", 1e9 / one_stream},
                  {"scaling", two_streams / alone}};
}

template <class Adapter>
void register_for(int repetitions_max) {
  const int repetitions = std::min(kRepetitions, repetitions_max);
  const std::string name = Adapter::kName;
  register_repetitions(
      "threads-pair/" + name, repetitions, [adapter = std::make_shared<Adapter>()] {
        return moment([&](unsigned stream, unsigned) { return Pair<Adapter>(*adapter, stream); });
      });
  register_repetitions("threads-mix/" + name, repetitions, [adapter = std::make_shared<Adapter>()] {
    return moment([&](unsigned stream, unsigned seed) {
      return Mix<Adapter>(*adapter, kLivePerThread, stream, seed);
    });
  });
}

}  // namespace

void register_threads(int repetitions_max) {
  for_each_shared_adapter(
      [=](auto tag) { register_for<typename decltype(tag)::type>(repetitions_max); });
}

}  // namespace ashlar::bench
