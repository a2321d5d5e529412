// The known word that an unknown one was probably meant to be, for messages.
//
// Thread safety: a pure function of what `known` gives.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace ashlar::inline v0 {

/// Longer words are compared with nothing.
inline constexpr std::size_t kNearestWordMax = 64;

/// How many letters differ: each insertion, deletion, exchange, or swap of neighbours counts as one
/// (optimal string alignment). Throws std::bad_alloc. Cost: the product of the lengths.
inline std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before, row(b.size() + 1), next(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    next[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      next[j] = std::min({row[j] + 1, next[j - 1] + 1, row[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        next[j] = std::min(next[j], before[j - 2] + 1);
    }
    before = row;
    row.swap(next);
  }
  return row[b.size()];
}

/// The word of `known`, a range of words, that is nearest to `word`; empty if none is near: a third
/// of its letters, and no more than three, may differ. Of equally near ones the first. Throws
/// std::bad_alloc.
template <typename Words>
std::string_view nearest_word(std::string_view word, const Words& known) {
  std::string_view nearest;
  if (word.size() > kNearestWordMax) return nearest;
  std::size_t least = std::min<std::size_t>(3, (word.size() + 1) / 3) + 1;
  for (const std::string_view candidate : known) {
    const std::size_t distance = edit_distance(word, candidate);
    if (distance >= least) continue;
    least = distance;
    nearest = candidate;
  }
  return nearest;
}

/// What a message about an unknown word ends with: "; did you mean 'check'?", or nothing if no known word is
/// near. Throws std::bad_alloc.
template <typename Words>
std::string did_you_mean(std::string_view word, const Words& known) {
  const std::string_view nearest = nearest_word(word, known);
  return nearest.empty() ? std::string() : "; did you mean '" + std::string(nearest) + "'?";
}

}  // namespace ashlar::inline v0
