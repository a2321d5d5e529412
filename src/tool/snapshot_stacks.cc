#include "src/tool/snapshot_stacks.h"

#include <limits>
#include <vector>

#include "src/tool/snapshot_import.h"

namespace ashlar::tool {

std::uint32_t SnapshotStacks::stack_of(ValueId object) {
  const auto list = arena_.find(object, "frames");
  if (!list || !is_list(arena_[*list])) return 0;
  const auto [known, is_new] = stack_of_.try_emplace(*list, 0);
  if (!is_new) return known->second;
  std::vector<TraceFrame> frames;
  for (const ValueId frame : arena_.items(*list)) {
    const bool is_frame =
        arena_[frame].kind == ValueKind::kDict && arena_[frame].length <= 2 * kSnapshotKeysMax;
    if (!is_frame || frames.size() == kSnapshotFramesMax) continue;
    const auto line = arena_.find(frame, "line");
    const bool has_line = line && arena_[*line].kind == ValueKind::kInteger &&
                          arena_[*line].bits <= std::numeric_limits<std::uint32_t>::max();
    frames.push_back({text_number(frame, "name"), text_number(frame, "filename"),
                      has_line ? static_cast<std::uint32_t>(arena_[*line].bits) : 0});
  }
  return known->second = stacks_.add(frames);
}

std::uint32_t SnapshotStacks::text_number(ValueId frame, const char* key) {
  const auto id = arena_.find(frame, key);
  if (!id || arena_[*id].kind != ValueKind::kText) return stacks_.text({});
  const auto [known, is_new] = text_of_.try_emplace(*id, 0);
  if (is_new) known->second = stacks_.text(arena_.text(*id));
  return known->second;
}

}  // namespace ashlar::tool
