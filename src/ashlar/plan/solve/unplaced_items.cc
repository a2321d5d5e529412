#include <ashlar/plan/solve/unplaced_items.h>

#include <algorithm>
#include <bit>
#include <numeric>

namespace ashlar::inline v0::plan::solve {
namespace {

constexpr std::uint32_t kNowhereInOrder = 0xffffffffu;
/// The bound on looks for the best item, per item: instances that were not made to defeat the tree
/// stay far below.
constexpr std::uint64_t kLooksMax = 1000;

}  // namespace

UnplacedItems::UnplacedItems(const Items& items, const std::vector<std::int32_t>& ranks,
                             bool picks_best)
    : items_(items),
      picks_best_(picks_best),
      steps_end_(kLooksMax * items.size()),
      place_(items.size(), kNowhereInOrder),
      begin_(items.sections() + 1, 0) {
  const auto is_pinned = [&](ItemIndex i) { return items.items[i].pinned != kNotPinned; };
  for (ItemIndex i = 0; i < items.size(); ++i) {
    if (!is_pinned(i)) begin_[items.items[i].first + 1] += 1;
  }
  std::partial_sum(begin_.begin(), begin_.end(), begin_.begin());
  order_.resize(begin_.back());
  std::vector<std::uint32_t> next(begin_.begin(), begin_.end() - 1);
  for (ItemIndex i = 0; i < items.size(); ++i) {
    if (!is_pinned(i)) order_[next[items.items[i].first]++] = i;
  }
  for (Section s = 0; s < items.sections(); ++s) {
    std::sort(order_.begin() + begin_[s], order_.begin() + begin_[s + 1],
              [&](ItemIndex a, ItemIndex b) {
                if (ranks[a] != ranks[b]) return ranks[a] > ranks[b];
                const Units height_a = items.items[a].height, height_b = items.items[b].height;
                return height_a != height_b ? height_a > height_b : a < b;
              });
  }
  leaves_ = std::bit_ceil(std::max(static_cast<std::uint32_t>(order_.size()), 1u));
  nodes_.resize(std::size_t{2} * leaves_);
  ranks_.resize(order_.size());
  for (std::uint32_t k = 0; k < order_.size(); ++k) {
    place_[order_[k]] = k;
    ranks_[k] = ranks[order_[k]];
    nodes_[leaves_ + k] = {items.items[order_[k]].last, ranks_[k]};
  }
  for (std::size_t node = leaves_; node-- > 1;) nodes_[node] = joined(node);
}

ItemIndex UnplacedItems::take(Section left, Section right) {
  const std::uint32_t begin = begin_[left], end = begin_[right];
  if (begin == end) return kNoItem;
  const bool looks_for_best = picks_best_ && steps_ < steps_end_;
  const std::uint32_t place =
      looks_for_best ? best_within(begin, end, right) : first_within(begin, end, right);
  if (place >= end) return kNoItem;
  set(place, Node{});
  return order_[place];
}

void UnplacedItems::put(ItemIndex index) {
  const std::uint32_t place = place_[index];
  set(place, Node{items_.items[index].last, ranks_[place]});
}

UnplacedItems::Node UnplacedItems::joined(std::size_t node) const {
  const Node &a = nodes_[2 * node], &b = nodes_[2 * node + 1];
  return {std::min(a.least_end, b.least_end), std::max(a.best_rank, b.best_rank)};
}

void UnplacedItems::set(std::uint32_t place, Node value) {
  std::size_t node = std::size_t{leaves_} + place;
  nodes_[node] = value;
  for (node /= 2; node >= 1; node /= 2) {
    const Node both = joined(node);
    if (nodes_[node].least_end == both.least_end && nodes_[node].best_rank == both.best_rank) break;
    nodes_[node] = both;
  }
}

/// The first place from `begin` on whose item ends by `right`; `end` or beyond if there is none.
std::uint32_t UnplacedItems::first_within(std::uint32_t begin, std::uint32_t end, Section right) {
  std::size_t node = std::size_t{leaves_} + begin;
  while (nodes_[node].least_end > right) {
    while ((node & 1) != 0) node /= 2;  // up, as long as the node is a right child
    if (node == 0) return end;
    node += 1;
    steps_ += 1;
    if (std::has_single_bit(node)) return end;  // past the last leaf
  }
  while (node < leaves_) {
    node *= 2;
    if (nodes_[node].least_end > right) node += 1;
  }
  return static_cast<std::uint32_t>(node - leaves_);
}

/// The place in [begin, end) of the best item that ends by `right`; `end` if there is none. Visits
/// only nodes that may hold a better one.
std::uint32_t UnplacedItems::best_within(std::uint32_t begin, std::uint32_t end, Section right) {
  std::uint32_t best = end;
  std::int32_t rank = kWorst;
  // Starts at the lowest node above all the places.
  const auto height = static_cast<int>(std::bit_width((leaves_ + begin) ^ (leaves_ + end - 1)));
  const std::uint32_t top = (leaves_ + begin) >> height;
  visits_.assign(1, {top, (top << height) - leaves_, ((top + 1) << height) - leaves_});
  while (!visits_.empty()) {
    const Visit at = visits_.back();
    visits_.pop_back();
    steps_ += 1;
    const Node& node = nodes_[at.node];
    if (at.last <= begin || at.first >= end || node.least_end > right || node.best_rank <= rank)
      continue;
    if (at.node >= leaves_) {
      rank = node.best_rank;
      best = at.first;
      continue;
    }
    const std::uint32_t middle = at.first + (at.last - at.first) / 2;
    const Visit halves[] = {{2 * at.node, at.first, middle}, {2 * at.node + 1, middle, at.last}};
    const bool right_is_better =
        nodes_[std::size_t{2} * at.node + 1].best_rank > nodes_[std::size_t{2} * at.node].best_rank;
    visits_.push_back(halves[right_is_better ? 0 : 1]);  // the better half is on top
    visits_.push_back(halves[right_is_better ? 1 : 0]);
  }
  return best;
}

}  // namespace ashlar::inline v0::plan::solve
