// One repetition of a benchmark that measures a moment, where the machine can spoil the moment.
//
// An unsound repetition is tried again, and left out when kTriesMax tries were all unsound; on a
// machine that is always busy, a benchmark ends after kRetriesMax further tries in all. A repetition
// is not skipped by State::SkipWithError: Google Benchmark up to 1.9.5 reads an uninitialised pointer
// when the first repetition of several is skipped and two others are not
// (github.com/google/benchmark/issues/1406), which ended the program on a busy machine.
// Thread safety: none.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <benchmark/benchmark.h>

namespace ashlar::bench {

/// By name; a benchmark's results beside its time.
using Counters = std::map<std::string, double>;

inline constexpr int kTriesMax = 5;
inline constexpr int kRetriesMax = 100;
/// The counter that says of a repetition whether it is to be left out: 0 or 1.
inline constexpr const char* kLeftOut = "left_out";

/// The repetitions of one benchmark. `Measure` returns counters, or nothing where the moment was
/// unsound.
template <class Measure>
class SoundRepetitions {
 public:
  explicit SoundRepetitions(Measure measure) : measure_(std::move(measure)) {}

  /// One repetition. REQUIRES: a benchmark registered with Iterations(1).
  void operator()(benchmark::State& state) {
    for (auto _ : state) {
      std::optional<Counters> counters = measure_();
      for (int tries = 1; !counters && tries < kTriesMax && retries_left_ > 0; ++tries) {
        retries_left_ -= 1;
        counters = measure_();
      }
      state.counters[kLeftOut] = counters ? 0 : 1;
      if (!counters) continue;
      for (const auto& [name, value] : *counters) state.counters[name] = value;
    }
  }

 private:
  Measure measure_;
  int retries_left_ = kRetriesMax;
};

/// Registers `count` repetitions of `measure`.
template <class Measure>
void register_repetitions(const std::string& name, int count, Measure measure) {
  const auto repetitions = std::make_shared<SoundRepetitions<Measure>>(std::move(measure));
  benchmark::RegisterBenchmark(name.c_str(),
                               [repetitions](benchmark::State& state) { (*repetitions)(state); })
      ->Iterations(1)
      ->Repetitions(count);
}

}  // namespace ashlar::bench
