// WordHash: FNV-1a over whole words, for comparing two runs word by word.
//
// Thread safety: none.
#pragma once

#include <cstdint>

namespace ashlar::spec {

class WordHash {
 public:
  void add(std::uint64_t word) { value_ = (value_ ^ word) * 0x100000001b3u; }
  std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0xcbf29ce484222325u;
};

}  // namespace ashlar::spec
