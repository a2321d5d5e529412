// Exhaustive search over words (spelling.h): every word to a depth, and every state to a greater one.
//
//   all_words    every word of `depth` letters is spelt from the start and brought to its end: freed,
//                trimmed, destroyed
//   all_states   level by level; of words that lead to one state (cache_state_words.h), the first is
//                kept, and its world brought to its end too
//   all_merges   checks what all_states relies on: two words that lead to one state go on alike. Both
//                are spelt on by the same letters, drawn at random; outcomes, device calls and states
//                have to agree after each
// all_words can be split: of the words of two letters, part `part` of `parts` takes every parts-th.
// Thread safety: none; parts may run in processes of their own.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "props/sequences/spelling.h"

namespace ashlar::props {

struct SearchCounts {
  std::uint64_t words = 0;        ///< all_words: of the full depth
  std::uint64_t states = 0;       ///< all_states: different ones
  std::uint64_t transitions = 0;  ///< all_states: letters tried
  std::uint64_t merges = 0;       ///< all_merges: pairs of words compared
  std::string failure;            ///< empty: none
};

struct WordsPart {
  unsigned part = 0;
  unsigned parts = 1;
};

SearchCounts all_words(const Alphabet& alphabet, unsigned depth, const WordsPart& part = {});
/// `tell(depth, counts)` is called after each level.
SearchCounts all_states(const Alphabet& alphabet, unsigned depth,
                        const std::function<void(unsigned, const SearchCounts&)>& tell);

/// Of words of up to `depth` letters, spelt on by `steps`.
SearchCounts all_merges(const Alphabet& alphabet, unsigned depth, unsigned steps);

}  // namespace ashlar::props
