// PyTorch's two policies once more, naively: one ordered map of all blocks, linear searches, and its own
// choice of addresses. policy_test.cc compares the real ones with it.
//
// Thread safety: none. Cost: O(blocks) a call.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <vector>

namespace ashlar::props {

class NaivePolicy {
 public:
  NaivePolicy(bool is_expandable, std::uint64_t capacity)
      : is_expandable_(is_expandable), capacity_(capacity) {}

  // The address, or 0 for an out-of-memory.
  std::uint64_t allocate(std::uint64_t asked, unsigned stream) {
    const std::uint64_t size = up(asked, 512);
    const unsigned owner = 2 * stream + (size <= kMiB ? 1 : 0);
    std::uint64_t at = fit(owner, size);
    if (at == 0) at = grow(owner, size);
    if (at == 0) {
      release_all();
      at = grow(owner, size);
    }
    if (at == 0) return 0;
    const std::uint64_t rest = blocks_[at].size - size;
    if (is_expandable_ || owner % 2 == 1 ? rest >= 512 : rest > kMiB) split(at, size);
    blocks_[at].state = State::kLive;
    return at;
  }
  void free(std::uint64_t at) {
    blocks_[at].state = State::kFree;
    merge(at);
  }
  std::uint64_t reserved() const { return reserved_; }
  std::uint64_t waits() const { return waits_; }

 private:
  static constexpr std::uint64_t kMiB = 1 << 20;
  static constexpr std::uint64_t kFirst = std::uint64_t{1} << 41;  // the lowest address of a SimGpu
  enum class State { kFree, kLive, kUnmapped };
  struct Block {
    std::uint64_t size;
    State state;
    std::uint64_t segment;  // its base
    unsigned owner;
  };

  static std::uint64_t up(std::uint64_t n, std::uint64_t unit) {
    return (n + unit - 1) / unit * unit;
  }
  static std::uint64_t page(unsigned owner) { return (owner % 2 == 1 ? 2 : 20) * kMiB; }
  bool is(std::uint64_t at, State state) const { return blocks_.at(at).state == state; }

  // The next block of the same segment, or 0.
  std::uint64_t behind(std::uint64_t at) const {
    const Block& block = blocks_.at(at);
    const auto next = blocks_.find(at + block.size);
    return next == blocks_.end() || next->second.segment != block.segment ? 0 : next->first;
  }
  std::uint64_t room(std::uint64_t at) const {
    const std::uint64_t next = behind(at);
    const bool grows = next != 0 && is(next, State::kUnmapped);
    return blocks_.at(at).size + (grows ? blocks_.at(next).size : 0);
  }
  void split(std::uint64_t at, std::uint64_t size) {
    Block rest = blocks_[at];
    if (rest.size == size) return;
    rest.size -= size;
    blocks_[at].size = size;
    blocks_[at + size] = rest;
  }
  std::uint64_t merge(std::uint64_t at) {
    const std::uint64_t next = behind(at);
    if (next != 0 && is(next, blocks_[at].state)) {
      blocks_[at].size += blocks_[next].size;
      blocks_.erase(next);
    }
    const auto self = blocks_.find(at);
    if (self == blocks_.begin()) return at;
    const auto before = std::prev(self);
    if (before->second.segment != self->second.segment ||
        before->second.state != self->second.state)
      return at;
    before->second.size += self->second.size;
    blocks_.erase(self);
    return before->first;
  }

  std::uint64_t fit(unsigned owner, std::uint64_t size) const {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> all;
    for (const auto& [at, block] : blocks_) {
      if (block.owner == owner && block.state == State::kFree && block.size >= size)
        all.emplace_back(block.size, at);
    }
    std::sort(all.begin(), all.end());
    std::size_t i = 0;
    while (is_expandable_ && i + 1 < all.size() && room(all[i + 1].second) < room(all[i].second))
      ++i;
    return all.empty() ? 0 : all[i].second;
  }

  std::uint64_t new_segment(unsigned owner, std::uint64_t size, State state) {
    std::uint64_t at = kFirst;
    for (const auto& [base, bytes] : segments_) {
      if (at + size <= base) break;
      at = up(base + bytes, 2 * kMiB);
    }
    segments_[at] = size;
    blocks_[at] = {size, state, at, owner};
    return at;
  }
  std::uint64_t grow(unsigned owner, std::uint64_t size) {
    if (is_expandable_) return grow_pages(owner, size);
    const std::uint64_t large = size < 10 * kMiB ? 20 * kMiB : up(size, 2 * kMiB);
    const std::uint64_t bytes = owner % 2 == 1 ? 2 * kMiB : large;
    if (reserved_ + bytes > capacity_) return 0;
    reserved_ += bytes;
    return new_segment(owner, bytes, State::kFree);
  }
  std::uint64_t grow_pages(unsigned owner, std::uint64_t size) {
    std::uint64_t place = 0;
    for (auto it = blocks_.begin(); place == 0 && it != blocks_.end(); ++it) {
      if (it->second.owner != owner || it->second.state != State::kUnmapped) continue;
      std::uint64_t first = it->first;
      if (it != blocks_.begin() && behind(std::prev(it)->first) == it->first &&
          is(std::prev(it)->first, State::kFree))
        first = std::prev(it)->first;
      std::uint64_t bytes = 0;
      for (std::uint64_t at = first; at != 0 && !is(at, State::kLive); at = behind(at))
        bytes += blocks_[at].size;
      if (bytes >= size) place = first;
    }
    const std::uint64_t whole = up(capacity_ + capacity_ / 8, page(owner));
    if (place == 0 && whole >= size) place = new_segment(owner, whole, State::kUnmapped);
    if (place != 0 && is(place, State::kUnmapped)) place = map(place, size);
    while (place != 0 && blocks_[place].size < size)
      place = map(behind(place), size - blocks_[place].size);
    return place;
  }
  std::uint64_t map(std::uint64_t at, std::uint64_t size) {
    const std::uint64_t bytes = up(std::min(size, blocks_[at].size), page(blocks_[at].owner));
    if (reserved_ + bytes > capacity_) return 0;
    reserved_ += bytes;
    split(at, bytes);
    blocks_[at].state = State::kFree;
    return merge(at);
  }

  void release_all() {
    std::vector<std::uint64_t> free;
    for (const auto& [at, block] : blocks_) {
      if (block.state == State::kFree) free.push_back(at);
    }
    bool has_released = false;
    for (const std::uint64_t at : free) has_released = release(at) || has_released;
    waits_ += has_released ? 1 : 0;
  }
  bool release(std::uint64_t at) {
    const Block block = blocks_[at];
    const std::uint64_t unit = is_expandable_ ? page(block.owner) : segments_[block.segment];
    const std::uint64_t begin = block.segment + up(at - block.segment, unit);
    const std::uint64_t end = block.segment + (at + block.size - block.segment) / unit * unit;
    if (begin >= end) return false;
    reserved_ -= end - begin;
    if (begin != at) split(at, begin - at);
    split(begin, end - begin);
    blocks_[begin].state = State::kUnmapped;
    const std::uint64_t merged = merge(begin);
    if (blocks_[merged].size != segments_[block.segment]) return true;
    blocks_.erase(merged);
    segments_.erase(block.segment);
    return true;
  }

  const bool is_expandable_;
  const std::uint64_t capacity_;
  std::map<std::uint64_t, Block> blocks_;            // by address
  std::map<std::uint64_t, std::uint64_t> segments_;  // base -> size
  std::uint64_t reserved_ = 0;
  std::uint64_t waits_ = 0;
};

}  // namespace ashlar::props
