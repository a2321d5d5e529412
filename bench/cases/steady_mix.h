// The steady random mix: N live blocks; again and again one is picked at random, freed, and
// replaced by a new size.
//
// Sizes are log-uniform over 512 B .. 16 MiB (mean 1.6 MiB), or .. 64 MiB (mean 5.7 MiB), drawn
// from a table of 4096 that is the same for every adapter, N and machine; so are the picks. Sizes
// are not rounded to anything: real requests are not either.
//
// Handles are prefetched or plain. Prefetched: the next pick's handle is fetched a turn ahead. Who
// frees a block has just used what held its address, and a miss in the harness's own array of 10^5
// handles is not the allocator's. Plain: the handle is loaded when its block is freed.
// Thread safety: none.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "spec/ops/random.h"

namespace ashlar::bench {

inline constexpr double kMixSizeMin = 512;
inline constexpr double kMixSizeMax = 16 << 20;
inline constexpr double kMixLargeSizeMax = 64 << 20;

enum class Handles { kPrefetched, kPlain };

class SizeTable {
 public:
  explicit SizeTable(double size_max, double size_min = kMixSizeMin) {
    spec::Random random(20240607);
    for (std::uint32_t& size : sizes_) {
      const double part = static_cast<double>(random.next() >> 11) * 0x1p-53;
      size =
          static_cast<std::uint32_t>(size_min * std::exp2(part * std::log2(size_max / size_min)));
    }
  }
  std::uint32_t at(std::uint64_t number) const { return sizes_[number % sizes_.size()]; }

 private:
  std::array<std::uint32_t, 4096> sizes_;
};

template <class Adapter, Handles kHandles = Handles::kPrefetched>
class Mix {
 public:
  /// Fills `live` blocks and turns every one over about three times, so that what is timed is the
  /// steady state.
  Mix(Adapter& adapter, std::size_t live, unsigned stream, std::uint64_t seed,
      double size_max = kMixSizeMax)
      : adapter_(adapter), table_(size_max), random_(seed), stream_(stream), blocks_(live) {
    for (auto& block : blocks_) block = adapter_.allocate(table_.at(random_.next()), stream_);
    next_ = random_.next();
    for (std::size_t i = 0; i < 3 * live; ++i) turn();
  }
  ~Mix() {
    for (auto& block : blocks_) adapter_.free(block);
  }
  Mix(const Mix&) = delete;
  Mix& operator=(const Mix&) = delete;

  /// One free and one allocation.
  void turn() {
    const std::uint64_t number = next_;
    next_ = random_.next();
    if constexpr (kHandles == Handles::kPrefetched) __builtin_prefetch(&blocks_[place(next_)]);
    auto& block = blocks_[place(number)];
    adapter_.free(block);
    block = adapter_.allocate(table_.at(number), stream_);
  }

 private:
  /// The high half scaled to the count: a modulo would cost as much as an allocator's bitmap.
  std::size_t place(std::uint64_t number) const {
    return static_cast<std::size_t>(((number >> 32) * blocks_.size()) >> 32);
  }

  Adapter& adapter_;
  SizeTable table_;
  spec::Random random_;
  std::uint64_t next_ = 0;
  unsigned stream_;
  std::vector<typename Adapter::Handle> blocks_;
};

}  // namespace ashlar::bench
