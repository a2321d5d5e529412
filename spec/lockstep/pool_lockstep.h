// The block pool's lockstep: one op goes to the model and to a pool, and everything is compared
// after it.
//
// After every step: the outcome, the address, the whole map, every counter, C1 of a new allocation.
// Every `heavy_every`-th step and at the end: clauses C2-C5 and C14 on the pool's own map, the free
// index's whole order, which addresses the pool owns, and its validate().
// The ops are slots 40..51, 140..142 and the expectations. A pointer keeps its address after its free, so
// `pool-free p1` twice is a double free, unless the address was handed out again. Segments are
// placed by a fixed rule that makes them touch, above and below others: their ordinals and their
// addresses rise in different orders (C10).
// Thread safety: none. No step allocates once the buffers have grown.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "spec/model/block_pool_model.h"
#include "spec/ops/op.h"

namespace ashlar::spec {

/// Limits of this world; an op beyond one is refused before it reaches model or pool.
inline constexpr std::uint64_t kPoolPointersMax = 1u << 20;
inline constexpr std::uint64_t kPoolSegmentsMax = 4096;
inline constexpr Bytes kPoolSegmentMax{std::uint64_t{1} << 57};

class PoolLockstep {
 public:
  /// `subject` is an empty pool of that granule, and outlives this.
  PoolLockstep(PoolSubject& subject, Bytes granule, unsigned heavy_every = 64);

  /// Runs one op. False from the first divergence on; report() describes it.
  bool step(const Op& op);
  /// Runs the heavy checks. False as step().
  bool check();
  /// The heavy checks, then everything is given back and the pool must be empty. False as step().
  bool finish();

  /// Segments placed so far; the next one's ordinal. Later answers depend on this and the map alone.
  std::uint64_t grows() const { return grows_; }
  std::uint64_t steps() const { return steps_; }
  bool diverged() const { return !report_.empty(); }
  /// The divergence and both maps side by side; empty where there is none.
  const std::string& report() const { return report_; }
  /// Of the last op that was not skipped.
  Code outcome() const { return outcome_; }
  const BlockPoolModel& model() const { return model_; }
  /// The address of pointer p, null while unbound.
  Address pointer(std::uint64_t p) const { return p < pointers_.size() ? pointers_[p] : Address{}; }
  /// The user word of pointer p's block, and its inverse. Pointer 1 has the word zero, which a pool
  /// may store in a special way.
  static constexpr std::uint64_t word_of(std::uint64_t p) { return p ^ 1; }

 private:
  void run(const Op& op);
  /// A new segment, one free block or, if `is_reserved`, one unmapped block.
  void run_grow(Bytes size, bool is_reserved);
  void run_alloc(const Op& op, Bytes size_end, bool split);
  void run_take_lifted(const Op& op);
  template <class F>
  void on_pointer(const Op& op, F&& call);
  template <class F>
  void on_block(const PoolBlock* block, F&& call);
  void expect(bool holds, const char* what);
  void compare();
  void compare_outcomes(Status expected, Status actual);
  void fail(const std::string& why);
  std::uint64_t stamp() const;
  Address place(Bytes size) const;

  PoolSubject& subject_;
  BlockPoolModel model_;
  Bytes granule_;
  unsigned heavy_every_;
  std::uint64_t steps_ = 0;
  std::uint64_t grows_ = 0;
  Bytes grown_;  // of all segments so far
  Code outcome_ = Code::kOk;
  std::vector<Address> pointers_;
  PoolMap map_;                          // the subject's, after the last step
  std::vector<Address> order_;           // likewise
  std::vector<Address> unmapped_order_;  // likewise
  std::string report_;
};

/// Two maps as two columns, lines that differ marked with '!'.
std::string side_by_side(const PoolMap& model, const PoolMap& pool);

}  // namespace ashlar::spec
