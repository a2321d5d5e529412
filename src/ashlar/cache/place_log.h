// Where the blocks of a heap's pool lay: the last requests in their order, and the place that each was given.
//
// Purpose: best fit alone lets buffers that live from one step of a program to the next drift through the
// addresses: each step places them where the step before had left room. On a device that is nearly full,
// pages then lack at another place in every step (docs/moving-pages.md). With the log, a request gets
// the place that it had in the step before, if that is free, and a step that repeats settles (C20).
//
// The rule. The log has a cursor: the entry behind the one that the last request repeated. If the entry
// at the cursor has the request's size, its place is expected. If not, or there is no cursor, it is that of
// the newest entry that ends the same sequence of `context` sizes as the request does, if the log knows one.
// So a cursor keeps its place in a sequence that repeats a part of itself, as the layers of a network do.
// The way to follow a repeated sequence is that of LZ77 (J. Ziv, A. Lempel, IEEE Trans. Inf. Theory 23, 1977).
//
// Thread safety: by the heap's lock. Cost of each member: O(1).
// Invariants:
//   (1) the entry of number n, counted from 0, is at n modulo kEntries; of the last kEntries numbers those
//       from first_known_ on are known, and their places are in segments that the pool has;
//   (2) context_ is the hash of the last context_length_ sizes.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include <ashlar/base/types.h>
#include <ashlar/block/position.h>
#include <ashlar/cache/config_limits.h>

namespace ashlar::inline v0::cache {

class PlaceLog {
 public:
  /// How many requests are remembered: more than a step of the training traces has, which is 4,800.
  static constexpr std::uint64_t kEntries = 16384;

  /// `context`: how many requests, the one asked for included, tell a place in the sequence from others
  /// (Config::place_context). REQUIRES: 1 to kPlaceContextMax.
  explicit PlaceLog(std::uint32_t context) noexcept : context_length_(context) {
    for (std::uint32_t i = 0; i < context; ++i) oldest_weight_ *= kMultiplier;
  }

  /// The place that a request of that size is expected to get, or nothing.
  std::optional<block::Position> expected(Bytes size) const noexcept {
    const std::uint64_t number = follow(size, next_context(size));
    if (number == kNone) return std::nullopt;
    return entry(number).place;
  }
  /// A request of that size was given that place.
  void note(Bytes size, block::Position place) noexcept {
    const std::uint64_t context = next_context(size);
    const std::uint64_t followed = follow(size, context);
    cursor_ = followed == kNone ? kNone : followed + 1;
    context_ = context;
    newest_[slot_of(context)] = {context, count_};
    entries_[count_++ % kEntries] = {size, place};
  }
  /// Expects no place that was given so far: addresses of the pool went back, and their positions will be
  /// those of others (segment_ledger.h).
  void forget_places() noexcept { first_known_ = count_; }

 private:
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};
  static constexpr std::uint64_t kSlots = 2 * kEntries;
  static constexpr unsigned kSlotBits = 15;
  static_assert(std::uint64_t{1} << kSlotBits == kSlots);
  /// G. Steele, S. Vigna, "Computationally easy, spectrally good multipliers", 2021: of a 64-bit LCG.
  static constexpr std::uint64_t kMultiplier = 0xd1342543de82ef95;

  struct Entry {
    Bytes size;
    block::Position place{};
  };
  /// The newest entry that ends a context.
  struct Newest {
    std::uint64_t context = 0;
    std::uint64_t number = kNone;
  };

  const Entry& entry(std::uint64_t number) const noexcept { return entries_[number % kEntries]; }
  bool is_known(std::uint64_t number) const noexcept {
    return number >= first_known_ && number < count_ && count_ - number <= kEntries;
  }
  static std::uint64_t slot_of(std::uint64_t context) noexcept {
    return context * kMultiplier >> (64 - kSlotBits);
  }
  /// The context once a request of that size is its last.
  std::uint64_t next_context(Bytes size) const noexcept {
    // Of numbers not known yet the size is 0, and adds nothing.
    const Bytes oldest = entry(count_ - context_length_).size;
    return context_ * kMultiplier + size.count() - oldest.count() * oldest_weight_;
  }
  /// The number of the entry that a request of that size and context repeats, or kNone.
  std::uint64_t follow(Bytes size, std::uint64_t context) const noexcept {
    if (is_known(cursor_) && entry(cursor_).size == size) return cursor_;
    const Newest& newest = newest_[slot_of(context)];
    const bool is_same = newest.context == context && is_known(newest.number);
    return is_same && entry(newest.number).size == size ? newest.number : kNone;
  }

  const std::uint64_t context_length_;
  /// kMultiplier to the power of context_length_: the weight of the size that leaves the context.
  std::uint64_t oldest_weight_ = 1;
  std::uint64_t count_ = 0;        ///< of entries ever made
  std::uint64_t first_known_ = 0;  ///< the places of older entries are forgotten
  std::uint64_t cursor_ = kNone;
  std::uint64_t context_ = 0;
  std::array<Entry, kEntries> entries_{};
  std::array<Newest, kSlots> newest_{};
};

}  // namespace ashlar::inline v0::cache
