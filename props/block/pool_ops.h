// Ops of the block pool as short functions, and a generator of op sequences that mostly use live
// pointers.
//
// Thread safety: none.
#pragma once

#include <cstdint>
#include <vector>

#include "spec/ops/op.h"
#include "spec/ops/opcode_table.h"
#include "spec/ops/random.h"

namespace ashlar::props {

inline spec::Op pool_op(std::uint8_t slot, std::uint64_t a = 0, std::uint64_t b = 0,
                        std::uint64_t c = 0) {
  spec::Op op;
  op.slot = slot;
  op.arg = {a, b, c, 0};
  return op;
}
inline spec::Op grow(std::uint64_t bytes) { return pool_op(spec::slot::kPoolGrow, bytes); }
inline spec::Op alloc(std::uint64_t p, std::uint64_t bytes) {
  return pool_op(spec::slot::kPoolAlloc, p, bytes);
}
inline spec::Op free_of(std::uint64_t p) { return pool_op(spec::slot::kPoolFree, p); }
inline spec::Op defer(std::uint64_t p) { return pool_op(spec::slot::kPoolDefer, p); }
inline spec::Op complete(std::uint64_t p) { return pool_op(spec::slot::kPoolComplete, p); }
inline spec::Op shrink(std::uint64_t n) { return pool_op(spec::slot::kPoolShrink, n); }
inline spec::Op lift(std::uint64_t n) { return pool_op(spec::slot::kPoolLift, n); }
inline spec::Op lower(std::uint64_t n) { return pool_op(spec::slot::kPoolLower, n); }
inline spec::Op alloc_limited(std::uint64_t p, std::uint64_t bytes, std::uint64_t end) {
  return pool_op(spec::slot::kPoolAllocLimited, p, bytes, end);
}
inline spec::Op alloc_whole(std::uint64_t p, std::uint64_t bytes) {
  return pool_op(spec::slot::kPoolAllocWhole, p, bytes);
}

inline spec::Op divide(std::uint64_t n, std::uint64_t bytes) {
  return pool_op(spec::slot::kPoolDivide, n, bytes);
}
inline spec::Op take_lifted(std::uint64_t p, std::uint64_t n) {
  return pool_op(spec::slot::kPoolTakeLifted, p, n);
}

inline spec::Op reserve(std::uint64_t bytes) { return pool_op(spec::slot::kPoolReserve, bytes); }
inline spec::Op unmap(std::uint64_t n) { return pool_op(spec::slot::kPoolUnmap, n); }
inline spec::Op lift_unmapped(std::uint64_t n) { return pool_op(spec::slot::kPoolLiftUnmapped, n); }

/// A size for fuzzing: one of a few exact sizes that repeat, one at the limit of a class, or a
/// log-uniform one.
inline std::uint64_t dice_size(spec::Random& dice) {
  switch (dice.below(4)) {
    case 0: return 512 * (1 + dice.below(4));
    case 1: return (std::uint64_t{512} << dice.below(12)) + dice.below(3) * 512 - 512 + 1;
    default: return 1 + dice.below(std::uint64_t{1} << (4 + dice.below(17)));
  }
}

/// A sequence of `count` ops over at most 64 live blocks.
inline std::vector<spec::Op> dice_ops(std::uint64_t seed, std::size_t count) {
  spec::Random dice(seed);
  std::vector<spec::Op> ops{grow(2 << 20), grow(20 << 20), reserve(8 << 20)};
  std::vector<std::uint64_t> live;
  std::vector<std::uint64_t> pending;
  std::uint64_t pointers = 0;
  unsigned grows = 0;
  const auto pick = [&dice](std::vector<std::uint64_t>& from) {
    const std::size_t i = dice.below(from.size());
    const std::uint64_t p = from[i];
    from[i] = from.back();
    from.pop_back();
    return p;
  };
  while (ops.size() < count) {
    const std::uint64_t r = dice.below(100);
    if (r < 46 && live.size() < 64) {
      const std::uint64_t p = pointers++ % 4096;
      live.push_back(p);
      const std::uint64_t size = dice_size(dice);
      ops.push_back(r < 38   ? alloc(p, size)
                    : r < 42 ? alloc_whole(p, size)
                             : alloc_limited(p, size, size * 4));
    } else if (r < 80 && !live.empty()) {
      ops.push_back(free_of(pick(live)));
    } else if (r < 86 && !live.empty() && pending.size() < 8) {
      pending.push_back(pick(live));
      ops.push_back(defer(pending.back()));
    } else if (r < 92 && !pending.empty()) {
      ops.push_back(complete(pick(pending)));
    } else if (r < 94) {
      ops.push_back(lift(dice.below(64)));
    } else if (r < 95) {
      const std::uint64_t n = dice.below(64);
      if (dice.below(2) == 0 && live.size() < 64) {
        ops.push_back(take_lifted(pointers % 4096, n));
        live.push_back(pointers++ % 4096);
      } else {
        ops.push_back(divide(n, dice_size(dice)));
      }
    } else if (r < 97) {
      const std::uint64_t n = dice.below(64);
      switch (dice.below(4)) {
        case 0: ops.push_back(unmap(n)); break;
        case 1:
          ops.push_back(lift_unmapped(n));
          ops.push_back(divide(n, dice_size(dice)));
          break;
        default: ops.push_back(lower(n)); break;
      }
    } else if (r < 98) {
      ops.push_back(shrink(dice.below(8)));
      const std::uint64_t size = std::uint64_t{1} << (9 + dice.below(14));
      if (grows++ < 12) ops.push_back(dice.below(3) == 0 ? reserve(size) : grow(size));
    } else {
      ops.push_back(free_of(dice.below(64)));  // usually stale
    }
  }
  return ops;
}

}  // namespace ashlar::props
