// OwnedBlocks: the model's live and pending blocks, in order of their addresses.
//
// A sorted list of addresses refers to blocks that stay where they are, so that a step moves a few
// words, and allocates only when there are more blocks than ever before.
// Thread safety: none. Cost: find O(log n), insert and erase O(n) words moved.
// Iterators are places in the order: an insertion or erasure shifts what later ones refer to.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <ashlar/base/pool_id.h>

#include "spec/gpu/short_list.h"

namespace ashlar::spec {

/// A live allocation, or a freed one whose uses are not complete.
struct OwnedBlock {
  std::uint64_t tag = 0;
  std::uint64_t size = 0;
  std::uint64_t requested = 0;
  std::uint64_t stream = 0;          ///< identity
  ShortList<std::uint64_t, 2> uses;  ///< identities of the other streams announced, each once
  /// A use that was announced only while captures of its stream were: the last of them.
  struct CapturedUse {
    std::uint64_t user = 0;
    std::uint64_t capture = 0;
  };
  ShortList<CapturedUse, 2> captured;
  bool is_pending = false;
  PoolId pool = PoolId::kSmall;
  std::uint64_t capture = 0;      ///< in which it was allocated (StreamBook::graph_of)
  std::uint64_t memory_pool = 0;  ///< that it comes from (MemoryPoolBook::Pool::serial); 0: none
  /// Captures by which it may have a use that nobody announced: a body that began while it was live, or the
  /// parent of one that used it.
  ShortList<std::uint64_t, 1> of_bodies;

  /// How many uses it may have.
  std::uint64_t uses_max() const { return uses.size() + of_bodies.size(); }
};

class OwnedBlocks {
  struct Entry {
    std::uint64_t first = 0;  ///< address
    OwnedBlock second;
  };
  template <class Owner, class Item>
  class At {
   public:
    At() = default;
    At(Owner* owner, std::size_t at) : owner_(owner), at_(at) {}
    Item& operator*() const { return owner_->slots_[owner_->order_[at_].slot]; }
    Item* operator->() const { return &**this; }
    At& operator++() { return ++at_, *this; }
    At& operator--() { return --at_, *this; }
    friend bool operator==(const At& a, const At& b) { return a.at_ == b.at_; }
    /// The block's address; cheaper than through the block.
    std::uint64_t address() const { return owner_->order_[at_].address; }

   private:
    friend OwnedBlocks;
    Owner* owner_ = nullptr;
    std::size_t at_ = 0;
  };

 public:
  using iterator = At<OwnedBlocks, Entry>;
  using const_iterator = At<const OwnedBlocks, const Entry>;

  OwnedBlocks() {
    order_.reserve(kUsual);
    slots_.reserve(kUsual);
    unused_.reserve(kUsual);
  }

  std::size_t size() const { return order_.size(); }
  bool empty() const { return order_.empty(); }
  iterator begin() { return {this, 0}; }
  iterator end() { return {this, order_.size()}; }
  const_iterator begin() const { return {this, 0}; }
  const_iterator end() const { return {this, order_.size()}; }
  iterator lower_bound(std::uint64_t address) { return {this, place(address)}; }
  iterator find(std::uint64_t address) { return {this, place_of(address)}; }
  const_iterator find(std::uint64_t address) const { return {this, place_of(address)}; }
  /// The first block that ends behind that address.
  const_iterator before_end_of(std::uint64_t address) const {
    std::size_t at = place(address);
    if (at != 0) {
      const Key& before = order_[at - 1];
      if (before.address + slots_[before.slot].second.size > address) --at;
    }
    return {this, at};
  }

  /// A new block at that address. REQUIRES: none is there.
  OwnedBlock& insert(std::uint64_t address) {
    std::uint32_t slot = static_cast<std::uint32_t>(slots_.size());
    if (unused_.empty()) {
      slots_.emplace_back();
    } else {
      slot = unused_.back();
      unused_.pop_back();
    }
    order_.insert(order_.begin() + static_cast<std::ptrdiff_t>(place(address)), Key{address, slot});
    Entry& entry = slots_[slot];
    entry.first = address;
    entry.second.uses.clear();
    entry.second.captured.clear();
    entry.second.of_bodies.clear();
    entry.second.is_pending = false;
    return entry.second;
  }
  /// The iterator after it.
  iterator erase(iterator block) {
    unused_.push_back(order_[block.at_].slot);
    order_.erase(order_.begin() + static_cast<std::ptrdiff_t>(block.at_));
    return block;
  }

 private:
  struct Key {
    std::uint64_t address;
    std::uint32_t slot;
  };
  static constexpr std::size_t kUsual = 32;  ///< what most worlds stay below

  std::size_t place(std::uint64_t address) const {
    const auto at =
        std::lower_bound(order_.begin(), order_.end(), address,
                         [](const Key& key, std::uint64_t value) { return key.address < value; });
    return static_cast<std::size_t>(at - order_.begin());
  }
  std::size_t place_of(std::uint64_t address) const {
    const std::size_t at = place(address);
    return at < order_.size() && order_[at].address == address ? at : order_.size();
  }

  std::vector<Key> order_;
  std::vector<Entry> slots_;
  std::vector<std::uint32_t> unused_;
};

}  // namespace ashlar::spec
