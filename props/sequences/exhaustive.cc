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
    for (const Letter& letter : word_) {
      if (speller.spell(letter)) continue;
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

class StateSearch {
 public:
  explicit StateSearch(const Alphabet& alphabet) : alphabet_(alphabet) {}

  /// The words of one more letter that lead to new states.
  std::vector<Word> next_level(const std::vector<Word>& level) {
    std::vector<Word> next;
    Word letters;
    for (const Word& word : level) {
      Speller parent(alphabet_);
      for (const Letter& letter : word) parent.spell(letter);
      parent.letters(&letters);
      for (const Letter& letter : letters) {
        Word longer = word;
        longer.push_back(letter);
        if (is_new(longer)) next.push_back(std::move(longer));
        if (!counts_.failure.empty()) return next;
      }
    }
    return next;
  }
  SearchCounts& counts() { return counts_; }

 private:
  bool is_new(const Word& word) {
    Speller speller(alphabet_);
    bool is_good = true;
    for (const Letter& letter : word) is_good = is_good && speller.spell(letter);
    ++counts_.transitions;
    const bool is_new = is_good && seen_.insert(speller.state()).second;
    if (is_new) is_good = speller.lockstep().finish().is_good();
    if (!is_good) counts_.failure = text_of(word, speller.lockstep().result());
    counts_.states = seen_.size();
    return is_new && is_good;
  }

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
    for (const Letter& letter : first) first_.spell(letter);
    for (const Letter& letter : second) second_.spell(letter);
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
    const auto calls_first = calls_of(first_);
    const auto calls_second = calls_of(second_);
    if (!first_.spell(of_first[pick]) || !second_.spell(of_second[pick])) return false;
    for (unsigned kind = 0; kind < device::kCallKinds; ++kind) {
      if (calls_of(first_)[kind] - calls_first[kind] !=
          calls_of(second_)[kind] - calls_second[kind])
        return false;
    }
    const bool is_call = is_call_of_subject(tail_.back().slot);
    if (is_call && first_.lockstep().outcome() != second_.lockstep().outcome()) return false;
    return first_.state() == second_.state();
  }
  const Word& tail() const { return tail_; }

 private:
  static std::array<std::uint64_t, device::kCallKinds> calls_of(Speller& speller) {
    std::array<std::uint64_t, device::kCallKinds> calls{};
    const spec::CallAccount account = speller.lockstep().gpu()->account();
    for (unsigned kind = 0; kind < device::kCallKinds; ++kind)
      calls[kind] = account.by_kind[kind].calls;
    return calls;
  }

  Speller first_;
  Speller second_;
  Word tail_;
};

class MergeSearch {
 public:
  MergeSearch(const Alphabet& alphabet, unsigned steps) : alphabet_(alphabet), steps_(steps) {}

  std::vector<Word> next_level(const std::vector<Word>& level) {
    std::vector<Word> next;
    Word letters;
    for (const Word& word : level) {
      Speller parent(alphabet_);
      for (const Letter& letter : word) parent.spell(letter);
      parent.letters(&letters);
      for (const Letter& letter : letters) {
        Word longer = word;
        longer.push_back(letter);
        Speller speller(alphabet_);
        for (const Letter& each : longer) speller.spell(each);
        const auto [seen, is_new] = first_of_.try_emplace(speller.state(), longer);
        if (is_new) next.push_back(std::move(longer));
        else compare(seen->second, longer);
        if (!counts_.failure.empty()) return next;
      }
    }
    return next;
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
  StateSearch search(alphabet);
  std::vector<Word> level{{}};
  for (unsigned d = 1; d <= depth && search.counts().failure.empty(); ++d) {
    level = search.next_level(level);
    tell(d, search.counts());
  }
  return std::move(search.counts());
}

SearchCounts all_merges(const Alphabet& alphabet, unsigned depth, unsigned steps) {
  MergeSearch search(alphabet, steps);
  std::vector<Word> level{{}};
  for (unsigned d = 1; d <= depth && search.counts().failure.empty(); ++d)
    level = search.next_level(level);
  return std::move(search.counts());
}

}  // namespace ashlar::props
