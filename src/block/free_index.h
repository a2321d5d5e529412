// The free index: exact best fit, smallest size that fits, then lowest address.
//
// Purpose: a two-level bitmap leads to a class of free blocks in O(1); inside the class an intrusive tree over the
// blocks' records is ordered by (size, address), with work bounded by kFitStepsMax whatever the pool holds.
// Thread safety: none; the pool's owner brings the lock. const members may run together.
//
// Sizes and addresses are counted in granules here. Let 2^o <= size < 2^(o+1); o is the size's octave. Every size under
// 2^(kSubBits+1) is a group of its own, every larger octave is one. A block's key inside its group is
//   (the o bits of its size below the leading one, unless the size is a group; its address's bits from o up)
// and the key's first kSubBits bits choose the class: small sizes are classed by where they lie, larger ones by size.
//
// The tree of a class is a digital tree (each level looks at one bit of the key, most significant first, as in the tree
// bins of Doug Lea's malloc 2.8) in which every node also holds the smallest key of its subtree, as a priority search
// tree does (E. McCreight, SIAM J. Comput. 14, 1985, with the key itself as the priority). So the smallest of a class is
// its root, and a search for the least key >= k stops at the first node that is >= k.
//
// Why the depth is bounded: the address bits dropped lose nothing. Take two free blocks of one group at addresses a < b:
// they are disjoint and each is at least 2^o long, so b >= a + 2^o, hence (b >> o) >= (a >> o) + 1: still distinct, and
// in the same order. A key then has o bits of size and (address bits) - o of address: the o cancels. With 64-bit
// addresses and granules of 2^4 bytes or more that is at most 60 bits, whatever the size.
// Addresses are taken relative to a *window* that holds every segment the pool has seen, because the bits all addresses
// share would only make chains. A segment outside it makes a new one, at least twice as large, and the index is built
// anew: at most 60 times in a pool's life.
//
// The record inserted last waits outside the trees: allocators free and allocate in short turns, and a block that is
// merged or taken at once never needs a place (a free+malloc pair then touches no tree).
//
// Invariants (validate() checks them as the pool's (3)):
//   (1) A class's bit is set exactly when its tree has a root; a group's bit exactly when a class's bit is set in it.
//   (2) A node's key is smaller than any other of its subtree, and its subtree shares the key's bits above its depth.
//   (3) Every record of the index is in the tree of its class, but for at most one: latest_.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include <ashlar/block/record.h>

namespace ashlar {
inline namespace v0 {
namespace block {

/// No search, insertion or removal visits more nodes than this on its way down.
inline constexpr unsigned kFitStepsMax = 61;

class FreeIndex {
 public:
  using Records = Slab<BlockRecord>;

  explicit FreeIndex(unsigned granule_bits) : granule_bits_(granule_bits) { roots_.fill(kNone); }

  /// Adds a record by its address and size. REQUIRES: not in the index; its address is in the window.
  void insert(Records& records, std::uint32_t index) noexcept {
    if (latest_ != kNone) insert_in_tree(records, latest_);
    latest_ = index;
  }
  /// Takes a record out. REQUIRES: in the index; its address and size as they were at insert().
  void remove(Records& records, std::uint32_t index) noexcept {
    if (latest_ == index) {
      latest_ = kNone;
    } else {
      remove_from_tree(records, index);
    }
  }
  /// The record with the smallest (size, address) whose size is at least `size` bytes, or kNone.
  std::uint32_t lower_bound(const Records& records, std::uint64_t size) const noexcept;
  /// The record that follows in (size, address) order, or kNone. REQUIRES: in the index.
  std::uint32_t successor(const Records& records, std::uint32_t index) const noexcept;
  /// A record of the largest size, or kNone.
  std::uint32_t largest(const Records& records) const noexcept;

  /// Makes the window hold [base, base + size). True when the keys of all records changed: then the owner calls clear()
  /// and inserts every free record again.
  bool extend_window(std::uint64_t base, std::uint64_t size) noexcept;
  /// Does the index hold `count` records, all free, each where its address and size say? nullptr, or the invariant that
  /// broke. Cost: O(classes + count).
  const char* validate(const Records& records, std::uint64_t count) const noexcept;
  /// Forgets every record.
  void clear() noexcept {
    roots_.fill(kNone);
    subs_.fill(0);
    groups_.fill(0);
    latest_ = kNone;
  }

 private:
  friend struct PoolPeer;

  static constexpr unsigned kSubBits = 5;
  static constexpr unsigned kSubs = 1u << kSubBits;
  static constexpr unsigned kAddressBits = 60;      ///< 64-bit addresses, granules of at least 2^4 bytes
  static constexpr unsigned kSingles = 2 * kSubs;   ///< sizes under this are a group each: groups 0..63
  static constexpr unsigned kGroups = kSingles + kAddressBits - (kSubBits + 1);
  static_assert(kSingles == 64 && kGroups <= 128, "the groups' bitmap is two words: single sizes, octaves");
  static_assert(kAddressBits < kFitStepsMax, "one node for each key bit, and the root");

  /// Where a block belongs: its class, and its key there at the top of the word, which has at least 4 zero bits below.
  struct Place {
    unsigned size_class;
    std::uint64_t key;
  };
  /// `offset` is the address relative to the window.
  Place place_of(std::uint64_t granules, std::uint64_t offset) const {
    const unsigned octave = 63 ^ static_cast<unsigned>(std::countl_zero(granules));
    const bool single = granules < kSingles;
    const unsigned size_bits = single ? 0 : octave;
    const unsigned group = single ? static_cast<unsigned>(granules) : kSingles - (kSubBits + 1) + octave;
    const unsigned address_bits = window_bits_ > octave ? window_bits_ - octave : 0;
    const std::uint64_t low = granules & ((std::uint64_t{1} << size_bits) - 1);
    const std::uint64_t bits = (low << address_bits) | (offset >> octave);
    const std::uint64_t key = (bits << (63 - size_bits - address_bits)) << 1;  // in two steps: there may be no bits
    return Place{(group << kSubBits) | static_cast<unsigned>(key >> (64 - kSubBits)), key << kSubBits};
  }
  Place place_of(const BlockRecord& record) const {
    return place_of(record.size >> granule_bits_, (record.address >> granule_bits_) - window_base_);
  }

  void insert_in_tree(Records& records, std::uint32_t index) noexcept;
  void remove_from_tree(Records& records, std::uint32_t index) noexcept;
  const char* validate_tree(const Records& records, unsigned size_class, std::uint64_t* count) const noexcept;
  std::uint32_t lower_bound_in(const Records& records, unsigned size_class, std::uint64_t key) const noexcept;
  std::uint32_t smallest_above(unsigned size_class) const noexcept;

  static bool precedes(const BlockRecord& a, const BlockRecord& b) {
    return a.size < b.size || (a.size == b.size && a.address < b.address);
  }

  unsigned granule_bits_;
  unsigned window_bits_ = 0;
  std::uint64_t window_base_ = 0;
  std::uint64_t span_base_ = 0;  ///< what the segments seen so far span
  std::uint64_t span_end_ = 0;
  std::array<std::uint64_t, 2> groups_{};
  std::uint32_t latest_ = kNone;
  std::array<std::uint32_t, kGroups> subs_{};
  std::array<std::uint32_t, std::size_t{kGroups} * kSubs> roots_;
};

inline void FreeIndex::insert_in_tree(Records& records, std::uint32_t index) noexcept {
  BlockRecord& record = records[index];
  const Place place = place_of(record);
  record.size_class = static_cast<std::uint16_t>(place.size_class);
  record.links.key = place.key;
  const unsigned group = place.size_class >> kSubBits;
  groups_[group >> 6] |= std::uint64_t{1} << (group & 63);
  subs_[group] |= 1u << (place.size_class & (kSubs - 1));

  // Down along the key's bits. Where the carried record is smaller than the node, it takes the node's place and the
  // node is carried on.
  std::uint32_t carried = index;
  std::uint32_t parent = kNone;
  std::uint32_t* slot = &roots_[place.size_class];
  for (unsigned depth = 0; *slot != kNone; ++depth) {
    ASHLAR_ASSERT(depth < kFitStepsMax, "free index(2): two blocks with one key");
    std::uint32_t node = *slot;
    if (records[carried].links.key < records[node].links.key) {
      BlockRecord& up = records[carried];
      up.links.child[0] = records[node].links.child[0];
      up.links.child[1] = records[node].links.child[1];
      up.parent = parent;
      if (up.links.child[0] != kNone) records[up.links.child[0]].parent = carried;
      if (up.links.child[1] != kNone) records[up.links.child[1]].parent = carried;
      *slot = carried;
      std::swap(node, carried);
    }
    parent = node;
    slot = &records[node].links.child[(records[carried].links.key << depth) >> 63];
  }
  *slot = carried;
  BlockRecord& leaf = records[carried];
  leaf.parent = parent;
  leaf.links.child[0] = kNone;
  leaf.links.child[1] = kNone;
}

inline void FreeIndex::remove_from_tree(Records& records, std::uint32_t index) noexcept {
  const BlockRecord& gone = records[index];
  const unsigned size_class = gone.size_class;
  std::uint32_t parent = gone.parent;
  std::uint32_t* slot = parent == kNone ? &roots_[size_class]
                                        : &records[parent].links.child[records[parent].links.child[1] == index];
  ASHLAR_ASSERT(*slot == index, "free index: remove() of a block that is not in it");
  // The smaller child moves up into the hole, then its smaller child into its place, until a leaf has moved.
  std::uint32_t left = gone.links.child[0];
  std::uint32_t right = gone.links.child[1];
  for (;;) {
    const unsigned side = left == kNone;
    const std::uint32_t up = side == 0 ? left : right;
    *slot = up;
    if (up == kNone) break;
    BlockRecord& moved = records[up];
    const std::uint32_t other = side == 0 ? right : kNone;
    left = moved.links.child[0];
    right = moved.links.child[1];
    moved.parent = parent;
    moved.links.child[1 - side] = other;
    if (other != kNone) records[other].parent = up;
    slot = &moved.links.child[side];
    parent = up;
  }
  if (roots_[size_class] == kNone) {
    const unsigned group = size_class >> kSubBits;
    subs_[group] &= ~(1u << (size_class & (kSubs - 1)));
    if (subs_[group] == 0) groups_[group >> 6] &= ~(std::uint64_t{1} << (group & 63));
  }
}

inline std::uint32_t FreeIndex::lower_bound_in(const Records& records, unsigned size_class,
                                               std::uint64_t key) const noexcept {
  // A right subtree not taken holds only larger keys; the deepest one passed holds the smallest of those.
  std::uint32_t best = kNone;
  std::uint32_t node = roots_[size_class];
  for (std::uint64_t bits = key; node != kNone; bits <<= 1) {
    const BlockRecord& record = records[node];
    if (record.links.key >= key) return node;
    if (bits >> 63 != 0) {
      node = record.links.child[1];
    } else {
      if (record.links.child[1] != kNone) best = record.links.child[1];
      node = record.links.child[0];
    }
  }
  return best;
}

/// The smallest record of the next class above `size_class` that has one.
inline std::uint32_t FreeIndex::smallest_above(unsigned size_class) const noexcept {
  unsigned group = size_class >> kSubBits;
  const unsigned sub = size_class & (kSubs - 1);
  std::uint32_t subs = subs_[group] & (~std::uint32_t{1} << sub);
  if (subs == 0) {
    unsigned word = group >> 6;
    std::uint64_t groups = groups_[word] & (~std::uint64_t{1} << (group & 63));
    if (groups == 0) {
      if (word == 1 || groups_[1] == 0) return kNone;
      groups = groups_[++word];
    }
    group = (word << 6) + static_cast<unsigned>(std::countr_zero(groups));
    subs = subs_[group];
  }
  return roots_[(group << kSubBits) + static_cast<unsigned>(std::countr_zero(subs))];
}

inline std::uint32_t FreeIndex::lower_bound(const Records& records, std::uint64_t size) const noexcept {
  const Place place = place_of(size >> granule_bits_, 0);
  std::uint32_t found = lower_bound_in(records, place.size_class, place.key);
  if (found == kNone) found = smallest_above(place.size_class);
  if (latest_ == kNone || records[latest_].size < size) return found;
  return found == kNone || precedes(records[latest_], records[found]) ? latest_ : found;
}

inline std::uint32_t FreeIndex::successor(const Records& records, std::uint32_t index) const noexcept {
  const BlockRecord& record = records[index];
  const Place place = place_of(record);
  // Below the key's bits are zeros, so no other key lies between this one and the next number.
  std::uint32_t found = lower_bound_in(records, place.size_class, place.key + 1);
  if (found == kNone) found = smallest_above(place.size_class);
  if (latest_ == kNone || !precedes(record, records[latest_])) return found;
  return found == kNone || precedes(records[latest_], records[found]) ? latest_ : found;
}

inline std::uint32_t FreeIndex::largest(const Records& records) const noexcept {
  const unsigned word = groups_[1] != 0;
  if (groups_[word] == 0) return latest_;
  const unsigned group = (word << 6) + 63 - static_cast<unsigned>(std::countl_zero(groups_[word]));
  std::uint32_t node = roots_[(group << kSubBits) + 31 - static_cast<unsigned>(std::countl_zero(subs_[group]))];
  for (;;) {
    const BlockRecord::Links& links = records[node].links;
    const std::uint32_t child = links.child[1] != kNone ? links.child[1] : links.child[0];
    if (child == kNone) break;
    node = child;
  }
  return latest_ != kNone && precedes(records[node], records[latest_]) ? latest_ : node;
}

inline bool FreeIndex::extend_window(std::uint64_t base, std::uint64_t size) noexcept {
  const std::uint64_t first = base >> granule_bits_;
  const std::uint64_t end = first + (size >> granule_bits_);
  const bool is_first = span_end_ == 0;
  span_base_ = is_first || first < span_base_ ? first : span_base_;
  span_end_ = end > span_end_ ? end : span_end_;
  if (!is_first && span_base_ >= window_base_ && span_end_ - window_base_ <= std::uint64_t{1} << window_bits_) {
    return false;
  }
  // Twice the span, with as much room below as above: the next window is then at least twice as large as this one.
  const std::uint64_t span = span_end_ - span_base_;
  const unsigned bits = static_cast<unsigned>(std::bit_width(span)) + 1;
  window_bits_ = bits < kAddressBits ? bits : kAddressBits;
  const std::uint64_t room = ((std::uint64_t{1} << window_bits_) - span) / 2;
  window_base_ = window_bits_ == kAddressBits || span_base_ < room ? 0 : span_base_ - room;
  return true;
}

}  // namespace block
}  // namespace v0
}  // namespace ashlar
