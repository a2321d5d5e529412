#include <ashlar/replay/validation.h>

#include <algorithm>

namespace ashlar::inline v0::replay {
namespace {

using Kind = Difference::Kind;
using Events = std::vector<RecordedEvent>;

/// The kind of difference between two events of one number, and its allocation. Null: that run has
/// ended.
std::pair<Kind, std::uint32_t> difference_at(const RecordedEvent* recorded,
                                             const RecordedEvent* run) {
  if (run != nullptr && run->is_free) return {Kind::kFreedEarly, run->allocation};
  if (recorded != nullptr && recorded->is_free) return {Kind::kFreedLate, recorded->allocation};
  if (recorded == nullptr) return {Kind::kExtraAllocation, run->allocation};
  if (run == nullptr) return {Kind::kMissingAllocation, recorded->allocation};
  return {Kind::kSize, run->allocation};
}

Bytes size_in(const Recording& recording, std::uint32_t allocation) {
  return allocation < recording.allocations.size() ? recording.allocations[allocation].size
                                                   : Bytes{};
}

}  // namespace

std::optional<Difference> first_difference(const Recording& recorded, const Recording& run) {
  const Events a = events_of(recorded);
  const Events b = events_of(run);
  const auto found = [&](Kind kind, std::uint32_t allocation, std::size_t event) {
    return Difference{kind, allocation, static_cast<plan::Time>(event),
                      size_in(recorded, allocation), size_in(run, allocation)};
  };
  for (std::size_t e = 0; e < std::max(a.size(), b.size()); ++e) {
    const RecordedEvent* const one = e < a.size() ? &a[e] : nullptr;
    const RecordedEvent* const other = e < b.size() ? &b[e] : nullptr;
    // All earlier events agree, so allocations have the same numbers in both.
    const bool agree = one != nullptr && other != nullptr && *one == *other &&
                       size_in(recorded, one->allocation) == size_in(run, one->allocation);
    if (agree) continue;
    const std::pair<Kind, std::uint32_t> what = difference_at(one, other);
    return found(what.first, what.second, e);
  }
  for (std::uint32_t k = 0; k < recorded.allocations.size(); ++k) {
    if (recorded.allocations[k].is_used_elsewhere == run.allocations[k].is_used_elsewhere) continue;
    return found(Kind::kUsedElsewhere, k,
                 static_cast<std::size_t>(recorded.allocations[k].allocated));
  }
  return std::nullopt;
}

std::string text_of(const Difference& difference) {
  std::string which = "event " + std::to_string(difference.event) + ": allocation " +
                      std::to_string(difference.allocation);
  const std::string found = std::to_string(difference.found.count()) + " bytes";
  const std::string recorded = std::to_string(difference.recorded.count()) + " bytes";
  switch (difference.kind) {
    case Kind::kSize: return which + " has " + found + "; recorded with " + recorded;
    case Kind::kExtraAllocation: return which + ", of " + found + ", is one more than was recorded";
    case Kind::kMissingAllocation: return which + ", of " + recorded + ", was not asked for";
    case Kind::kFreedEarly: return which + ", of " + found + ", is freed earlier than recorded";
    case Kind::kFreedLate: return which + ", of " + recorded + ", is not freed here, as recorded";
    case Kind::kUsedElsewhere:
      return which + ", of " + found + ", is used by another stream in one run only";
  }
  return which;
}

}  // namespace ashlar::inline v0::replay
