// StreamEntries: what a rule case has enqueued on each stream, so that the case decides what runs.
//
// Purpose: `step` and `expect-pending` on a driver, whose work runs by itself: each entry stands behind a gate of its own, and an
// event behind it says whether it is done. What a capture records has neither.
// Thread safety: one thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "props/on_gpu/acting_threads.h"
#include "props/on_gpu/rule_gpu.h"

namespace ashlar::props {

class StreamEntries {
 public:
  StreamEntries(RuleGpus& gpus, ActingThreads& threads) : gpus_(gpus), threads_(threads) {}

  /// Makes the call, which enqueues one entry on the stream (its handle and device count).
  template <class Call>
  Status enqueue(const Stream& stream, Call&& call) {
    if (is_capturing(stream)) return threads_.run(call);
    const std::optional<std::uint32_t> gate = begin(stream);
    if (!gate) return {Code::kDriverError, "a stream's gate is refused"};
    const Status done = threads_.run(call);
    end(stream, *gate, done.is_ok());
    return done;
  }
  /// What is enqueued on it goes on, but nobody names it any more.
  void forget(const Stream& stream) { by_name_.erase(name_of(stream)); }

  /// kOk if n more entries of the stream finish, or as many as there are; kNotReady if fewer can.
  Status step(const Stream& stream, std::uint64_t n);
  std::uint64_t pending(const Stream& stream);
  /// Lets all work run that can. kDeadlock if some cannot.
  Status settle(std::optional<std::uint32_t> device = std::nullopt);
  /// Lets all work run, and does not wait for it.
  void open_all();

 private:
  struct Entry {
    std::uint32_t gate = 0;
    EventHandle behind;
  };
  struct Queue {
    Stream stream;
    std::vector<Entry> entries;
    std::size_t released =
        0;  ///< entries that may run; those before it are done, or will be by themselves
  };
  using Name = std::pair<std::int32_t, std::uint64_t>;
  static Name name_of(const Stream& stream) {
    return {stream.device.value(), stream.handle.value()};
  }
  bool is_capturing(const Stream& stream);
  std::optional<std::uint32_t> begin(const Stream& stream);
  void end(const Stream& stream, std::uint32_t gate, bool is_enqueued);
  Queue* find(const Stream& stream);
  bool is_done(const Queue& queue, const Entry& entry);
  /// Is it done, now or before long?
  bool becomes_done(const Queue& queue, const Entry& entry, std::uint32_t tries);

  RuleGpus& gpus_;
  ActingThreads& threads_;
  std::uint32_t gates_ = 0;
  std::vector<Queue> queues_;
  std::map<Name, std::size_t> by_name_;
};

}  // namespace ashlar::props
