// PyTorch's default policy: each segment is one allocation of the device, and returned whole.
//
// Thread safety: none.
//
// Invariant (validate()): a segment of a small pool has 2 MiB; one of a large pool 20 MiB, or a multiple
// of 2 MiB that is not less than 10 MiB.
#include <memory>

#include "src/tool/policy_pools.h"

namespace ashlar::tool {
namespace {

using block::BlockIndex;
using block::kNoBlock;
using block::kNoSegment;
using block::SegmentIndex;

class SegmentPolicy final : public PoolPolicy {
 public:
  explicit SegmentPolicy(device::Device& device) : PoolPolicy(device) {}

 private:
  static Bytes segment_bytes(const Pool& pool, Bytes size) {
    if (pool.is_small) return kSmallPiece;
    return size < kOwnSegmentMin ? kLargePiece : policy_round_up(size, kOwnSegmentRounding);
  }

  BlockIndex fit(Pool& pool, Bytes size) override {
    return pool.blocks.best_fit(size, Bytes::max());
  }

  BlockIndex grow(Pool& pool, Bytes size) override {
    const Bytes bytes = segment_bytes(pool, size);
    const Result<Address> base = device().segment_alloc(bytes);
    if (!base.is_ok()) return kNoBlock;
    const block::Position position{base.value().value()};
    const SegmentIndex segment = pool.blocks.add_segment(base.value(), bytes, position, 0, 0);
    if (segment == kNoSegment) {
      (void)device().segment_free(base.value());
      return kNoBlock;
    }
    add_reserved(bytes);
    return pool.blocks.view(segment).first;
  }

  bool splits(const Pool& pool, Bytes rest) const override {
    return pool.is_small ? rest >= kPolicyGranule : rest > kSmallRequestMax;
  }

  void release(Pool& pool) override {
    for (SegmentIndex segment = pool.blocks.first_segment(); segment != kNoSegment;) {
      const SegmentIndex next = pool.blocks.next(segment);
      if (pool.blocks.is_idle(segment)) {
        wait();
        const block::SegmentView view = pool.blocks.view(segment);
        pool.blocks.lift(view.first);
        pool.blocks.remove_segment(segment);
        remove_reserved(view.size);
        (void)device().segment_free(view.base);  // its own address: it cannot be refused
      }
      segment = next;
    }
  }

  const char* check(const Pool& pool) const override {
    for (SegmentIndex segment = pool.blocks.first_segment(); segment != kNoSegment;
         segment = pool.blocks.next(segment)) {
      const Bytes size = pool.blocks.view(segment).size;
      const bool is_own = size >= kOwnSegmentMin && size % kOwnSegmentRounding == 0;
      if (pool.is_small ? size != kSmallPiece : !is_own)
        return "policy: a segment has a size that no request gives";
    }
    return nullptr;
  }
};

}  // namespace

std::unique_ptr<Policy> make_segment_policy(device::Device& device) {
  return std::make_unique<SegmentPolicy>(device);
}

}  // namespace ashlar::tool
