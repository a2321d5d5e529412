// Problems whose least peak is known, because they are cut from a full rectangle: every byte is live
// at every time.
//
// Purpose: larger problems than brute force can solve, which is nine buffers or so. A proof that such
// a problem does not fit its rectangle is wrong.
// Thread safety: pure functions of the generator's state.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include <ashlar/plan/problem.h>

#include "spec/ops/random.h"

namespace ashlar {

struct Packing {
  plan::Problem problem;
  std::vector<Bytes> offsets;  ///< a plan of it
  Bytes peak;                  ///< the plan's, and the least possible
};

/// Cuts a rectangle of `times` by `bytes` in two, again and again, into about `buffers` pieces.
class PackingMaker {
 public:
  PackingMaker(spec::Random* random, std::uint64_t times, std::uint64_t bytes, std::size_t buffers)
      : random_(*random) {
    packing_.peak = Bytes{bytes};
    boxes_ = {{0, times, 0, bytes}};
    for (std::size_t tries = 0; boxes_.size() < buffers && tries < 8 * buffers; ++tries)
      cut(random_.below(boxes_.size()));
    for (const Box& box : boxes_) {
      plan::Buffer buffer;
      buffer.life = {static_cast<plan::Time>(box.first), static_cast<plan::Time>(box.last)};
      buffer.size = Bytes{box.top - box.bottom};
      packing_.problem.buffers.push_back(buffer);
      packing_.offsets.emplace_back(box.bottom);
    }
  }

  /// Adds conditions that the plan meets: alignments, pins, groups, and gaps.
  void add_features() {
    join_over_gaps();
    plan::Problem& problem = packing_.problem;
    for (std::size_t b = 0; b < problem.buffers.size(); ++b) {
      const Bytes offset = packing_.offsets[b];
      const std::uint64_t divisor = offset == Bytes{} ? 8 : offset.count() & (~offset.count() + 1);
      if (random_.one_in(6))
        problem.buffers[b].alignment = Bytes{std::min<std::uint64_t>(divisor, 8)};
      if (random_.one_in(8)) problem.buffers[b].pinned = offset;
      if (random_.one_in(8)) join_group(b);
    }
  }

  Packing take() { return std::move(packing_); }

 private:
  struct Box {
    std::uint64_t first, last, bottom, top;
  };

  void cut(std::size_t index) {
    Box& box = boxes_[index];
    Box other = box;
    if (random_.one_in(2)) {
      if (box.last - box.first < 2) return;
      box.last = other.first = box.first + 1 + random_.below(box.last - box.first - 1);
    } else {
      if (box.top - box.bottom < 2) return;
      box.top = other.bottom = box.bottom + 1 + random_.below(box.top - box.bottom - 1);
    }
    boxes_.push_back(other);
  }

  // Makes one buffer with a gap of two buffers of equal size and offset, one after the other.
  void join_over_gaps() {
    plan::Problem& problem = packing_.problem;
    for (std::size_t a = 0; a < problem.buffers.size(); ++a) {
      for (std::size_t b = 0; b < problem.buffers.size(); ++b) {
        plan::Buffer& early = problem.buffers[a];
        const plan::Buffer& late = problem.buffers[b];
        const bool is_same = early.size == late.size && packing_.offsets[a] == packing_.offsets[b];
        if (!is_same || early.life.upper >= late.life.lower || early.gaps_begin != early.gaps_end ||
            late.gaps_begin != late.gaps_end) {
          continue;
        }
        early.gaps_begin = static_cast<std::uint32_t>(problem.gaps.size());
        problem.gaps.push_back({early.life.upper, late.life.lower});
        early.gaps_end = static_cast<std::uint32_t>(problem.gaps.size());
        early.life.upper = late.life.upper;
        problem.buffers.erase(problem.buffers.begin() + static_cast<std::ptrdiff_t>(b));
        packing_.offsets.erase(packing_.offsets.begin() + static_cast<std::ptrdiff_t>(b));
        break;
      }
    }
  }

  // Puts buffer b into a group with another one at its offset, if there is one.
  void join_group(std::size_t b) {
    plan::Problem& problem = packing_.problem;
    for (std::size_t other = 0; other < b; ++other) {
      if (packing_.offsets[other] != packing_.offsets[b]) continue;
      std::uint32_t& group = problem.buffers[other].group;
      if (group == plan::kNoGroup) {
        group = static_cast<std::uint32_t>(problem.groups.size());
        problem.groups.emplace_back();
      }
      problem.buffers[b].group = group;
      return;
    }
  }

  spec::Random& random_;
  std::vector<Box> boxes_;
  Packing packing_;
};

}  // namespace ashlar
