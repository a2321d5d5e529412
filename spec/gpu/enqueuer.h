// Enqueuer: puts entries into streams' queues.
//
// Purpose: what CUDA does with an enqueue: it adds a node to the graph of a capturing stream,
// orders work on the legacy default stream with blocking streams, blocks while the queue is full.
// The detector is told what each kernel touches.
// Thread safety: none (the machine's lock).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "spec/gpu/sim_streams.h"

namespace ashlar::spec {

class Enqueuer {
 public:
  /// Both must outlive this.
  Enqueuer(MachineState& state, SimStreams& streams) : state_(state), streams_(streams) {}

  Status enqueue(const Stream& stream, const Entry& entry, std::span<const Touch> touches = {});
  Status enqueue_on(std::uint32_t lane, const Entry& entry, std::span<const Touch> touches = {});
  Status write_value(const Stream& stream, Address at, std::uint64_t value);
  Status wait_value(const Stream& stream, Address at, std::uint64_t value, WaitRule rule);

 private:
  struct WordClock {
    std::uint64_t byte;
    Clock clock;  // of the write enqueued last
  };

  Status order_with_legacy(std::uint32_t lane);
  Status make_room(std::uint32_t lane);
  void push(std::uint32_t lane, const Entry& entry, std::span<const Touch> touches = {});

  MachineState& state_;
  SimStreams& streams_;
  std::vector<WordClock> word_clocks_;
  std::vector<Touch> touched_;  // scratch
};

}  // namespace ashlar::spec
