// WorkloadRecorder: what a generated workload does, written down twice: as a trace and as ops.
//
// The trace has what every replay can do: allocations with their stream, and frees. The ops have
// all of it: kernels, recorded uses, events and waits, and how far the device has come; `ashlar
// check` runs them against the model. A recorded program is lawful: whoever records it orders first
// uses on other streams (order) and announces them (use).
// Thread safety: none.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "spec/ops/op.h"
#include "spec/ops/random.h"
#include "src/tool/trace.h"

namespace ashlar::bench {

/// What a kernel does to a block; the numbers are those of the op's argument.
enum class KernelTouch : std::uint8_t { kRead = 0, kWrite = 1, kReadWrite = 2 };

struct Block {
  std::uint32_t number = 0;  ///< allocations are numbered 0..
  unsigned stream = 0;       ///< the one it was allocated on
  std::uint64_t bytes = 0;
};

class WorkloadRecorder {
 public:
  /// Stream 0 exists from the start.
  WorkloadRecorder(std::string name, std::uint64_t seed);

  unsigned new_stream();
  Block allocate(std::uint64_t bytes, unsigned stream);
  void free(const Block& block);
  void free_on(const Block& block, unsigned stream);
  void use(const Block& block, unsigned stream);
  void kernel(unsigned stream, const Block& block, KernelTouch touch);
  /// What is enqueued on `after` from now on runs behind what is enqueued on `before` so far.
  void order(unsigned before, unsigned after);
  /// The host waits for all that is enqueued on `stream` so far.
  void synchronize(unsigned stream);
  /// The device goes on: every stream finishes some of its work, none to all of it.
  void progress();
  void mark(const std::string& text) { builder_.mark(text); }

  spec::Random& random() { return random_; }
  const tool::Trace& trace() { return builder_.trace(); }
  const spec::OpFile& ops() const { return ops_; }

 private:
  void push(std::uint8_t slot, std::uint64_t a, std::uint64_t b = 0, std::uint64_t c = 0);
  std::uint64_t event_between(unsigned before, unsigned after);

  spec::Random random_;
  tool::TraceBuilder builder_;
  spec::OpFile ops_;
  std::vector<std::uint64_t> enqueued_;  ///< by stream, since the device last went on
  std::map<std::pair<unsigned, unsigned>, std::uint64_t> events_;
};

}  // namespace ashlar::bench
