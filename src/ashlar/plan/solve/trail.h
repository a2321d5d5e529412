// An undo log of values in vectors.
//
// Thread safety: none. Cost: O(1) a change, to make and to undo.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <ashlar/plan/solve/items.h>

namespace ashlar::inline v0::plan::solve {

class Trail {
 public:
  /// A moment to return to.
  struct Mark {
    std::size_t units;
    std::size_t words;
  };

  /// Sets in[at] to `value`. REQUIRES: `in` is not resized while the trail holds the change.
  void set(std::vector<Units>& in, std::uint32_t at, Units value) {
    units_.push_back({&in[at], in[at]});
    in[at] = value;
  }
  void set(std::vector<std::uint32_t>& in, std::uint32_t at, std::uint32_t value) {
    words_.push_back({&in[at], in[at]});
    in[at] = value;
  }
  Mark mark() const { return {units_.size(), words_.size()}; }
  /// Undoes every change since `to`, the latest first.
  void undo(Mark to) noexcept {
    for (; units_.size() > to.units; units_.pop_back()) *units_.back().where = units_.back().was;
    for (; words_.size() > to.words; words_.pop_back()) *words_.back().where = words_.back().was;
  }
  /// Forgets every change, without undoing it.
  void clear() {
    units_.clear();
    words_.clear();
  }

 private:
  template <class T>
  struct Change {
    T* where;
    T was;
  };
  std::vector<Change<Units>> units_;
  std::vector<Change<std::uint32_t>> words_;
};

}  // namespace ashlar::inline v0::plan::solve
