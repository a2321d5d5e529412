#include <ashlar/exchange/stack_contexts.h>

#include <unwind.h>

#include <algorithm>

#include <ashlar/base/exceptions.h>
#include <ashlar/base/mix.h>

namespace ashlar::inline v0::exchange {
namespace {

/// What one walk over a stack has found.
struct Walk {
  std::array<std::uintptr_t, StackContexts::kFramesMax> frames;
  unsigned count = 0;
  unsigned frames_max;
  unsigned to_skip = 1;  ///< gather() itself
};

_Unwind_Reason_Code note_frame(_Unwind_Context* context, void* into) {
  Walk& walk = *static_cast<Walk*>(into);
  if (walk.to_skip != 0) {
    --walk.to_skip;
    return _URC_NO_REASON;
  }
  const auto address = static_cast<std::uintptr_t>(_Unwind_GetIP(context));
  if (address == 0 || walk.count == walk.frames_max) return _URC_END_OF_STACK;
  walk.frames[walk.count++] = address;
  return _URC_NO_REASON;
}

}  // namespace

StackContexts::StackContexts(const StackOptions& options) noexcept
    : frames_max_(std::clamp(options.frames_max, 1u, kFramesMax)),
      stacks_max_(std::max<std::uint64_t>(options.stacks_max, 1)) {}

std::size_t StackContexts::Hash::operator()(Addresses stack) const noexcept {
  std::uint64_t hash = stack.size();
  for (const std::uintptr_t address : stack) hash = mix(hash + address);
  return static_cast<std::size_t>(hash);
}

bool StackContexts::Equal::operator()(Addresses a, Addresses b) const noexcept {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

std::uint64_t StackContexts::number_in(Shard& shard, Addresses stack) {
  // Before the number is made; not by one, which would copy them each time.
  if (shard.stacks.size() == shard.stacks.capacity())
    shard.stacks.reserve(2 * shard.stacks.size() + 1);
  const auto made = shard.numbers.emplace(std::vector<std::uintptr_t>(stack.begin(), stack.end()),
                                          shard.stacks.size());
  shard.stacks.push_back(&made.first->first);
  return made.first->second;
}

[[gnu::noinline]] cache::ContextId StackContexts::gather() noexcept {
  Walk walk;
  walk.frames_max = frames_max_;
  static_cast<void>(_Unwind_Backtrace(&note_frame, &walk));
  const Addresses stack(walk.frames.data(), walk.count);
  const std::uint64_t which = Hash{}(stack) % kShards;
  Shard& shard = shards_[which];
  const std::lock_guard<std::mutex> lock(shard.mutex);
  const auto known = shard.numbers.find(stack);
  if (known != shard.numbers.end()) return cache::ContextId{known->second * kShards + which + 1};
  std::uint64_t number = 0;
  const bool has_room = count_.fetch_add(1, std::memory_order_relaxed) < stacks_max_;
  if (has_room && with_host_memory([&] { number = number_in(shard, stack); }))
    return cache::ContextId{number * kShards + which + 1};
  count_.fetch_sub(1, std::memory_order_relaxed);
  lost_.fetch_add(1, std::memory_order_relaxed);
  return cache::ContextId{};
}

std::vector<std::uintptr_t> StackContexts::addresses_of(cache::ContextId context) const {
  if (context == cache::ContextId{}) return {};
  const std::uint64_t number = context.value() - 1;
  const Shard& shard = shards_[number % kShards];
  const std::lock_guard<std::mutex> lock(shard.mutex);
  const std::uint64_t at = number / kShards;
  if (at >= shard.stacks.size()) return {};
  return *shard.stacks[static_cast<std::size_t>(at)];
}

std::vector<Frame> StackContexts::frames_of(cache::ContextId context) const {
  std::vector<Frame> frames;
  const std::lock_guard<std::mutex> lock(symbols_mutex_);
  // A return address is behind its call, so the lookup takes one byte before it.
  for (const std::uintptr_t address : addresses_of(context))
    frames.push_back(symbols_.frame_at(address - 1));
  return frames;
}

}  // namespace ashlar::inline v0::exchange
