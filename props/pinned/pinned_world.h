// PinnedWorld: the allocator of page-locked memory on two simulated GPUs, driven by bytes, with a model of its own.
//
// The model is a list of live blocks, and of freed ones with the place in each stream's order up to which that stream
// uses them. After every step it checks:
//   C1   an allocation has the bytes that were asked for, is aligned, and lies in memory that is locked;
//   C2   it shares no byte with a live block, nor (C7) with a freed one that a stream still uses;
//   C15  the statistics count the live blocks, and the freed ones that a stream still uses;
//   C16  misuse is refused by its name, and changes nothing;
//   C8   what was allocated from a graph's pool is nobody else's until the pool is released and its launches are over,
//        and no capture is invalidated (C9): pinned_captures.h;
//   C27  after process_events() nothing waits whose uses are complete and known to the driver;
//   C14  at the end, everything freed and trimmed, nothing is held.
// C6 is judged by the simulated GPU's detector of early reuse, as are misuses of the driver.
//
// Every byte string is a legal input. The caller is lawful but where a step is a misuse. A graph uses memory of its own
// pool alone, and captures one stream.
// Thread safety: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ashlar/pinned/pinned_allocator.h>

#include "props/pinned/pinned_captures.h"
#include "spec/gpu/sim_gpu.h"

namespace ashlar::props {

/// The steps of an input, one byte each and more for what they need; zeros after its end.
class InputBytes {
 public:
  InputBytes(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}
  bool is_empty() const { return at_ >= size_; }
  std::uint64_t next() { return is_empty() ? 0 : data_[at_++]; }
  /// 0 .. n - 1. REQUIRES: n > 0.
  std::uint64_t below(std::uint64_t n) { return next() % n; }

 private:
  const std::uint8_t* data_;
  std::size_t size_;
  std::size_t at_ = 0;
};

class PinnedWorld {
 public:
  /// A bug of the allocator's, as its caller sees it.
  enum class Plant : std::uint8_t {
    kNone,
    kForgottenUse,    ///< a use is accepted and not kept
    kIdleProcess,     ///< process_events() asks nothing
    kForgivenMisuse,  ///< a foreign free is accepted
    kLeak,            ///< a free is accepted, and the block stays live
    kForgottenPool,   ///< a graph's pool ends with its capture
  };
  /// The first bytes of the input choose the settings.
  explicit PinnedWorld(InputBytes& input, Plant plant = Plant::kNone);
  ~PinnedWorld();
  PinnedWorld(const PinnedWorld&) = delete;
  PinnedWorld& operator=(const PinnedWorld&) = delete;

  /// Takes steps until the input ends or a check fails, then ends the world. The finding, or "".
  std::string run();
  std::uint64_t steps() const { return steps_; }
  /// Calls of the driver of that kind that the program made, without those of its end, where nothing fails.
  std::uint64_t driver_calls(device::CallKind kind) const {
    return account_.by_kind[static_cast<unsigned>(kind)].calls;
  }
  /// For fault loops: the n-th call of the driver of that kind from now on fails, once or with all later ones. The
  /// program's own failures and repairs have no effect then.
  void plan_failure(device::CallKind kind, std::uint64_t n, spec::FailMode mode);

 private:
  /// A kernel's use of a block.
  struct Use {
    std::size_t stream;             // index
    std::shared_ptr<bool> is_over;  // set by a host function behind the kernel
  };
  struct Block {
    Address address;
    std::uint64_t size = 0;  // usable
    spec::AllocationTag tag = 0;
    std::uint32_t pool = 0;  // the number of its graph's; 0: none
    std::vector<Use> uses;
    bool is_in_graph = false;  // a capture that is open uses it
    // Of a stream that uses it, or was named as its user, only a synchronisation of the device tells the end.
    bool has_lost_user = false;
  };
  struct WorldStream {
    Stream stream;
    bool is_alive = true;
    bool is_known = false;  // to the allocator
  };

  /// How the world was made, and what may be wrong with it now.
  struct Settings {
    std::uint64_t capacity = 0;  // 0: none
    std::uint64_t limit = 0;     // 0: none
    unsigned arenas = 1;
    bool is_registered = false;
    bool is_failing = false;         // failures were planned since the last heal
    bool is_planned = false;         // by plan_failure(), so not by the program
    bool may_be_unrecorded = false;  // events may be missing of uses of freed blocks
  };

  void step();
  void allocate();
  void free_one();
  void use_one();
  void let_run();
  void process();
  void trim();
  void misuse();
  void end_stream();
  void set_limit();
  void fail_or_heal(bool fails);
  void capture();
  void end_capture();
  void finish();

  template <class... Parts>
  void report(const char* clause, const Parts&... parts);
  /// Of the captures' part.
  void report(const std::string& finding);
  /// Is all that the stream was given done?
  bool is_idle(const WorldStream& stream) const;
  /// Is a kernel still using the block? `may_be`: or may the allocator not know better, because its event, which
  /// comes behind the kernel, is not done?
  bool is_used(const Block& block, bool may_be) const;
  Result<Address> allocate_on_arena(std::uint64_t size);
  void check_given(Address at, std::uint64_t size, std::uint64_t asked, std::uint32_t pool);
  /// `is_all_known`: the allocator was told of every use that is over, and has looked.
  void check_stats(bool is_all_known);
  void check_oom(std::uint64_t asked);
  void add_stream(std::int32_t device);
  /// The index of a stream that is alive.
  std::size_t any_stream();
  /// The index of one that may use the block: a graph uses its own pool's memory.
  std::size_t any_user(const Block& block);

  InputBytes& input_;
  const Plant plant_;
  std::unique_ptr<spec::SimGpu> gpu_;
  std::unique_ptr<pinned::PinnedAllocator> allocator_;
  std::unique_ptr<PinnedCaptures> captures_;
  Settings state_;
  Stream
      host_;  // what the detector is told that blocks are allocated on: nothing is enqueued there
  std::vector<WorldStream> streams_;
  std::vector<Block> live_;
  std::vector<Block> freed_;
  std::vector<Address> stale_;  // the last that were freed
  spec::AllocationTag next_tag_ = 1;
  std::uint64_t steps_ = 0;
  spec::CallAccount account_;  // at the program's end
  std::string finding_;
};

}  // namespace ashlar::props
