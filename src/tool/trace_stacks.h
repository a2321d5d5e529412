// The call stacks of a trace's events, each different one stored once.
//
// Purpose: a recording of a million events has some thousands of stacks, of some thousands of names. Each
// text is stored once, and each stack as numbers of texts.
// Thread safety: plain values.
//
// Invariants:
//   (1) Stacks are numbered from 1, and no two are equal; 0 stands for no stack.
//   (2) The texts of a frame are numbers below `texts_.size()`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <ashlar/exchange/device_history.h>

namespace ashlar::tool {

/// A frame whose texts are numbers from TraceStacks::text().
struct TraceFrame {
  std::uint32_t name = 0;
  std::uint32_t filename = 0;
  std::uint32_t line = 0;  ///< from 1; 0: unknown

  friend bool operator==(const TraceFrame&, const TraceFrame&) = default;
};

class TraceStacks {
 public:
  /// The number of a text. Cost: O(its length).
  std::uint32_t text(std::string_view text);
  /// The number of the stack, innermost frame first; 0 for one without frames. Cost: O(frames).
  std::uint32_t add(const std::vector<TraceFrame>& stack);
  /// The frames of a stack, innermost first; none for 0.
  std::vector<exchange::Frame> frames_of(std::uint32_t stack) const;
  /// How many different ones there are.
  std::uint32_t size() const { return static_cast<std::uint32_t>(begins_.size()) - 1; }

 private:
  bool is_equal(std::uint32_t stack, const std::vector<TraceFrame>& frames) const;

  std::vector<std::string> texts_;
  std::unordered_map<std::string, std::uint32_t> number_of_;
  std::vector<TraceFrame> frames_;
  std::vector<std::size_t> begins_{0};  // by stack - 1, and the end
  // stacks by the hash of their frames
  std::unordered_multimap<std::size_t, std::uint32_t> by_hash_;
};

}  // namespace ashlar::tool
