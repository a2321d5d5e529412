// A bijection of 64-bit words that looks random. Pseudo-random choices come from it, so that they
// are equal on every machine. `mix(hash + word)` is a hash after one more word.
//
// Source: the finalizer of MurmurHash3 (A. Appleby, public domain).
#pragma once

#include <cstdint>

namespace ashlar::inline v0 {

constexpr std::uint64_t mix(std::uint64_t word) noexcept {
  word += 0x9e3779b97f4a7c15u;
  word = (word ^ word >> 33) * 0xff51afd7ed558ccdu;
  word = (word ^ word >> 33) * 0xc4ceb9fe1a85ec53u;
  return word ^ word >> 33;
}

}  // namespace ashlar::inline v0
