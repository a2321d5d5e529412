#include "src/tool/trace_stacks.h"

#include <algorithm>

namespace ashlar::tool {
namespace {

std::size_t hash_of(const std::vector<TraceFrame>& stack) {
  std::uint64_t hash = 0;
  for (const TraceFrame& frame : stack) {
    for (const std::uint32_t word : {frame.name, frame.filename, frame.line})
      hash = (hash ^ word) * 0x9e3779b97f4a7c15u + (hash >> 29);
  }
  return hash;
}

}  // namespace

std::uint32_t TraceStacks::text(std::string_view text) {
  const auto number = static_cast<std::uint32_t>(texts_.size());
  const auto [known, is_new] = number_of_.try_emplace(std::string(text), number);
  if (is_new) texts_.emplace_back(text);
  return known->second;
}

bool TraceStacks::is_equal(std::uint32_t stack, const std::vector<TraceFrame>& frames) const {
  const auto begin = frames_.begin() + static_cast<std::ptrdiff_t>(begins_[stack - 1]);
  const auto end = frames_.begin() + static_cast<std::ptrdiff_t>(begins_[stack]);
  return std::equal(begin, end, frames.begin(), frames.end());
}

std::uint32_t TraceStacks::add(const std::vector<TraceFrame>& stack) {
  if (stack.empty()) return 0;
  const std::size_t hash = hash_of(stack);
  const auto [first, last] = by_hash_.equal_range(hash);
  for (auto known = first; known != last; ++known) {
    if (is_equal(known->second, stack)) return known->second;
  }
  frames_.insert(frames_.end(), stack.begin(), stack.end());
  begins_.push_back(frames_.size());
  by_hash_.emplace(hash, size());
  return size();
}

std::vector<exchange::Frame> TraceStacks::frames_of(std::uint32_t stack) const {
  std::vector<exchange::Frame> frames;
  if (stack == 0) return frames;
  for (std::size_t i = begins_[stack - 1]; i < begins_[stack]; ++i)
    frames.push_back({texts_[frames_[i].name], texts_[frames_[i].filename], frames_[i].line});
  return frames;
}

}  // namespace ashlar::tool
