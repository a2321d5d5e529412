// Words: sequences over a small alphabet, for exhaustive search. A word is spelt in a world of its
// own, each letter judged by the model; words that differ in names alone are one.
//
// Alphabet, on a 32 MiB device with two streams: allocate 512 B, 1.5 MiB or 12 MiB on either stream
// (the last two soon run out of memory); free any live block; record a use of any on the other
// stream; the oldest work of either stream finishes; trim. With `has_events` also, each at most once
// in a word: the first stream's capture, its end, the next growth fails, the limit becomes 20 MiB.
// Blocks are named by their place in address order. The two streams are interchangeable, so that the
// first allocation is always on the first.
// Thread safety: none.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "props/adapters/caching_allocator_subject.h"
#include "spec/lockstep/cache_lockstep.h"

namespace ashlar::props {

/// One letter: an op whose pointer is a place in address order.
struct Letter {
  std::uint8_t slot;
  std::uint8_t place;  ///< of the live block, for free and use
  std::uint8_t size;   ///< of an allocation: an index
  std::uint8_t stream;
};
using Word = std::vector<Letter>;

struct Alphabet {
  bool has_kernels =
      true;                ///< allocations' uses are followed by kernels, so that early reuse shows
  bool has_events = true;  ///< a capture, a failure, a limit
};

/// A 128-bit hash of a state.
using StateHash = std::pair<std::uint64_t, std::uint64_t>;

/// A world that runs one letter after the other.
class Speller {
 public:
  explicit Speller(const Alphabet& alphabet);

  /// False after a divergence.
  bool spell(const Letter& letter);
  /// Replaces `*letters` by those possible now.
  void letters(Word* letters) const;
  /// Of what decides how the world goes on (cache_state_words.h).
  StateHash state();
  spec::CacheLockstep& lockstep() { return lockstep_; }

 private:
  struct Live {
    std::uint64_t address;
    std::uint64_t name;
    std::uint8_t stream;
  };

  static spec::CacheLockstep::Options options(const Alphabet& alphabet);
  void put_conf(const char* text);
  bool put(std::uint8_t slot, std::array<std::uint64_t, spec::kArgsMax> arg);
  bool allocate(const Letter& letter);
  std::uint64_t newest_address();
  void enter(const Live& block);
  bool was_spelt(std::uint8_t slot) const { return (once_ >> slot & 1) != 0; }

  Alphabet alphabet_;
  spec::CacheLockstep lockstep_;
  std::vector<Live> live_;
  std::vector<std::uint64_t> words_;
  std::uint64_t once_ = 0;  ///< a bit for each op of which a word has one
  std::uint64_t next_ = 0;
};

/// The word and its divergence, for messages.
std::string text_of(const Word& word, const spec::LockstepResult& result);

}  // namespace ashlar::props
