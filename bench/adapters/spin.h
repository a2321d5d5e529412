// A driver call that takes its time: spins, since a sleeping caller would leave its core to the
// thread that is measured.
#pragma once

#include <chrono>
#include <cstdint>

namespace ashlar::bench {

inline void spin_for(std::uint32_t microseconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(microseconds);
  while (std::chrono::steady_clock::now() < end) {
  }
}

}  // namespace ashlar::bench
