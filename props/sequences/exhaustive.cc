// See exhaustive.h.
#include "props/sequences/exhaustive.h"

#include <unordered_map>
#include <unordered_set>

#include "spec/ops/opcode_table.h"
#include "spec/ops/random.h"

namespace ashlar::props {
namespace {

/// The letters by which words are split among processes.
constexpr std::size_t kSplitDepth = 2;

struct HashOfState {
  std::size_t operator()(const StateHash& state) const {
    return static_cast<std::size_t>(state.first);
  }
};

/// False after a divergence, which ends it.
bool spell_word(Speller& speller, const Word& word) {
  for (const Letter& letter : word) {
    if (!speller.spell(letter)) return false;
  }
  return true;
}

class WordSearch {
 public:
  WordSearch(const Alphabet& alphabet, unsigned depth, const WordsPart& part)
      : alphabet_(alphabet), depth_(depth), part_(part) {}

  SearchCounts run() {
    descend();
    return std::move(counts_);
  }

 private:
  /// Every word of the full depth that begins with word_.
  void descend() {
    if (word_.size() == kSplitDepth && split_++ % part_.parts != part_.part) return;
    Speller speller(alphabet_);
    if (!spell_word(speller, word_)) {
      counts_.failure = text_of(word_, speller.lockstep().result());
      return;
    }
    if (word_.size() == depth_) {
      ++counts_.words;
      if (!speller.lockstep().finish().is_good())
        counts_.failure = text_of(word_, speller.lockstep().result());
      return;
    }
    Word letters;
    speller.letters(&letters);
    for (const Letter& letter : letters) {
      if (!counts_.failure.empty()) return;
      word_.push_back(letter);
      descend();
      word_.pop_back();
    }
  }

  const Alphabet alphabet_;
  const unsigned depth_;
  const WordsPart part_;
  Word word_;
  std::uint64_t split_ = 0;
  SearchCounts counts_;
};

/// The words of one more letter that lead to new states, as search.is_new() says. Ends at a failure.
template <class Search>
std::vector<Word> next_level(const Alphabet& alphabet, const std::vector<Word>& level,
                             Search& search) {
  std::vector<Word> next;
  Word letters;
  for (const Word& word : level) {
    Speller parent(alphabet);
    spell_word(parent, word);
    parent.letters(&letters);
    for (const Letter& letter : letters) {
      Word longer = word;
      longer.push_back(letter);
      if (search.is_new(longer)) next.push_back(std::move(longer));
      if (!search.counts().failure.empty()) return next;
    }
  }
  return next;
}

/// Level by level; `tell(depth, counts)` after each.
template <class Search, class Tell>
SearchCounts search_levels(const Alphabet& alphabet, unsigned depth, Search&& search, Tell&& tell) {
  std::vector<Word> level{{}};
  for (unsigned d = 1; d <= depth && search.counts().failure.empty(); ++d) {
    level = next_level(alphabet, level, search);
    tell(d, search.counts());
  }
  return std::move(search.counts());
}

class StateSearch {
 public:
  explicit StateSearch(const Alphabet& alphabet) : alphabet_(alphabet) {}

  bool is_new(const Word& word) {
    Speller speller(alphabet_);
    bool is_good = spell_word(speller, word);
    ++counts_.transitions;
    const bool is_new = is_good && seen_.insert(speller.state()).second;
    if (is_new) is_good = speller.lockstep().finish().is_good();
    if (!is_good) counts_.failure = text_of(word, speller.lockstep().result());
    counts_.states = seen_.size();
    return is_new && is_good;
  }
  SearchCounts& counts() { return counts_; }

 private:
  const Alphabet alphabet_;
  std::unordered_set<StateHash, HashOfState> seen_;
  SearchCounts counts_;
};

/// Others have no outcome of their own.
bool is_call_of_subject(std::uint8_t op) {
  return op != spec::slot::kStep && op != spec::slot::kFail;
}

/// Two worlds in one state.
class Twins {
 public:
  Twins(const Alphabet& alphabet, const Word& first, const Word& second)
      : first_(alphabet), second_(alphabet) {
    spell_word(first_, first);
    spell_word(second_, second);
  }

  /// Spells one letter in both. False where they differ after it.
  bool go_on(spec::Random& random) {
    Word of_first;
    Word of_second;
    first_.letters(&of_first);
    second_.letters(&of_second);
    if (of_first.size() != of_second.size()) return false;
    const std::size_t pick = random.below(of_first.size());
    tail_.push_back(of_first[pick]);
    const Calls before_first = calls_of(first_);
    const Calls before_second = calls_of(second_);
    if (!first_.spell(of_first[pick]) || !second_.spell(of_second[pick])) return false;
    if (calls_since(first_, before_first) != calls_since(second_, before_second)) return false;
    const bool is_call = is_call_of_subject(tail_.back().slot);
    if (is_call && first_.lockstep().outcome() != second_.lockstep().outcome()) return false;
    return first_.state() == second_.state();
  }
  const Word& tail() const { return tail_; }

 private:
  using Calls = std::array<std::uint64_t, device::kCallKinds>;

  static Calls calls_of(Speller& speller) {
    Calls calls{};
    const spec::CallAccount account = speller.lockstep().gpu()->account();
    for (unsigned kind = 0; kind < device::kCallKinds; ++kind)
      calls[kind] = account.by_kind[kind].calls;
    return calls;
  }
  static Calls calls_since(Speller& speller, const Calls& before) {
    Calls calls = calls_of(speller);
    for (unsigned kind = 0; kind < device::kCallKinds; ++kind) calls[kind] -= before[kind];
    return calls;
  }

  Speller first_;
  Speller second_;
  Word tail_;
};

class MergeSearch {
 public:
  MergeSearch(const Alphabet& alphabet, unsigned steps) : alphabet_(alphabet), steps_(steps) {}

  bool is_new(const Word& word) {
    Speller speller(alphabet_);
    spell_word(speller, word);
    const auto [seen, is_new] = first_of_.try_emplace(speller.state(), word);
    if (!is_new) compare(seen->second, word);
    return is_new;
  }
  SearchCounts& counts() { return counts_; }

 private:
  void compare(const Word& first, const Word& second) {
    ++counts_.merges;
    Twins twins(alphabet_, first, second);
    spec::Random random(counts_.merges);
    for (unsigned i = 0; i < steps_; ++i) {
      if (twins.go_on(random)) continue;
      counts_.failure = "one state, but they go on differently:\n" + text_of(first, {}) + "and\n" +
                        text_of(second, {}) + "by\n" + text_of(twins.tail(), {});
      return;
    }
  }

  const Alphabet alphabet_;
  const unsigned steps_;
  std::unordered_map<StateHash, Word, HashOfState> first_of_;
  SearchCounts counts_;
};

}  // namespace

SearchCounts all_words(const Alphabet& alphabet, unsigned depth, const WordsPart& part) {
  return WordSearch(alphabet, depth, part).run();
}

SearchCounts all_states(const Alphabet& alphabet, unsigned depth,
                        const std::function<void(unsigned, const SearchCounts&)>& tell) {
  return search_levels(alphabet, depth, StateSearch(alphabet), tell);
}

SearchCounts all_merges(const Alphabet& alphabet, unsigned depth, unsigned steps) {
  return search_levels(alphabet, depth, MergeSearch(alphabet, steps),
                       [](unsigned, const SearchCounts&) {});
}

}  // namespace ashlar::props
