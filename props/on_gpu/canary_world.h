// CanaryWorld: the caller of a caching allocator on a GPU, whose every kernel is a canary.
//
// Purpose: C2, C6, C7, C8 and D4 on real memory. Each allocation is filled with its owner's words by a kernel on its stream, and
// checked by one before it is freed; so are uses by other streams, what graphs allocate, and some untouched allocations after each
// op. What a check finds is a fault of the allocator, of the driver, or of what is said of either.
// Thread safety: one thread, in whose context the session is.
//
// The caller is lawful, as spec::CacheWorld's: frees come after the last enqueue, first uses by other streams are ordered behind the
// allocation, uses are announced by the free at the latest, streams are retired before they are destroyed, captures announced.
// A graph uses memory of one pool alone, which it made itself; it is launched behind all work, and work on its pool's memory behind it.
// A stream writes what its block's owner wrote, so that uses of one block need no order among them.
//
// An op that names what is not there, or that such a caller could not make now, is skipped (Op invariant 2).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ashlar/cache/caching_allocator.h>

#include "props/on_gpu/canaries.h"
#include "props/on_gpu/planted_device.h"
#include "spec/ops/random.h"

namespace ashlar::props {

/// What a file's first ops ask for.
struct CanaryPlan {
  std::string conf;
  std::uint64_t seed = 1;
  Bytes limit;  ///< of the device's memory
};

/// What happened, for the account of a run.
struct CanaryCounts {
  std::uint64_t ops = 0;
  std::uint64_t skipped = 0;
  std::uint64_t fills = 0;
  std::uint64_t checks = 0;
  std::uint64_t launches = 0;  ///< of graphs
  std::uint64_t moves = 0;     ///< of pages, by the allocator

  CanaryCounts& operator+=(const CanaryCounts& more);
};

/// A live or freed allocation.
struct CanaryBlock {
  Address at;
  Bytes size;
  std::uint64_t owner = 0;
  std::uint32_t stream = 0;    ///< its own, by index
  spec::GraphGroup group = 0;  ///< of the memory pool that it came from
  std::uint64_t capture = 0;   ///< that made it and goes on; 0: none
  bool is_live = true;
  bool holds_words = true;  ///< its bytes are the owner's words, once what is enqueued has run
  std::vector<std::uint32_t> ordered;      ///< streams that come behind its first words
  std::vector<std::uint32_t> unannounced;  ///< that use it, and the allocator has not been told

  bool overlaps(const CanaryBlock& other) const {
    return at < other.at + other.size && other.at < at + size;
  }
};

class CanaryWorld {
 public:
  static constexpr std::uint32_t kNone = 0xffffffffu;
  /// The most that is reserved: less than the simulated GPU has.
  static constexpr Bytes kLimitMax = 256_MiB;

  struct StreamSlot {
    Stream stream;
    bool is_alive = true;
    bool is_capturing = false;
    EventHandle end;  ///< of one that is not alive
  };

  /// `session` and `canaries` must outlive this.
  CanaryWorld(GpuSession& session, Canaries& canaries, Planted planted, const CanaryPlan& plan);
  ~CanaryWorld();
  CanaryWorld(const CanaryWorld&) = delete;
  CanaryWorld& operator=(const CanaryWorld&) = delete;

  // What happened.
  /// The first failure, or empty.
  const std::string& failure() const { return failure_; }
  void fail(const std::string& text);
  /// A text for the account of an op: skipped.
  void skip() { ++counts_.skipped; }
  /// Is the answer ok? Fails unless it is one that a sound allocator may give a lawful caller.
  bool judge(const char* call, Status answer);
  const CanaryCounts& counts() const { return counts_; }
  void begin_op(const std::string& text);
  /// Checks some untouched blocks, and now and then what all checks found.
  void end_op();
  /// Frees everything and looks at it all a last time. The last call.
  void finish();

  // Names. Indices, or kNone.
  std::uint32_t stream(std::uint64_t name) const;
  std::uint32_t block(std::uint64_t name) const;
  StreamSlot& stream_at(std::uint32_t index) { return streams_[index]; }
  CanaryBlock& block_at(std::uint32_t index) { return blocks_[index]; }
  std::vector<CanaryBlock>& blocks() { return blocks_; }

  // What ops do, by index.
  void create_stream(std::uint64_t name);
  void end_stream(std::uint64_t name, std::uint32_t stream);
  void allocate(std::uint64_t name, Bytes size, std::uint32_t stream);
  /// `on`: free(address, stream)'s, or kNone.
  void free(std::uint32_t block, std::uint32_t on);
  void announce(std::uint32_t block, std::uint32_t stream);
  /// Announces all that the stream has used without a word.
  void announce_uses_of(std::uint32_t stream);
  void use(std::uint32_t block, std::uint32_t stream, spec::Access access);
  /// Work of `after` from now on comes behind all of `before` so far.
  void order(const Stream& after, const Stream& before);
  /// Work of the stream from now on comes behind all work so far.
  void order_behind_all(std::uint32_t stream);
  void count_launch() { ++counts_.launches; }
  /// Looks at what all checks found. REQUIRES: nothing captures.
  void collect();

  GpuSession& session() { return session_; }
  Canaries& canaries() { return canaries_; }
  cache::CachingAllocator& allocator() { return *allocator_; }
  Planted planted() const { return planted_; }
  class CanaryGraphs& graphs() {
    return *graphs_;
  }
  std::uint64_t spin_ticks();

 private:
  /// Which check a slot is for.
  struct Check {
    std::string op;
    std::uint32_t block = 0;
  };
  CanaryRange range_of(const CanaryBlock& block) const;
  void fill(std::uint32_t block, std::uint32_t stream);
  void check(std::uint32_t block, std::uint32_t stream, bool writes);
  /// A stream that may use the block now: its own, or where that is dead another; kNone.
  std::uint32_t checker_of(const CanaryBlock& block);
  bool may_use(const CanaryBlock& block, std::uint32_t stream) const;

  GpuSession& session_;
  Canaries& canaries_;
  const Planted planted_;
  PlantedDevice device_;
  std::unique_ptr<cache::CachingAllocator> allocator_;
  std::unique_ptr<class CanaryGraphs> graphs_;
  spec::Random random_;
  std::string op_;  ///< that runs
  std::string failure_;
  CanaryCounts counts_;
  std::vector<StreamSlot> streams_;
  std::vector<CanaryBlock> blocks_;
  std::map<std::uint64_t, std::uint32_t> stream_names_;
  std::map<std::uint64_t, std::uint32_t> block_names_;
  std::map<Canaries::Slot, Check> checks_;
};

}  // namespace ashlar::props
