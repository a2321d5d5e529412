// 64-bit FNV-1a (Fowler, Noll, Vo; public domain constants), for numbers and bytes.
//
// Purpose: the hash of a problem and the checksum of a plan file. Equal on every machine: numbers are
// hashed lowest byte first. It finds damage and mix-ups; it does not resist an attacker who wants
// two problems with one hash.
// Thread safety: plain value. Cost: one multiplication a byte.
#pragma once

#include <cstdint>
#include <string_view>

namespace ashlar::inline v0::plan {

class Fnv {
 public:
  void add(unsigned char byte) noexcept { value_ = (value_ ^ byte) * 0x100000001b3u; }
  void add(std::uint64_t number) noexcept {
    for (unsigned shift = 0; shift < 64; shift += 8)
      add(static_cast<unsigned char>(number >> shift));
  }
  void add(std::string_view bytes) noexcept {
    for (const char c : bytes) add(static_cast<unsigned char>(c));
  }
  std::uint64_t value() const noexcept { return value_; }

 private:
  std::uint64_t value_ = 0xcbf29ce484222325u;
};

}  // namespace ashlar::inline v0::plan
