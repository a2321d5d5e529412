// Random: SplitMix64 (Steele, Lea, Flood 2014; public domain constants). Small, and it gives the
// same numbers on every compiler and machine.
//
// Thread safety: none; plain value.
#pragma once

#include <cstdint>

namespace ashlar::spec {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  /// 0 .. n - 1. REQUIRES: n > 0.
  std::uint64_t below(std::uint64_t n) { return next() % n; }
  bool one_in(std::uint64_t n) { return below(n) == 0; }

 private:
  std::uint64_t state_;
};

}  // namespace ashlar::spec
