// Rng: the simulator's source of choices, the same on every compiler and machine (C10).
//
// Source: splitmix64 (Steele, Lea, Flood 2014), public domain reference by S. Vigna. Thread safety: none.
#pragma once

#include <cstdint>

namespace ashlar::spec {

class Rng {
 public:
  explicit Rng(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  /// 0..n-1. REQUIRES: n > 0. The small bias of % is of no account here.
  std::uint64_t below(std::uint64_t n) { return next() % n; }

 private:
  std::uint64_t state_;
};

}  // namespace ashlar::spec
