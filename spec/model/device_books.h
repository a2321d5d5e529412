// DeviceBooks: the judge's books of one device: its live and pending blocks, and what became free.
//
// Invariant: between calls the books hold exactly the subject's live and pending blocks. A walk
// demands the same of the snapshot; a block leaves the books only by going from pending to free.
// Thread safety: none.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <set>
#include <vector>

#include "spec/model/owned_blocks.h"
#include "spec/model/stat_figures.h"

namespace ashlar::spec {

/// A block that an allocation was given: of which heap, how large, where.
struct GivenPlace {
  std::uint64_t heap;
  std::uint64_t size;  ///< as rounded
  std::uint64_t address;
  friend auto operator<=>(const GivenPlace&, const GivenPlace&) = default;
};

class DeviceBooks {
 public:
  struct Completed {
    std::uint64_t blocks = 0;
    std::uint64_t bytes = 0;
  };

  OwnedBlocks& owned() { return owned_; }
  const OwnedBlocks& owned() const { return owned_; }
  /// By pool; 0 is both pools'.
  std::uint64_t live(unsigned pool = 0) const { return live_[pool]; }
  std::uint64_t live_bytes(unsigned pool = 0) const { return live_bytes_[pool]; }

  const OwnedBlock* find_live(std::uint64_t address) const {
    const auto found = owned_.find(address);
    return found == owned_.end() || found->second.is_pending ? nullptr : &found->second;
  }

  /// A block was given out. REQUIRES: none is there.
  void add_live(std::uint64_t address, const OwnedBlock& block) {
    touch(address);
    owned_.insert(address) = block;
    for (const unsigned pool : {0u, stat_pool(block.pool)}) {
      live_[pool] += 1;
      live_bytes_[pool] += block.size;
    }
  }
  /// A live block was freed.
  void start_pending(std::uint64_t address, OwnedBlock* block) {
    touch(address);
    block->is_pending = true;
    for (const unsigned pool : {0u, stat_pool(block->pool)}) {
      live_[pool] -= 1;
      live_bytes_[pool] -= block->size;
    }
  }
  /// A pending block turns out to be free; the iterator after it.
  OwnedBlocks::iterator complete(OwnedBlocks::iterator block) {
    ++completed_in_call_;
    ++completed_since_walk_.blocks;
    completed_since_walk_.bytes += block->second.size;
    released_.push_back(block.address());
    return owned_.erase(block);
  }
  /// The blocks found free since the last walk ended.
  const std::vector<std::uint64_t>& released() const { return released_; }

  void note_place(const GivenPlace& place) { places_.insert(place); }
  bool was_given(const GivenPlace& place) const { return places_.contains(place); }

  void begin_call() { completed_in_call_ = 0; }
  /// Blocks found complete since begin_call().
  std::uint64_t completed_in_call() const { return completed_in_call_; }
  Completed completed_since_walk() const { return completed_since_walk_; }

  /// A block was made, changed or dropped at that address.
  void touch(std::uint64_t address) { touched_.push_back(address); }
  /// Touched since the last walk, in order of their addresses.
  const std::vector<std::uint64_t>& sort_touched() {
    std::sort(touched_.begin(), touched_.end());
    return touched_;
  }
  void end_walk() {
    touched_.clear();
    released_.clear();
    completed_since_walk_ = {};
  }

 private:
  OwnedBlocks owned_;
  std::uint64_t live_[cache::kStatPools] = {};
  std::uint64_t live_bytes_[cache::kStatPools] = {};
  std::uint64_t completed_in_call_ = 0;
  Completed completed_since_walk_;
  std::vector<std::uint64_t> touched_;
  std::vector<std::uint64_t> released_;
  std::set<GivenPlace> places_;
};

}  // namespace ashlar::spec
