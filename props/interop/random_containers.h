// Random workloads of containers over a memory resource, beside the same over the library's own pools.
//
// Thread safety: each call uses its own containers.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>

#include "spec/ops/random.h"

namespace ashlar::props {

/// Containers of every sort, filled by the same random steps whichever resource they have. `Library` names the
/// containers, their Resource and its Pool; kMovesStrings: one may be moved onto another.
template <class Library>
class RandomContainers {
 public:
  using Number = std::uint64_t;

  explicit RandomContainers(typename Library::Resource* resource)
      : numbers_(resource),
        names_(resource),
        index_(resource),
        queue_(resource),
        chain_(resource),
        ordered_(resource) {}

  void step(spec::Random& random) {
    const Number n = random.below(1000);
    switch (random.below(10)) {
      case 0: numbers_.insert(numbers_.end(), static_cast<std::size_t>(n), n); break;
      case 1: numbers_.resize(numbers_.size() / 2); break;
      case 2:
        names_.emplace_back(static_cast<std::size_t>(n), static_cast<char>('a' + n % 26));
        break;
      case 3:
        if (!names_.empty()) {
          const std::size_t at = Library::kMovesStrings ? n % names_.size() : names_.size() - 1;
          names_.erase(names_.begin() + static_cast<std::ptrdiff_t>(at));
        }
        break;
      case 4: index_[n] += n; break;
      case 5: index_.erase(n); break;
      case 6: queue_.push_back(n); break;
      case 7:
        if (!queue_.empty()) queue_.pop_front();
        break;
      case 8:
        chain_.push_front(n);
        if (n % 3 == 0) chain_.clear();
        break;
      default: ordered_.insert(n);
    }
    if (random.below(50) != 0) return;
    typename Library::template Vector<Number> copy(numbers_, numbers_.get_allocator());
    copy.shrink_to_fit();
    numbers_.swap(copy);
  }
  friend bool operator==(const RandomContainers& a, const RandomContainers& b) {
    return a.numbers_ == b.numbers_ && a.names_ == b.names_ && a.index_ == b.index_ &&
           a.queue_ == b.queue_ && a.chain_ == b.chain_ && a.ordered_ == b.ordered_;
  }

 private:
  typename Library::template Vector<Number> numbers_;
  typename Library::template Vector<typename Library::String> names_;
  typename Library::template Map<Number, Number> index_;
  typename Library::template Deque<Number> queue_;
  typename Library::template List<Number> chain_;
  typename Library::template Set<Number> ordered_;
};

/// The same steps over `ours` and over the library's own pools leave the same contents.
template <class Library>
void expect_equal_contents(typename Library::Resource* ours, std::uint64_t seed, int steps) {
  typename Library::Pool theirs;
  RandomContainers<Library> subject(ours), peer(&theirs);
  spec::Random for_subject(seed), for_peer(seed);
  for (int i = 0; i < steps; ++i) {
    subject.step(for_subject);
    peer.step(for_peer);
  }
  EXPECT_TRUE(subject == peer) << "seed " << seed;
}

}  // namespace ashlar::props
