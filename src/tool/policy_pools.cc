#include "src/tool/policy_pools.h"

namespace ashlar::tool {

using block::BlockIndex;
using block::kNoBlock;

Result<Address> PoolPolicy::allocate(Bytes size, std::uint32_t stream) {
  const Bytes rounded = policy_round_up(size, kPolicyGranule);
  Pool& pool = pool_of(stream, rounded <= kSmallRequestMax);
  BlockIndex block = fit(pool, rounded);
  if (block == kNoBlock) block = grow(pool, rounded);
  if (block == kNoBlock) {
    // The pools are not searched again, and the device is asked even if nothing came back: so does
    // PyTorch.
    release_all();
    block = grow(pool, rounded);
  }
  if (block == kNoBlock) {
    ++figures_.ooms;
    return Status(Code::kOutOfMemory, "the device has too little memory");
  }
  const bool is_split = splits(pool, pool.blocks.size(block) - rounded);
  const BlockIndex taken = pool.blocks.take(block, rounded, is_split, size, 0);
  if (taken == kNoBlock) return Status(Code::kHostOutOfMemory, "no memory for a block's record");
  return pool.blocks.address(taken);
}

void PoolPolicy::free(Address address, std::uint32_t stream) {
  Pools& pools = streams_[stream];
  for (const std::unique_ptr<Pool>& pool : pools) {
    const BlockIndex block = pool == nullptr ? kNoBlock : pool->blocks.find(address);
    if (block == kNoBlock) continue;
    pool->blocks.release(block, 0);
    return;
  }
  ASHLAR_ASSERT(false, "policy: a free of what is not live");
}

const char* PoolPolicy::validate() const {
  Bytes mapped;
  for (const Pools& pools : streams_) {
    for (const std::unique_ptr<Pool>& pool : pools) {
      if (pool == nullptr) continue;
      if (const char* broken = pool->blocks.validate()) return broken;
      if (const char* broken = check(*pool)) return broken;
      const block::PoolCounts& counts = pool->blocks.counts();
      mapped += counts.segment_bytes - counts.bytes[static_cast<unsigned>(BlockState::kUnmapped)];
    }
  }
  if (mapped != figures_.reserved) return "policy: the reserved bytes differ from a recount";
  return figures_.reserved <= figures_.reserved_peak ? nullptr : "policy: the peak is too low";
}

void PoolPolicy::add_reserved(Bytes size) {
  figures_.reserved += size;
  figures_.reserved_peak = std::max(figures_.reserved_peak, figures_.reserved);
}

void PoolPolicy::wait() {
  if (has_waited_) return;
  has_waited_ = true;
  ++figures_.waits;
  (void)device_.synchronize();  // a lost device shows at the next call
}

PoolPolicy::Pool& PoolPolicy::pool_of(std::uint32_t stream, bool is_small) {
  if (stream >= streams_.size()) streams_.resize(std::size_t{stream} + 1);
  std::unique_ptr<Pool>& pool = streams_[stream][is_small ? 1 : 0];
  if (pool == nullptr) pool = std::make_unique<Pool>(is_small);
  return *pool;
}

void PoolPolicy::release_all() {
  has_waited_ = false;
  for (const Pools& pools : streams_) {
    for (const std::unique_ptr<Pool>& pool : pools) {
      if (pool != nullptr) release(*pool);
    }
  }
}

}  // namespace ashlar::tool
