// Whether a heap's stream is alive, what it captures, and who still refers to it.
//
// Purpose: a heap serves one stream until that stream is dead and nothing refers to it; then it may
// serve another. Threads name a heap without its lock, so the hand-over is a protocol of atomics.
// Thread safety: any thread. Sequentially consistent, except where a member says otherwise.
//
// Invariants:
//   (1) a heap is handed to another stream (kPassing -> kAlive) only while `references` and
//       `recorders` are 0. refer() raises `references` before it reads the state, and
//       begin_passing() sets the state before it reads `references`: one of the two sees the other;
//   (2) the states come in this order: kAlive; kRetired or kLost; kFinished; kPassing. lose_anew()
//       alone goes back: the heap of a released memory pool is kLost, whatever it was;
//   (3) a stream with a parent captures, and is the body of that parent, which captures too. A stream's captures
//       are known by its own heap alone, not by those that memory pools have for it.
#pragma once

#include <atomic>
#include <cstdint>

#include <ashlar/base/assert.h>
#include <ashlar/cache/under_way.h>

namespace ashlar::inline v0::cache {

class StreamHeap;

class StreamLife {
 public:
  enum class State : std::uint8_t {
    kAlive,
    /// announced dead, or its memory pool released: the heap's last event covers all of its work
    kRetired,
    /// destroyed without an announcement, or its last event failed: only a device synchronisation
    /// shows that its work is complete
    kLost,
    kFinished,  ///< dead, and all of its work known complete
    kPassing,   ///< dead and forgotten; about to serve another stream
  };

  State state() const noexcept { return state_.load(); }
  bool is_alive() const noexcept { return state() == State::kAlive; }
  bool is_finished() const noexcept { return state() == State::kFinished; }
  /// For the holder of the heap's lock on the way of a hit: a relaxed read.
  bool is_alive_relaxed() const noexcept {
    return state_.load(std::memory_order_relaxed) == State::kAlive;
  }

  /// A use node names the stream. False, and it does not, if the heap is being handed to another
  /// stream: then the one that was named is dead and all of its work complete.
  bool refer() noexcept {
    references_.fetch_add(1);
    if (state_.load() != State::kPassing) [[likely]]
      return true;
    references_.fetch_sub(1);
    return false;
  }
  void drop_reference() noexcept { references_.fetch_sub(1, std::memory_order_release); }
  std::uint64_t reference_count() const noexcept {
    return references_.load(std::memory_order_acquire);
  }

  /// The threads that record an event on the stream's handle, or ask whom it names.
  UnderWay<std::atomic<unsigned>>& recorders() noexcept { return recorders_; }
  bool is_recording() const noexcept { return recorders_.any(); }

  // Captures; changed by one thread at a time.
  bool is_capturing() const noexcept { return capturing_.load(); }
  void set_capturing(bool capturing) noexcept { capturing_.store(capturing); }
  /// Whose capture has the conditional whose body this stream captures; nullptr if it captures none.
  StreamHeap* parent() const noexcept { return parent_.load(); }
  void set_parent(StreamHeap* parent) noexcept { parent_.store(parent); }
  /// The stream that captures a body of a conditional of this stream's capture; nullptr if none does.
  StreamHeap* body() const noexcept { return body_.load(); }
  void set_body(StreamHeap* body) noexcept { body_.store(body); }

  /// The stream's end was announced, and its last event is recorded. False if it is dead already.
  bool retire() noexcept { return leave(State::kAlive, State::kRetired); }
  /// The stream turns out to be destroyed. `sequence` is the device's, taken after that
  /// (Synchronizer::next_sequence). No effect on a stream that is dead already.
  void lose(std::uint64_t sequence) noexcept {
    if (!is_alive()) return;
    raise_lost_at(sequence);
    static_cast<void>(leave(State::kAlive, State::kLost));
  }
  /// The heap's memory pool was released, so that launches which no event tells of may use its memory;
  /// the stream itself may be alive. REQUIRES: no use node names the heap.
  void lose_anew(std::uint64_t sequence) noexcept {
    ASHLAR_ASSERT(references_.load() == 0, "life(2): a memory pool's heap is named as a user");
    raise_lost_at(sequence);
    state_.store(State::kLost);
  }
  /// A synchronisation that began after this number covers all work of a lost stream.
  std::uint64_t lost_at() const noexcept { return lost_at_.load(); }
  /// All work of the dead stream is known complete. False if that was known already.
  bool finish() noexcept {
    return leave(State::kRetired, State::kFinished) || leave(State::kLost, State::kFinished);
  }
  /// From now on nobody can refer to the heap. False, and the state is as before, if somebody does.
  bool begin_passing() noexcept {
    const State dead = state_.exchange(State::kPassing);
    // Invariant 1. refer() takes no lock, so a caller that wrongly names the dead stream can run at
    // the same time: set the state first, then read the counts.
    if (references_.load() == 0 && !is_recording()) return true;
    state_.store(dead);
    return false;
  }
  /// REQUIRES: begin_passing() returned true.
  void end_passing() noexcept {
    ASHLAR_ASSERT(state_.load() == State::kPassing,
                  "heap(6): something may be left of the stream before");
    state_.store(State::kAlive);
  }

 private:
  /// Never back: lose() may be late, and a release of a memory pool have come between.
  void raise_lost_at(std::uint64_t sequence) noexcept {
    std::uint64_t known = lost_at_.load();
    while (known < sequence && !lost_at_.compare_exchange_weak(known, sequence)) {
    }
  }
  bool leave(State from, State to) noexcept { return state_.compare_exchange_strong(from, to); }

  std::atomic<State> state_{State::kAlive};
  std::atomic<bool> capturing_{false};
  std::atomic<StreamHeap*> parent_{nullptr};
  std::atomic<StreamHeap*> body_{nullptr};
  UnderWay<std::atomic<unsigned>> recorders_;
  std::atomic<std::uint64_t> lost_at_{0};
  std::atomic<std::uint64_t> references_{0};
};

}  // namespace ashlar::inline v0::cache
