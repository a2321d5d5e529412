// StreamWorld: prints the steps of the Dafny world (spec/proof/stream_model.dfy), and keeps of it
// what no C++ model holds.
//
// Purpose: a function for each WorldOp, which prints it; and a hash of the state, for the Dafny
// side to meet. Of the state, the caching model holds the segments, the blocks and who announced
// what (CacheModel); spec/gpu's Clocks hold what comes before what. Kept here are the stamps, and
// what an owner was told when it got its block and when it freed it.
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
    std::uint32_t stream;  ///< that asked for it
    std::uint64_t since;   ///< the stamp it was handed out with
    StreamSet users = 0;   ///< with kernels on it
    StreamSet announced = 0;
    bool is_pending = false;
    std::vector<std::uint64_t> until;  ///< while pending: what was enqueued at the free
    /// The streams that its free must wait for.
    StreamSet others() const { return (announced | only(stream)) & ~only(heap); }
  };

  struct Request {
    std::uint64_t requested;
    std::uint64_t rounded;
  };

  /// Prints its steps under that number, for a world of that many streams, at rest.
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

  /// May work on that stream touch the block: is its last use by others before whatever the stream
  /// is given next?
  bool may_use(const Held& held, std::uint32_t stream) const {
    return clocks_.before_next_of(held.heap, held.since, stream, 0);
  }
  /// REQUIRES: it is there.
  const Held& held(std::uint64_t address) const { return held_[place(address)]; }
  /// The addresses of pending blocks.
  std::vector<std::uint64_t> pending() const;

  /// After an operation: the free blocks are those of the view now; and the hash of everything.
  /// `streams`: identities.
  std::uint64_t close(const spec::CacheModel& model, const std::vector<std::uint64_t>& streams,
                      PoolId pool);
  /// Prints, now and then, steps that the model must refuse: too early now, or not the best fit, or
  /// where memory is already.
  void probe(spec::Random& random);

 private:
  /// Free bytes, with their stamp.
  struct Piece {
    std::uint64_t lo;
    std::uint64_t hi;
    std::uint64_t stamp;
    std::uint32_t heap;
  };

  std::size_t place(std::uint64_t address) const;
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
