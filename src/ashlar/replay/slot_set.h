// A set of small numbers that finds the members next to a number.
//
// Purpose: holds the ranges that a replay may not give out, numbered in order of their offsets. Only
// the constructor allocates, so a free may add and remove members.
// Thread safety: none. Cost: O(1), and in the two searches a walk over words of 4096 numbers each.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include <ashlar/base/assert.h>

namespace ashlar::inline v0::replay {

class SlotSet {
 public:
  static constexpr std::uint32_t kNone = 0xffffffffu;

  /// An empty set of numbers below `size`.
  explicit SlotSet(std::uint32_t size) : words_(size / 64 + 1), summary_(size / 4096 + 1) {}

  bool is_empty() const noexcept { return count_ == 0; }
  bool has(std::uint32_t slot) const noexcept { return (words_[slot / 64] >> slot % 64 & 1) != 0; }
  void insert(std::uint32_t slot) noexcept {
    ASHLAR_ASSERT(!has(slot), "replay: a slot is added twice");
    words_[slot / 64] |= bit(slot % 64);
    summary_[slot / 4096] |= bit(slot / 64 % 64);
    ++count_;
  }
  void erase(std::uint32_t slot) noexcept {
    ASHLAR_ASSERT(has(slot), "replay: a slot is removed that is not in the set");
    words_[slot / 64] &= ~bit(slot % 64);
    if (words_[slot / 64] == 0) summary_[slot / 4096] &= ~bit(slot / 64 % 64);
    --count_;
  }
  /// The highest member at or below `slot`; kNone if there is none.
  std::uint32_t at_or_below(std::uint32_t slot) const noexcept {
    if (const std::uint64_t here = words_[slot / 64] << (63 - slot % 64); here != 0)
      return slot - leading(here);
    const std::uint32_t word = slot / 64;
    std::uint32_t s = word / 64;
    std::uint64_t words = summary_[s] & (bit(word % 64) - 1);
    while (words == 0) {
      if (s == 0) return kNone;
      words = summary_[--s];
    }
    const std::uint32_t found = s * 64 + 63 - leading(words);
    return found * 64 + 63 - leading(words_[found]);
  }
  /// The lowest member above `slot`; kNone if there is none.
  std::uint32_t above(std::uint32_t slot) const noexcept {
    if (const std::uint64_t here = words_[slot / 64] >> slot % 64 >> 1; here != 0)
      return slot + 1 + trailing(here);
    const std::uint32_t word = slot / 64;
    std::uint32_t s = word / 64;
    std::uint64_t words = summary_[s] >> word % 64 >> 1 << word % 64 << 1;
    while (words == 0) {
      if (++s == summary_.size()) return kNone;
      words = summary_[s];
    }
    const std::uint32_t found = s * 64 + trailing(words);
    return found * 64 + trailing(words_[found]);
  }

 private:
  static std::uint64_t bit(std::uint32_t n) noexcept { return std::uint64_t{1} << n; }
  static std::uint32_t leading(std::uint64_t word) noexcept {
    return static_cast<std::uint32_t>(std::countl_zero(word));
  }
  static std::uint32_t trailing(std::uint64_t word) noexcept {
    return static_cast<std::uint32_t>(std::countr_zero(word));
  }

  std::vector<std::uint64_t> words_;    // one bit a number: is it a member?
  std::vector<std::uint64_t> summary_;  // one bit a word of words_: is it not zero?
  std::uint64_t count_ = 0;
};

}  // namespace ashlar::inline v0::replay
