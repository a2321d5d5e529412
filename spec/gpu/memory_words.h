// MemoryWords: the 8-byte words of stream-memory operations. A word never written is 0.
//
// Thread safety: none (the machine's lock). Cost: O(words).
#pragma once

#include <cstdint>
#include <vector>

#include "spec/gpu/sim_types.h"

namespace ashlar::spec {

class MemoryWords {
 public:
  /// The word at that address, to be written.
  std::uint64_t& at(Address address) {
    for (Word& found : words_) {
      if (found.at == address) return found.value;
    }
    words_.push_back(Word{address, 0});
    return words_.back().value;
  }
  /// Does the word at that address compare to `value` by that rule?
  bool passes(Address address, WaitRule rule, std::uint64_t value) const {
    std::uint64_t word = 0;
    for (const Word& found : words_) {
      if (found.at == address) word = found.value;
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
    Address at;
    std::uint64_t value;
  };

  std::vector<Word> words_;
};

}  // namespace ashlar::spec
