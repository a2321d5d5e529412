// MemoryWords: the 8-byte words of stream-memory operations, by the number of their first byte
// (Memory::byte_at). A word never written is 0.
//
// Thread safety: none (the machine's lock). Cost: O(words).
#pragma once

#include <cstdint>
#include <vector>

#include "spec/gpu/sim_types.h"

namespace ashlar::spec {

class MemoryWords {
 public:
  /// The word at that byte, to be written.
  std::uint64_t& at(std::uint64_t byte) {
    for (Word& found : words_) {
      if (found.byte == byte) return found.value;
    }
    words_.push_back(Word{byte, 0});
    return words_.back().value;
  }
  /// Does the word at that byte compare to `value` by that rule?
  bool passes(std::uint64_t byte, WaitRule rule, std::uint64_t value) const {
    std::uint64_t word = 0;
    for (const Word& found : words_) {
      if (found.byte == byte) word = found.value;
    }
    switch (rule) {
      // CUDA compares cyclically: (signed)(word - value) >= 0.
      case WaitRule::kGreaterOrEqual: return static_cast<std::int64_t>(word - value) >= 0;
      case WaitRule::kEqual: return word == value;
      case WaitRule::kAnd: return (word & value) != 0;
    }
    return false;
  }

 private:
  struct Word {
    std::uint64_t byte;
    std::uint64_t value;
  };

  std::vector<Word> words_;
};

}  // namespace ashlar::spec
