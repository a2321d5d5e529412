// The rare part of the free index: a change of its window.
#include <ashlar/block/free_index.h>

#include <new>
#include <utility>

namespace ashlar::inline v0::block {

bool FreeIndex::reserve_window(std::uint64_t position, std::uint64_t size) noexcept {
  if (wide_ != nullptr || near_.is_empty() || near_.contains(position, position + (size - 1)))
    return true;
  HostTable<FitClasses> wide = make_host_table<FitClasses>(1);
  if (wide == nullptr) return false;
  ::new (static_cast<void*>(wide.get())) FitClasses(granule_bits_);
  wide[0].set_widest_window();
  wide_ = std::move(wide);
  return true;
}

void FreeIndex::extend_window(std::uint64_t position, std::uint64_t size) noexcept {
  const std::uint64_t last = position + (size - 1);
  const bool is_first = span_last_ == 0;
  span_base_ = is_first ? position : std::min(span_base_, position);
  span_last_ = std::max(span_last_, last);
  if (!is_first && near_.contains(position, last)) return;
  set_move(Move::kToWide);
  end_move();
}

/// The first of `found`, which may be kNone or kOthers, and the first wide record at that place or
/// behind it.
std::uint32_t FreeIndex::first_with_wide(const Records& records, std::uint32_t found,
                                         FitClasses::Place place) const noexcept {
  const std::uint32_t wide = wide_[0].lower_bound(trees_, place);
  if (found == kNone || found == FitClasses::kOthers) return wide;
  return wide != kNone && precedes(records, wide, found) ? wide : found;
}

std::uint32_t FreeIndex::lower_bound_while_moving(const Records& records, std::uint32_t found,
                                                  std::uint64_t size) const noexcept {
  // The first place of a size is the same in every window.
  const FitClasses::Place place = near_.place_of(size, 0);
  return first_with_latest(records, first_with_wide(records, found, place), size);
}

std::uint32_t FitClasses::first_behind(const Trees& trees, const Records& records,
                                       std::uint64_t size, std::uint64_t position) const noexcept {
  if (!contains(position, position)) return lower_bound(trees, place_behind(size, position));
  // The place of a block that is gone may be that of another one now, which overlaps it and lies
  // before it or behind it.
  const std::uint32_t found = lower_bound(trees, place_of(size, position - window_base_));
  if (found == kNone || found == kOthers || records.size(found) != size ||
      records.position(found) > position) {
    return found;
  }
  return lower_bound(trees, place_behind(records, found));
}

std::uint32_t FreeIndex::first_behind(const Records& records, std::uint64_t size,
                                      std::uint64_t position) const noexcept {
  const auto first_of = [&records](std::uint32_t a, std::uint32_t b) {
    if (a == kNone || b == kNone) return a == kNone ? b : a;
    return precedes(records, a, b) ? a : b;
  };
  std::uint32_t found = near_.first_behind(trees_, records, size, position);
  if (move_ != Move::kSettled) {
    if (found == FitClasses::kOthers) found = kNone;
    found = first_of(found, wide_[0].first_behind(trees_, records, size, position));
  }
  const bool is_latest_behind =
      latest_ != kNone && (records.size(latest_) > size ||
                           (records.size(latest_) == size && records.position(latest_) > position));
  return is_latest_behind ? first_of(found, latest_) : found;
}

/// If the classes that records move out of are empty: begins to move back, or settles.
void FreeIndex::end_move() noexcept {
  const bool is_wide_empty = wide_ == nullptr || wide_[0].is_empty();
  if (move_ == Move::kToWide && near_.is_empty()) {
    near_.set_window(span_base_, span_last_);
    set_move(Move::kToNear);
  }
  if (move_ == Move::kToNear && is_wide_empty) set_move(Move::kSettled);
}

/// Inserts a record, and moves a few others on their way.
void FreeIndex::insert_while_moving(Records& records, std::uint32_t index) noexcept {
  const bool is_to_wide = move_ == Move::kToWide;
  FitClasses& from = is_to_wide ? near_ : wide_[0];
  FitClasses& to = is_to_wide ? wide_[0] : near_;
  const unsigned mark = is_to_wide ? kWideMark : 0;
  to.insert(trees_, records, index, mark);
  for (unsigned moved = 0; moved < kMovedAtOnce && !from.is_empty(); ++moved) {
    const std::uint32_t next = from.any(trees_);
    remove_from_tree(records, next);
    to.insert(trees_, records, next, mark);
  }
  end_move();
}

/// The wide classes keep no empty trees, because most of the time nothing is in them.
void FreeIndex::on_removed_from_wide(unsigned size_class, bool is_empty) noexcept {
  wide_[0].on_removed(size_class, is_empty);
  std::uint32_t& root = wide_[0].root(size_class);
  if (is_empty && root != kNoNode) trees_.drop_empty(root);
}

}  // namespace ashlar::inline v0::block
