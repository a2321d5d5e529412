#include "spec/replay/replay_model.h"

#include <algorithm>

namespace ashlar::spec {

ReplayModel::ReplayModel(const replay::Recording& recording, const std::vector<Bytes>& offsets) {
  std::size_t buffer = 0;
  std::vector<std::pair<plan::Time, Event>> row;
  for (std::uint32_t a = 0; a < recording.allocations.size(); ++a) {
    const replay::RecordedAllocation& allocation = recording.allocations[a];
    planned_.push_back({allocation.size, std::nullopt, 0});
    row.emplace_back(allocation.allocated, Event{false, a});
    if (!allocation.is_managed()) continue;
    planned_[a].offset = offsets[buffer++];
    row.emplace_back(allocation.freed, Event{true, a});
  }
  std::sort(row.begin(), row.end(),
            [](const auto& one, const auto& other) { return one.first < other.first; });
  for (const auto& [time, event] : row) {
    if (event.is_free) planned_[event.allocation].free_at = row_.size();
    row_.push_back(event);
  }
}

bool ReplayModel::is_late(const Block& block) const {
  return !block.is_held && (block.run != run_ || planned_[block.allocation].free_at < cursor_);
}

void ReplayModel::count_late() {
  for (Block& block : blocks_) {
    if (!is_late(block) || block.was_late) continue;
    block.was_late = true;
    ++counts_.late;
  }
}

bool ReplayModel::is_barred(const Planned& planned) const {
  return std::any_of(blocks_.begin(), blocks_.end(), [&](const Block& block) {
    const Planned& other = planned_[block.allocation];
    return (block.is_held || is_late(block)) && *other.offset < *planned.offset + planned.size &&
           *planned.offset < *other.offset + other.size;
  });
}

std::optional<Bytes> ReplayModel::allocate(Bytes size, bool is_own_stream) {
  if (!is_own_stream) {
    ++counts_.other_stream;
    return std::nullopt;
  }
  std::vector<std::size_t> ahead;  // the next allocations
  for (std::size_t e = cursor_; e < row_.size() && ahead.size() < replay::kReplayLookAhead; ++e) {
    if (!row_[e].is_free) ahead.push_back(e);
  }
  const auto taken = std::find_if(ahead.begin(), ahead.end(), [&](std::size_t e) {
    return planned_[row_[e].allocation].size == size;
  });
  if (taken == ahead.end()) {
    ++(ahead.empty() ? counts_.past_end : counts_.unexpected_size);
    return std::nullopt;
  }
  counts_.skipped += static_cast<std::uint64_t>(taken - ahead.begin());
  const std::uint32_t allocation = row_[*taken].allocation;
  cursor_ = *taken + 1;
  count_late();
  if (!planned_[allocation].offset) {
    ++counts_.unmanaged;
  } else if (!has_segment_) {
    ++counts_.no_segment;
  } else if (is_barred(planned_[allocation])) {
    ++counts_.in_use;
  } else {
    ++counts_.served;
    blocks_.push_back({allocation, run_, false, false, false});
    return planned_[allocation].offset;
  }
  return std::nullopt;
}

ReplayModel::Block* ReplayModel::live_at(std::optional<Bytes> offset) {
  for (Block& block : blocks_) {
    if (!block.is_held && planned_[block.allocation].offset == offset) return &block;
  }
  return nullptr;
}

bool ReplayModel::is_held_at(std::optional<Bytes> offset) const {
  return std::any_of(blocks_.begin(), blocks_.end(), [&](const Block& block) {
    return block.is_held && planned_[block.allocation].offset == offset;
  });
}

Code ReplayModel::free(std::optional<Bytes> offset) {
  Block* const block = offset ? live_at(offset) : nullptr;
  if (block == nullptr) {
    ++counts_.refused;
    return offset && is_held_at(offset) ? Code::kDoubleFree : Code::kUnknownPointer;
  }
  if (!is_late(*block)) {
    // Is this the next event, apart from recorded frees of blocks that are not live?
    const std::size_t at = planned_[block->allocation].free_at;
    const bool is_next = std::none_of(
        row_.begin() + static_cast<std::ptrdiff_t>(cursor_),
        row_.begin() + static_cast<std::ptrdiff_t>(at), [&](const Event& event) {
          if (!event.is_free) return true;
          return std::any_of(blocks_.begin(), blocks_.end(), [&](const Block& other) {
            return other.allocation == event.allocation && !other.is_held && !is_late(other);
          });
        });
    if (is_next) {
      cursor_ = at + 1;
    } else {
      ++counts_.early_frees;
    }
  }
  if (block->is_used) {
    block->is_held = true;
  } else {
    blocks_.erase(blocks_.begin() + (block - blocks_.data()));
  }
  return Code::kOk;
}

ReplayModel::Use ReplayModel::use(std::optional<Bytes> offset, bool is_own_stream) {
  if (offset && live_at(offset) != nullptr) return {Code::kOk, !is_own_stream};
  ++counts_.refused;
  return {offset && is_held_at(offset) ? Code::kDoubleFree : Code::kUnknownPointer, false};
}

void ReplayModel::used(Bytes offset) {
  live_at(offset)->is_used = true;
  ++counts_.uses;
}

bool ReplayModel::rewind() {
  counts_.skipped += static_cast<std::uint64_t>(
      std::count_if(row_.begin() + static_cast<std::ptrdiff_t>(cursor_), row_.end(),
                    [](const Event& event) { return !event.is_free; }));
  cursor_ = 0;
  ++run_;
  count_late();
  const bool is_live = std::any_of(blocks_.begin(), blocks_.end(),
                                   [](const Block& block) { return !block.is_held; });
  const bool is_managed = std::any_of(planned_.begin(), planned_.end(),
                                      [](const Planned& one) { return one.offset.has_value(); });
  return is_managed && !is_live && (!blocks_.empty() || !has_segment_);
}

void ReplayModel::set_segment(bool has_segment) {
  has_segment_ = has_segment;
  blocks_.clear();
}

}  // namespace ashlar::spec
