// PoolPolicy: the rules that PyTorch's two policies share (policy.h): rounding, the pools of the
// streams, and the order in which a request tries things. Where memory comes from is the derived
// class's business.
//
// Thread safety: none.
//
// Invariants (validate()):
//   (1) Every pool keeps the block pool's own invariants.
//   (2) figures().reserved is the sum of the mapped bytes of all pools, and at most its peak.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include <ashlar/block/block_pool.h>

#include "src/tool/policy.h"

namespace ashlar::tool {

/// PyTorch's constants (c10/core/AllocatorConfig.h; the names there are in brackets).
inline constexpr Bytes kPolicyGranule{512_B};    ///< kMinBlockSize
inline constexpr Bytes kSmallRequestMax{1_MiB};  ///< kSmallSize
inline constexpr Bytes kSmallPiece{2_MiB};       ///< kSmallBuffer: a small segment, a small page
inline constexpr Bytes kLargePiece{20_MiB};      ///< kLargeBuffer: a middle segment, a large page
inline constexpr Bytes kOwnSegmentMin{10_MiB};   ///< kMinLargeAlloc: from here on, own segments
inline constexpr Bytes kOwnSegmentRounding{2_MiB};  ///< kRoundLarge

constexpr Bytes policy_round_up(Bytes size, Bytes unit) {
  return unit * ((size.count() + unit.count() - 1) / unit.count());
}

class PoolPolicy : public Policy {
 public:
  Result<Address> allocate(Bytes size, std::uint32_t stream) final;
  void free(Address address, std::uint32_t stream) final;
  const PolicyFigures& figures() const final { return figures_; }
  const char* validate() const final;

 protected:
  struct Pool {
    explicit Pool(bool small) : is_small(small), blocks(kPolicyGranule) {}
    const bool is_small;
    block::BlockPool blocks;
  };

  explicit PoolPolicy(device::Device& device) : device_(device) {}

  /// A free block of at least `size` bytes, or kNoBlock.
  virtual block::BlockIndex fit(Pool& pool, Bytes size) = 0;
  /// The same after taking memory from the device; kNoBlock if the device or the host refuses.
  virtual block::BlockIndex grow(Pool& pool, Bytes size) = 0;
  /// Is a free block split that is `rest` bytes larger than the request?
  virtual bool splits(const Pool& pool, Bytes rest) const = 0;
  /// Gives back what is wholly free in this pool.
  virtual void release(Pool& pool) = 0;
  /// nullptr, or what is broken in this pool beyond the block pool's own invariants.
  virtual const char* check(const Pool& pool) const = 0;

  device::Device& device() { return device_; }
  void add_reserved(Bytes size);
  void remove_reserved(Bytes size) { figures_.reserved -= size; }
  /// Before memory is given back: once in each round the device finishes its work.
  void wait();

 private:
  using Pools = std::array<std::unique_ptr<Pool>, 2>;  // large, small

  Pool& pool_of(std::uint32_t stream, bool is_small);
  void release_all();

  device::Device& device_;
  std::vector<Pools> streams_;
  PolicyFigures figures_;
  bool has_waited_ = false;  // in this round of giving back
};

}  // namespace ashlar::tool
