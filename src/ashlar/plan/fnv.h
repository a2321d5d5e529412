// 64-bit FNV-1a (Fowler, Noll, Vo; public domain constants), for numbers and bytes.
//
// Purpose: the hash of a problem and the checksum of a plan file, the same on every machine:
// numbers go in with their lowest byte first. Against damage and mix-ups, not against somebody who
// wants two problems to hash the same.
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
