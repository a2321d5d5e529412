// Exhaustive search: every short sequence over a small alphabet, each step judged by the model.
//
// Alphabet, on a 32 MiB device with two streams: allocate 512 B, 1.5 MiB or 12 MiB on either stream
// (the last two soon run out of memory); free any live block; record a use of any on the other
// stream; the oldest work of either stream finishes; trim. Blocks are named by their place in
// address order, so sequences that differ in names alone are one.
//   - to kFullDepth without de-duplication: every sequence is run from the start. Streams hold
//     kernels as well as the allocator's events, so that early reuse shows;
//   - to kDedupDepth with de-duplication: two states with the same snapshot and the same queues
//     have the same future, so that one is visited. Streams hold the allocator's events alone.
// The two streams are interchangeable, so that the first allocation is always on the first.
// The counts of sequences are asserted: a change means that the alphabet or the allocator's policy
// changed. Only plain release builds search to these depths; all others to depth 4. Not proved:
// anything beyond the depth or outside of the alphabet.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "props/adapters/caching_allocator_subject.h"
#include "spec/lockstep/cache_lockstep.h"
#include "spec/ops/opcode_table.h"
#include "spec/ops/random.h"

namespace ashlar::props {
namespace {

#if ASHLAR_EXHAUSTIVE_FULL
constexpr unsigned kFullDepth = 6;
constexpr unsigned kDedupDepth = 9;
constexpr std::uint64_t kSequences = 1'205'815;
constexpr std::uint64_t kTransitions = 6'461'973;
#else
constexpr unsigned kFullDepth = 4;
constexpr unsigned kDedupDepth = 4;
constexpr std::uint64_t kSequences = 6'635;
constexpr std::uint64_t kTransitions = 2'315;
#endif

/// One letter of the alphabet: an op whose pointer is a place in address order.
struct Letter {
  std::uint8_t slot;
  std::uint8_t place;  ///< of the live block, for free and use
  std::uint8_t size;   ///< index into kSizes
  std::uint8_t stream;
};
using Word = std::vector<Letter>;
constexpr std::uint64_t kSizes[] = {512, 3u << 19, 12u << 20};

struct Live {
  std::uint64_t address;
  std::uint64_t name;
  std::uint8_t stream;
};

using State = std::pair<std::uint64_t, std::uint64_t>;
struct StateHash {
  std::size_t operator()(const State& state) const { return static_cast<std::size_t>(state.first); }
};

/// A world that runs one letter after the other.
class Speller {
 public:
  /// `works`: allocations and uses are followed by kernels.
  explicit Speller(bool works) : lockstep_(options(works)), works_(works) {
    put(spec::slot::kDevice, {0, 32u << 20});
    put(spec::slot::kStreamCreate, {1, 0});
  }

  /// False after a divergence.
  bool spell(const Letter& letter) {
    switch (letter.slot) {
      case spec::slot::kAlloc: {
        if (!put(letter.slot, {next_, kSizes[letter.size], letter.stream})) return false;
        if (lockstep_.outcome() == Code::kOk) enter({newest_address(), next_, letter.stream});
        ++next_;
        return true;
      }
      case spec::slot::kFree: {
        const Live block = live_[letter.place];
        live_.erase(live_.begin() + letter.place);
        return put(letter.slot, {block.name});
      }
      case spec::slot::kUse: {
        const Live& block = live_[letter.place];
        const std::uint64_t other = 1u - block.stream;
        if (works_ && !put(spec::slot::kKernel, {other, block.name, 2})) return false;
        return put(letter.slot, {block.name, other});
      }
      case spec::slot::kStep: return put(letter.slot, {letter.stream, 1});
      default: return put(letter.slot, {0});
    }
  }
  /// The letters possible now.
  void alphabet(Word* letters) const {
    letters->clear();
    for (std::uint8_t size = 0; size < 3; ++size) {
      for (std::uint8_t s = 0; s < (next_ == 0 ? 1 : 2); ++s)
        letters->push_back({spec::slot::kAlloc, 0, size, s});
    }
    for (std::uint8_t i = 0; i < live_.size(); ++i)
      letters->push_back({spec::slot::kFree, i, 0, 0});
    for (std::uint8_t i = 0; i < live_.size(); ++i) letters->push_back({spec::slot::kUse, i, 0, 0});
    for (std::uint8_t s = 0; s < 2; ++s) letters->push_back({spec::slot::kStep, 0, 0, s});
    letters->push_back({spec::slot::kTrim, 0, 0, 0});
  }
  /// A 128-bit hash of the snapshot and the queues.
  State state() {
    words_.clear();
    const cache::Snapshot& map = lockstep_.model()->device(DeviceId{0}).map.view;
    for (const cache::SnapshotSegment& segment : map.segments) {
      words_.insert(words_.end(), {segment.base.value(), segment.size.count(),
                                   segment.stream.value(), segment.block_count});
    }
    for (const cache::SnapshotBlock& block : map.blocks) {
      words_.insert(words_.end(), {block.size.count(), block.requested.count(),
                                   static_cast<std::uint64_t>(block.state), block.other_uses,
                                   block.stream.value()});
    }
    lockstep_.gpu()->queue_contents(&words_);
    State state{1, 2};
    for (const std::uint64_t word : words_) {
      state.first = spec::Random(state.first ^ word).next();
      state.second = spec::Random(state.second + word).next();
    }
    return state;
  }
  spec::CacheLockstep& lockstep() { return lockstep_; }

 private:
  static spec::CacheLockstep::Options options(bool works) {
    spec::CacheLockstep::Options options;
    options.factory = caching_allocator_factory();
    options.machine.adversarial = false;  // equal states have equal addresses
    options.touch = works;
    return options;
  }
  bool put(std::uint8_t s, std::array<std::uint64_t, spec::kArgsMax> arg) {
    spec::Op op;
    op.slot = s;
    op.arg = arg;
    return lockstep_.step(op);
  }
  /// The address that the model knows and the list of live blocks does not.
  std::uint64_t newest_address() {
    for (const auto& [address, block] : lockstep_.model()->device(DeviceId{0}).books.owned()) {
      bool is_known = block.is_pending;
      for (const Live& live : live_) is_known = is_known || live.address == address;
      if (!is_known) return address;
    }
    return 0;
  }
  void enter(const Live& block) {
    auto at = live_.begin();
    while (at != live_.end() && at->address < block.address) ++at;
    live_.insert(at, block);
  }

  spec::CacheLockstep lockstep_;
  std::vector<Live> live_;
  std::vector<std::uint64_t> words_;
  bool works_;
  std::uint64_t next_ = 0;
};

std::string text_of(const Word& word, const spec::LockstepResult& result) {
  std::string text = result.divergence.clause + ": " + result.divergence.text + "\n";
  for (const Letter& letter : word) {
    text += std::string(spec::op_info(letter.slot).name) + " place " +
            std::to_string(letter.place) + " size " + std::to_string(kSizes[letter.size]) +
            " stream " + std::to_string(letter.stream) + "\n";
  }
  return text + result.maps;
}

/// Runs every word of `depth` letters that begins with `word`; each of its prefixes is judged too.
std::uint64_t run_all(Word* word, unsigned depth) {
  Speller speller(true);
  for (const Letter& letter : *word) {
    if (speller.spell(letter)) continue;
    ADD_FAILURE() << text_of(*word, speller.lockstep().result());
    return 0;
  }
  if (word->size() == depth) {
    static std::uint64_t words = 0;
    if (++words % 64 != 0) return 1;  // the end costs as much as the word: every 64th is settled
    if (!speller.lockstep().finish().is_good())
      ADD_FAILURE() << text_of(*word, speller.lockstep().result());
    return 1;
  }
  Word letters;
  speller.alphabet(&letters);
  std::uint64_t count = 0;
  for (const Letter& letter : letters) {
    if (testing::Test::HasFailure()) break;
    word->push_back(letter);
    count += run_all(word, depth);
    word->pop_back();
  }
  return count;
}

TEST(CacheExhaustive, EverySequenceToTheFullDepthIsJudgedRight) {
  Word word;
  const std::uint64_t count = run_all(&word, kFullDepth);
  std::printf("%llu sequences of %u operations\n", static_cast<unsigned long long>(count),
              kFullDepth);
  EXPECT_EQ(count, kSequences);
}

TEST(CacheExhaustive, EveryStateToTheGreaterDepthIsJudgedRight) {
  std::unordered_set<State, StateHash> seen;
  std::vector<Word> level{{}};
  std::uint64_t transitions = 0;
  Word letters;
  for (unsigned depth = 0; depth < kDedupDepth && !HasFailure(); ++depth) {
    std::vector<Word> next;
    for (Word& word : level) {
      Speller parent(false);
      for (const Letter& letter : word) parent.spell(letter);
      parent.alphabet(&letters);
      for (const Letter& letter : letters) {
        Speller speller(false);
        bool is_good = true;
        for (const Letter& known : word) is_good = is_good && speller.spell(known);
        is_good = is_good && speller.spell(letter);
        ++transitions;
        word.push_back(letter);
        if (!is_good) {
          ADD_FAILURE() << text_of(word, speller.lockstep().result());
          return;
        }
        if (seen.insert(speller.state()).second) next.push_back(word);
        word.pop_back();
      }
    }
    level.swap(next);
    std::printf("depth %u: %zu new states, %llu transitions so far\n", depth + 1, level.size(),
                static_cast<unsigned long long>(transitions));
    std::fflush(stdout);
  }
  EXPECT_EQ(transitions, kTransitions);
}

}  // namespace
}  // namespace ashlar::props
