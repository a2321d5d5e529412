// A recorder of contexts that is ready to use: the call stacks of the threads that call the allocator.
//
// Purpose: the first question to a snapshot is which line of the program a block is of. gather() walks the stack by
// the compiler's own unwinder and keeps every different stack once; what its addresses are called is looked up
// when a file is written (module_symbols.h), so the recording needs no names.
// Thread safety: any thread.
//
//   exchange::StackContexts stacks;                                   // outlives the allocator
//   start_history(*allocator, device, {.recorder = &stacks});
//   ...
//   write_torch_snapshot(devices, {.frames = stacks.frames()}, sink);
//
// Invariants:
//   (1) equal stacks have one number, which never changes; numbers begin at 1;
//   (2) at most StackOptions::stacks_max stacks are kept, and of each the frames_max innermost frames.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include <ashlar/base/export.h>
#include <ashlar/cache/history.h>
#include <ashlar/exchange/device_history.h>
#include <ashlar/exchange/module_symbols.h>

namespace ashlar::inline v0::exchange {

/// How much StackContexts keeps.
struct StackOptions {
  unsigned frames_max = 48;  ///< of one stack, the innermost; 1 to StackContexts::kFramesMax
  std::uint64_t stacks_max = 1 << 20;  ///< different ones; those that come later have no context
};

/// The call stacks of a program, as what a history's contexts stand for.
class ASHLAR_API StackContexts final : public cache::ContextRecorder {
 public:
  /// The most frames of a stack that can be kept.
  static constexpr unsigned kFramesMax = 128;

  /// Bounds outside of their range are taken to its nearer end.
  explicit StackContexts(const StackOptions& options = {}) noexcept;
  ~StackContexts() = default;
  StackContexts(const StackContexts&) = delete;
  StackContexts& operator=(const StackContexts&) = delete;

  /// The calling thread's stack, from the caller of this on. ContextId 0 if the host has no memory for a new one, or
  /// stacks_max are kept. Cost: the
  /// unwinder's (measured: 0.16 us for each frame), and a short lock that a sixteenth of all stacks share.
  cache::ContextId gather() noexcept override;
  /// The frames of a context, innermost first: functions by their symbols, demangled; for a file the module and the
  /// offset in it, `module+0x1234`, of which addr2line makes a source line. Throws std::bad_alloc. Reads the
  /// symbols of each module once.
  std::vector<Frame> frames_of(cache::ContextId context) const;
  /// frames_of() as writers take it; this must outlive it.
  FrameSource frames() const {
    return [this](cache::ContextId context) { return frames_of(context); };
  }
  /// The return addresses of a context, innermost first, for a symbolizer of the user's. Throws std::bad_alloc.
  std::vector<std::uintptr_t> addresses_of(cache::ContextId context) const;

  /// How many different stacks are kept.
  std::uint64_t count() const noexcept { return count_.load(std::memory_order_relaxed); }
  /// How many calls of gather() found a new stack and could not keep it.
  std::uint64_t lost() const noexcept { return lost_.load(std::memory_order_relaxed); }

 private:
  using Addresses = std::span<const std::uintptr_t>;
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(Addresses stack) const noexcept;
  };
  struct Equal {
    using is_transparent = void;
    bool operator()(Addresses a, Addresses b) const noexcept;
  };
  /// Stacks whose hash ends with the same bits.
  struct Shard {
    mutable std::mutex mutex;
    std::unordered_map<std::vector<std::uintptr_t>, std::uint64_t, Hash, Equal> numbers;
    std::vector<const std::vector<std::uintptr_t>*> stacks;  ///< keys of `numbers`, in their order
  };
  static constexpr std::uint64_t kShards = 16;

  /// The stack's number in the shard, from 0, where it is kept from now on. Throws std::bad_alloc.
  std::uint64_t number_in(Shard& shard, Addresses stack);

  const unsigned frames_max_;
  const std::uint64_t stacks_max_;
  std::array<Shard, kShards> shards_;
  std::atomic<std::uint64_t> count_{0};
  std::atomic<std::uint64_t> lost_{0};
  mutable std::mutex symbols_mutex_;
  mutable ModuleSymbols symbols_;
};

}  // namespace ashlar::inline v0::exchange
