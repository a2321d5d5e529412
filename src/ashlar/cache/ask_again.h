// When to ask again whether something is done that was not done when it was asked last.
//
// Purpose: what is stuck for long is asked ever more rarely, so that it costs the calls that ask
// hardly anything; what is done is still seen within DELAY_MAX of them.
// Thread safety: none.
// Source: exponential back-off, as in Metcalfe and Boggs 1976, without the random part.
#pragma once

#include <algorithm>
#include <cstdint>

namespace ashlar::inline v0::cache {

template <std::uint64_t DELAY_MAX>
class AskAgain {
 public:
  /// Is it due at call number `now`?
  bool is_due(std::uint64_t now) const noexcept { return now >= due_; }
  /// It was asked at call number `now`, and was not done.
  void postpone(std::uint64_t now) noexcept {
    due_ = now + delay_;
    delay_ = std::min(2 * delay_, DELAY_MAX);
  }
  /// Asked at the next call.
  void reset() noexcept { *this = AskAgain{}; }

 private:
  friend struct CachePeer;
  std::uint64_t due_ = 0;
  std::uint64_t delay_ = 1;
};

}  // namespace ashlar::inline v0::cache
