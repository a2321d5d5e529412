// StreamWorld: prints the steps of a Dafny world (spec/proof/stream_model.dfy), and keeps the part
// of its state that no C++ model has.
//
// Purpose: one function for each WorldOp, which prints it; and a hash of the state, which the Dafny
// side must reach too. The caching model has the segments, the blocks and the announced uses
// (CacheModel); spec/gpu's Clocks have the order of work. Kept here are the stamps of free bytes,
// and for each owned block its stamp when it was handed out and the work enqueued by its free.
// Thread safety: none. REQUIRES: at most 64 streams.
#pragma once

#include <cstdint>
#include <vector>

#include "spec/gpu/clocks.h"
#include "spec/model/cache_model.h"
#include "spec/ops/random.h"

namespace ashlar::props {

/// Some streams, by their indices.
using StreamSet = std::uint64_t;
constexpr StreamSet only(std::uint32_t stream) { return StreamSet{1} << stream; }

class StreamWorld {
 public:
  /// A live or pending block.
  struct Held {
    std::uint64_t address;
    std::uint64_t size;
    std::uint32_t heap;
    std::uint32_t stream;  ///< the stream that asked for it
    std::uint64_t since;   ///< its stamp when it was handed out
    StreamSet users = 0;   ///< streams with kernels on it
    StreamSet announced = 0;
    bool is_pending = false;
    std::vector<std::uint64_t> until;  ///< while pending: the work enqueued by the free
    /// The streams that its free must wait for.
    StreamSet others() const { return (announced | only(stream)) & ~only(heap); }
  };

  struct Request {
    std::uint64_t requested;
    std::uint64_t rounded;
  };

  /// A world of that many streams without work or memory. Prints its steps under that number.
  StreamWorld(unsigned number, std::uint32_t streams);

  // The machine and the caller. Events have the numbers 0, 1, ... in the order of record().
  void progress(std::uint32_t stream);
  void record(std::uint32_t stream);
  void wait(std::uint32_t stream, std::uint64_t event);
  void kernel(std::uint64_t address, std::uint32_t stream);
  void announce(std::uint64_t address, std::uint32_t stream);

  // The allocator.
  /// `size`: of the block it got; `rest`: the free bytes left behind it.
  void take(std::uint32_t heap, std::uint32_t stream, std::uint64_t address, std::uint64_t size,
            std::uint64_t rest, const Request& request);
  void give(std::uint64_t address);
  void settle(std::uint64_t address);
  void extend(std::uint32_t heap, std::uint64_t base, std::uint64_t size);
  void give_back(std::uint32_t heap, std::uint64_t base, std::uint64_t size);
  void adopt(std::uint32_t heap, std::uint32_t to, std::uint64_t base, std::uint64_t size);

  /// Whether the next work of `stream` may touch the block: the work on the heap's stream that
  /// `since` covers is ordered before it.
  bool may_use(const Held& held, std::uint32_t stream) const {
    return clocks_.before_next_of(held.heap, held.since, stream, 0);
  }
  /// REQUIRES: a live or pending block begins at `address`.
  const Held& held(std::uint64_t address) const { return held_[index_of_held(address)]; }
  /// The addresses of pending blocks.
  std::vector<std::uint64_t> pending() const;

  /// Ends an operation: takes the free blocks from the model's view. Returns the hash of the whole
  /// state. `streams`: identities.
  std::uint64_t close(const spec::CacheModel& model, const std::vector<std::uint64_t>& streams,
                      PoolId pool);
  /// Sometimes prints steps that the model must refuse: too early, or not the best fit, or memory
  /// where there is some already.
  void probe(spec::Random& random);

 private:
  /// Free bytes, with their stamp.
  struct Piece {
    std::uint64_t lo;
    std::uint64_t hi;
    std::uint64_t stamp;
    std::uint32_t heap;
  };

  std::size_t index_of_held(std::uint64_t address) const;
  void release(std::size_t held);
  void forget(std::uint64_t lo, std::uint64_t hi);
  std::uint64_t stamp_of(std::uint64_t lo, std::uint64_t hi) const;
  void probe_held(const Held& held, std::uint32_t stream);
  void probe_free(const Piece& piece, std::uint32_t stream);
  void probe_fit(const Piece& piece);

  unsigned number_;
  std::uint32_t streams_;
  spec::Clocks clocks_{0};
  std::vector<std::uint64_t> done_;
  std::vector<spec::Clock> events_;
  std::vector<Held> held_;
  std::vector<Piece> free_;
};

}  // namespace ashlar::props
