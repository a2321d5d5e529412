#include "spec/plan/placing.h"

#include <algorithm>
#include <map>

#include <ashlar/base/assert.h>
#include <ashlar/base/checked.h>

namespace ashlar::spec {
namespace {

using plan::Buffer;
using plan::Lifetime;
using plan::Problem;

std::vector<Lifetime> lives_of(const Problem& problem, const Buffer& buffer) {
  std::vector<Lifetime> lives{buffer.life};
  for (std::uint32_t g = buffer.gaps_begin; g < buffer.gaps_end; ++g) {
    lives.back().upper = problem.gaps[g].lower;
    lives.push_back({problem.gaps[g].upper, buffer.life.upper});
  }
  return lives;
}

bool must_be_apart(const Problem& problem, const Buffer& a, const Buffer& b) {
  if (a.space != b.space || (a.group != plan::kNoGroup && a.group == b.group)) return false;
  for (const Lifetime& one : lives_of(problem, a)) {
    for (const Lifetime& two : lives_of(problem, b)) {
      if (one.lower < two.upper && two.lower < one.upper) return true;
    }
  }
  return false;
}

std::vector<Placing::Unit> units_of(const Problem& problem) {
  std::vector<Placing::Unit> units;
  std::map<std::uint32_t, std::size_t> unit_of_group;
  for (std::uint32_t b = 0; b < problem.buffers.size(); ++b) {
    const Buffer& buffer = problem.buffers[b];
    const bool is_alone = buffer.group == plan::kNoGroup;
    const std::size_t unit =
        is_alone ? units.size() : unit_of_group.emplace(buffer.group, units.size()).first->second;
    if (unit == units.size()) units.emplace_back();
    units[unit].members.push_back(b);
    units[unit].alignment = std::max(units[unit].alignment, buffer.alignment);
    units[unit].space = buffer.space;
    if (buffer.pinned != plan::kNowhere) units[unit].pinned = buffer.pinned;
  }
  return units;
}

}  // namespace

Placing::Placing(const Problem& problem)
    : problem_(problem),
      units_(units_of(problem)),
      offsets_(problem.buffers.size(), plan::kNowhere) {
  for (const Buffer& a : problem.buffers) {
    std::vector<bool>& row = conflicts_.emplace_back();
    for (const Buffer& b : problem.buffers) row.push_back(&a != &b && must_be_apart(problem, a, b));
  }
  for (std::size_t u = 0; u < units_.size(); ++u) {
    if (units_[u].pinned != plan::kNowhere) set(u, units_[u].pinned);
  }
}

void Placing::set(std::size_t unit, Bytes offset) {
  for (const std::uint32_t b : units_[unit].members) offsets_[b] = offset;
}

Bytes Placing::end_of(std::size_t unit) const {
  Bytes end;
  for (const std::uint32_t b : units_[unit].members)
    end = std::max(end, offsets_[b] + problem_.buffers[b].size);
  return end;
}

// Would `other` at that offset share a byte with `placed`, a buffer that it must be apart from?
bool Placing::in_the_way(std::uint32_t placed, std::uint32_t other, Bytes at) const {
  return conflicts_[placed][other] && offsets_[placed] != plan::kNowhere &&
         offsets_[placed] < at + problem_.buffers[other].size &&
         at < offsets_[placed] + problem_.buffers[placed].size;
}

// A buffer in the way at one offset is in the way at every higher offset below its end, so the next
// offset to try is at that end or above.
void Placing::place(std::size_t unit) {
  ASHLAR_ASSERT(!is_placed(unit), "plan: a unit placed twice");
  Bytes at;
  for (bool is_free = false; !is_free;) {
    is_free = true;
    for (const std::uint32_t member : units_[unit].members) {
      for (std::uint32_t placed = 0; placed < offsets_.size(); ++placed) {
        if (!in_the_way(placed, member, at)) continue;
        at = round_up(offsets_[placed] + problem_.buffers[placed].size, units_[unit].alignment);
        is_free = false;
      }
    }
  }
  set(unit, at);
}

std::vector<Bytes> place_in_order(const Problem& problem, const std::vector<std::size_t>& order) {
  Placing placing(problem);
  for (const std::size_t unit : order) {
    if (!placing.is_placed(unit)) placing.place(unit);
  }
  return placing.offsets();
}

}  // namespace ashlar::spec
