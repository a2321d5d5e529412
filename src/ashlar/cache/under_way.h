// Calls under way, counted so that a thread can wait for those that began before a moment, while
// others go on beginning.
//
// Thread safety: with std::atomic<unsigned> any thread, and one at a time calls begin_phase(); with
// unsigned none.
// Source: two counters, one for each phase, as in sleepable read-copy-update (P. McKenney, 2006,
// lwn.net/Articles/202847).
//
// Invariant:
//   (1) when a phase begins, all calls of the one before the last have ended, because
//       begin_phase() is called again only after has_earlier() returned false.
#pragma once

namespace ashlar::inline v0::cache {

template <class Count>
class UnderWay {
 public:
  /// A call begins. Returns its phase, for end().
  unsigned begin() noexcept {
    for (;;) {
      const unsigned phase = phase_;
      ++counts_[phase];
      // Read again: if a phase began in between, whoever began it may have looked before the call
      // was counted, and the next one would not wait for it (invariant 1).
      if (phase_ == phase) return phase;
      --counts_[phase];
    }
  }
  void end(unsigned phase) noexcept { --counts_[phase]; }
  /// Is any call under way?
  bool any() const noexcept { return counts_[0] != 0 || counts_[1] != 0; }

  /// Calls that begin from now on are later ones.
  void begin_phase() noexcept { phase_ = 1 - phase_; }
  /// Is a call under way that began before the phase?
  bool has_earlier() const noexcept { return counts_[1 - phase_] != 0; }

 private:
  Count counts_[2] = {};
  Count phase_{0};
};

}  // namespace ashlar::inline v0::cache
