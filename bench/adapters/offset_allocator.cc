#include "bench/adapters/offset_allocator.h"

#include <bit>

namespace ashlar::bench {

namespace {
constexpr unsigned kStepBits = 3;  // 8 bins an octave
constexpr std::uint32_t kSteps = 1u << kStepBits;
}  // namespace

std::uint32_t OffsetAllocator::bin_below(std::uint32_t units) {
  if (units < kSteps) return units;
  const unsigned shift = static_cast<unsigned>(std::bit_width(units)) - 1 - kStepBits;
  return ((shift + 1) << kStepBits) + ((units >> shift) & (kSteps - 1));
}

std::uint32_t OffsetAllocator::bin_above(std::uint32_t units) {
  if (units < kSteps) return units;
  const unsigned shift = static_cast<unsigned>(std::bit_width(units)) - 1 - kStepBits;
  return bin_below(units) + ((units & ((1u << shift) - 1)) != 0 ? 1 : 0);
}

OffsetAllocator::OffsetAllocator(std::uint32_t units) : free_units_(units), units_(units) {
  heads_.fill(kNone);
  insert(new_node(0, units));
}

std::uint32_t OffsetAllocator::find_bin(std::uint32_t from) const {
  if (from >= kBins) return kNone;
  const std::uint32_t group = from / 8;
  const std::uint32_t here = bins_[group] & (0xffu << (from % 8));
  if (here != 0) return group * 8 + static_cast<std::uint32_t>(std::countr_zero(here));
  const std::uint32_t later = group == 31 ? 0 : groups_with_bins_ & (~0u << (group + 1));
  if (later == 0) return kNone;
  const auto found = static_cast<std::uint32_t>(std::countr_zero(later));
  return found * 8 +
         static_cast<std::uint32_t>(std::countr_zero(static_cast<std::uint32_t>(bins_[found])));
}

std::uint32_t OffsetAllocator::new_node(std::uint32_t offset, std::uint32_t units) {
  std::uint32_t node = unused_;
  if (node == kNone) {
    node = static_cast<std::uint32_t>(nodes_.size());
    nodes_.emplace_back();
  } else {
    unused_ = nodes_[node].next;
  }
  nodes_[node] = Node{};
  nodes_[node].offset = offset;
  nodes_[node].units = units;
  return node;
}

void OffsetAllocator::drop_node(std::uint32_t node) {
  nodes_[node].next = unused_;
  unused_ = node;
}

void OffsetAllocator::insert(std::uint32_t node) {
  const std::uint32_t bin = bin_below(nodes_[node].units);
  nodes_[node].previous = kNone;
  nodes_[node].next = heads_[bin];
  if (heads_[bin] != kNone) nodes_[heads_[bin]].previous = node;
  heads_[bin] = node;
  bins_[bin / 8] = static_cast<std::uint8_t>(bins_[bin / 8] | (1u << (bin % 8)));
  groups_with_bins_ |= 1u << (bin / 8);
}

void OffsetAllocator::remove(std::uint32_t node) {
  const Node& gone = nodes_[node];
  if (gone.next != kNone) nodes_[gone.next].previous = gone.previous;
  if (gone.previous != kNone) {
    nodes_[gone.previous].next = gone.next;
    return;
  }
  const std::uint32_t bin = bin_below(gone.units);
  heads_[bin] = gone.next;
  if (gone.next != kNone) return;
  bins_[bin / 8] = static_cast<std::uint8_t>(bins_[bin / 8] & ~(1u << (bin % 8)));
  if (bins_[bin / 8] == 0) groups_with_bins_ &= ~(1u << (bin / 8));
}

OffsetAllocator::Allocation OffsetAllocator::allocate(std::uint32_t units) {
  const std::lock_guard lock(mutex_);
  const std::uint32_t bin = find_bin(bin_above(units));
  if (bin == kNone) return {};
  const std::uint32_t taken = heads_[bin];
  remove(taken);
  if (nodes_[taken].units > units) {
    const std::uint32_t rest = new_node(nodes_[taken].offset + units, nodes_[taken].units - units);
    nodes_[rest].before = taken;
    nodes_[rest].after = nodes_[taken].after;
    if (nodes_[rest].after != kNone) nodes_[nodes_[rest].after].before = rest;
    nodes_[taken].after = rest;
    nodes_[taken].units = units;
    insert(rest);
  }
  nodes_[taken].is_used = true;
  free_units_ -= units;
  return {nodes_[taken].offset, taken};
}

void OffsetAllocator::free(Allocation allocation) {
  const std::lock_guard lock(mutex_);
  Node& freed = nodes_[allocation.node];
  free_units_ += freed.units;
  freed.is_used = false;
  if (const std::uint32_t before = freed.before; before != kNone && !nodes_[before].is_used) {
    remove(before);
    freed.offset = nodes_[before].offset;
    freed.units += nodes_[before].units;
    freed.before = nodes_[before].before;
    if (freed.before != kNone) nodes_[freed.before].after = allocation.node;
    drop_node(before);
  }
  if (const std::uint32_t after = freed.after; after != kNone && !nodes_[after].is_used) {
    remove(after);
    freed.units += nodes_[after].units;
    freed.after = nodes_[after].after;
    if (freed.after != kNone) nodes_[freed.after].before = allocation.node;
    drop_node(after);
  }
  insert(allocation.node);
}

std::uint32_t OffsetAllocator::free_units() {
  const std::lock_guard lock(mutex_);
  return free_units_;
}

const char* OffsetAllocator::validate() {
  const std::lock_guard lock(mutex_);
  std::vector<bool> is_listed(nodes_.size());
  std::uint32_t listed = 0;
  for (std::uint32_t bin = 0; bin < kBins; ++bin) {
    const bool has_bit = (bins_[bin / 8] >> (bin % 8) & 1u) != 0;
    if (has_bit != (heads_[bin] != kNone)) return "(2): a bin's bit";
    if (has_bit && (groups_with_bins_ >> (bin / 8) & 1u) == 0) return "(2): a group's bit";
    for (std::uint32_t node = heads_[bin]; node != kNone; node = nodes_[node].next) {
      if (nodes_[node].is_used || bin_below(nodes_[node].units) != bin)
        return "(3): a node in the wrong bin";
      is_listed[node] = true;
      ++listed;
    }
  }
  for (std::uint32_t group = 0; group < kBins / 8; ++group) {
    if (bins_[group] == 0 && (groups_with_bins_ >> group & 1u) != 0) return "(2): a group's bit";
  }
  std::uint32_t first = 0;
  while (first < nodes_.size() && !(is_listed[first] || nodes_[first].is_used)) ++first;
  while (first < nodes_.size() && nodes_[first].before != kNone) first = nodes_[first].before;
  std::uint32_t end = 0, free_sum = 0, frees = 0;
  bool was_free = false;
  for (std::uint32_t node = first; node != kNone; node = nodes_[node].after) {
    if (nodes_[node].offset != end) return "(1): a gap or an overlap";
    if (!nodes_[node].is_used) {
      if (was_free) return "(1): two free neighbours";
      if (!is_listed[node]) return "(3): a free node in no bin";
      free_sum += nodes_[node].units;
      ++frees;
    }
    was_free = !nodes_[node].is_used;
    end += nodes_[node].units;
  }
  if (end != units_) return "(1): the range is not covered";
  if (frees != listed) return "(3): a bin lists what is not in the range";
  return free_sum == free_units_ ? nullptr : "the free units are miscounted";
}

}  // namespace ashlar::bench
