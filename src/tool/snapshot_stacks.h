// The call stacks that a memory snapshot of PyTorch has beside its events and blocks.
//
// Thread safety: plain values.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <utility>

#include "src/tool/trace_stacks.h"
#include "src/tool/value_arena.h"

namespace ashlar::tool {

/// How many frames of a call stack are kept, the innermost.
inline constexpr std::size_t kSnapshotFramesMax = 1024;

/// Reads the lists `frames`. What the document shares is read once, so all together cost no more than the document
/// is long.
class SnapshotStacks {
 public:
  /// `arena` must outlive this.
  explicit SnapshotStacks(const ValueArena& arena) : arena_(arena) {}

  /// The call stack of an event or a block; 0 if it has none. A replay does not need it, so what is no frame is left
  /// out and not refused.
  std::uint32_t stack_of(ValueId object);
  TraceStacks take() && { return std::move(stacks_); }

 private:
  std::uint32_t text_number(ValueId frame, const char* key);

  const ValueArena& arena_;
  TraceStacks stacks_;
  std::unordered_map<ValueId, std::uint32_t> stack_of_;  // by list of frames
  std::unordered_map<ValueId, std::uint32_t> text_of_;
};

}  // namespace ashlar::tool
