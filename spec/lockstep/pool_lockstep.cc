#include "spec/lockstep/pool_lockstep.h"

#include <algorithm>
#include <cstdio>

#include <ashlar/base/checked.h>

#include "spec/model/pool_clauses.h"
#include "spec/ops/opcode_table.h"
#include "spec/ops/text.h"

namespace ashlar::spec {
namespace {

constexpr Address kFirstBase{std::uint64_t{1} << 40};
constexpr std::uint64_t kLastAddress = std::uint64_t{1} << 62;
constexpr std::uint64_t kSmallStamps = 32;

const char* state_name(PoolState state) {
  switch (state) {
    case PoolState::kFree: return "free";
    case PoolState::kLive: return "live";
    case PoolState::kPending: return "pending";
    case PoolState::kInTransfer: return "transfer";
    case PoolState::kUnmapped: return "unmapped";
  }
  return "?";
}

std::string line_of(const PoolBlock* block) {
  if (block == nullptr) return std::string(62, ' ');
  char text[128];
  std::snprintf(text, sizeof text, "%c %013llx +%-12llu %-8s rq %-9llu st %-6llu",
                block->address == block->segment ? '[' : ' ',
                static_cast<unsigned long long>(block->address.value()),
                static_cast<unsigned long long>(block->size.count()), state_name(block->state),
                static_cast<unsigned long long>(block->requested.count()),
                static_cast<unsigned long long>(block->stamp));
  return text;
}

}  // namespace

std::string side_by_side(const PoolMap& model, const PoolMap& pool) {
  std::string text = "  model" + std::string(60, ' ') + "| pool\n";
  std::size_t m = 0;
  std::size_t p = 0;
  while (m < model.blocks.size() || p < pool.blocks.size()) {
    const PoolBlock* a = m < model.blocks.size() ? &model.blocks[m] : nullptr;
    const PoolBlock* b = p < pool.blocks.size() ? &pool.blocks[p] : nullptr;
    if (a != nullptr && b != nullptr && a->address != b->address)
      (a->address < b->address ? b : a) = nullptr;
    m += a != nullptr;
    p += b != nullptr;
    const bool same = a != nullptr && b != nullptr && *a == *b;
    text += (same ? "  " : "! ") + line_of(a) + " | " + line_of(b) + "\n";
  }
  return text;
}

PoolLockstep::PoolLockstep(PoolSubject& subject, Bytes granule, unsigned heavy_every)
    : subject_(subject), granule_(granule), heavy_every_(heavy_every) {}

bool PoolLockstep::step(const Op& op) {
  if (diverged()) return false;
  steps_ += 1;
  run(op);
  if (!diverged()) compare();
  if (!diverged() && steps_ % heavy_every_ == 0) check();
  if (diverged()) {
    report_ = "step " + std::to_string(steps_) + ": " + print_op(op) + "\n" + report_ + "\n" +
              side_by_side(model_.map(), map_);
  }
  return !diverged();
}

void PoolLockstep::run(const Op& op) {
  switch (op.slot) {
    case slot::kPoolGrow: return run_grow(Bytes{op.arg[0]}, false);
    case slot::kPoolReserve: return run_grow(Bytes{op.arg[0]}, true);
    case slot::kPoolAlloc: return run_alloc(op, Bytes::max(), true);
    case slot::kPoolAllocLimited: return run_alloc(op, Bytes{op.arg[2]}, true);
    case slot::kPoolAllocWhole: return run_alloc(op, Bytes::max(), false);
    case slot::kPoolFree:
      return on_pointer(op, [this](Address a) {
        compare_outcomes(model_.release(a, stamp()), subject_.release(a, stamp()));
      });
    case slot::kPoolDefer:
      return on_pointer(
          op, [this](Address a) { compare_outcomes(model_.defer(a), subject_.defer(a)); });
    case slot::kPoolComplete:
      return on_pointer(op, [this](Address a) {
        compare_outcomes(model_.complete(a, stamp()), subject_.complete(a, stamp()));
      });
    case slot::kPoolShrink:
      return on_block(model_.nth_idle(op.arg[0]), [this](Address a) {
        compare_outcomes(model_.shrink(a), subject_.shrink(a));
      });
    case slot::kPoolLift:
      return on_block(model_.nth(PoolState::kFree, op.arg[0]),
                      [this](Address a) { compare_outcomes(model_.lift(a), subject_.lift(a)); });
    case slot::kPoolLower:
      return on_block(model_.nth(PoolState::kInTransfer, op.arg[0]), [this](Address a) {
        compare_outcomes(model_.lower(a, stamp()), subject_.lower(a, stamp()));
      });
    case slot::kPoolDivide:
      return on_block(model_.nth(PoolState::kInTransfer, op.arg[0]), [&](Address a) {
        const Bytes size = round_down(Bytes{op.arg[1]}, granule_);
        compare_outcomes(model_.divide(a, size), subject_.divide(a, size));
      });
    case slot::kPoolTakeLifted: return run_take_lifted(op);
    case slot::kPoolUnmap:
      return on_block(model_.nth_to_unmap(op.arg[0]),
                      [this](Address a) { compare_outcomes(model_.unmap(a), subject_.unmap(a)); });
    case slot::kPoolLiftUnmapped:
      return on_block(model_.nth(PoolState::kUnmapped, op.arg[0]), [this](Address a) {
        compare_outcomes(model_.lift_unmapped(a), subject_.lift_unmapped(a));
      });
    case slot::kExpect: {
      const bool is_expected = op.arg[0] == static_cast<std::uint64_t>(outcome_);
      return expect(is_expected, code_name(outcome_));
    }
    case slot::kExpectSame:
      return expect(pointer(op.arg[0]) == pointer(op.arg[1]), "the addresses differ");
    case slot::kExpectLive:
      return expect(subject_.books().blocks[1] == op.arg[0], "another number of blocks is live");
    case slot::kExpectReserved:
      return expect(subject_.books().segment_bytes == Bytes{op.arg[1]},
                    "the segments have another size");
    default: return;
  }
}

template <class F>
void PoolLockstep::on_pointer(const Op& op, F&& call) {
  const Address address = pointer(op.arg[0]);
  if (!address.is_null()) call(address);
}

template <class F>
void PoolLockstep::on_block(const PoolBlock* block, F&& call) {
  outcome_ = Code::kNotFound;
  if (block != nullptr) call(block->address);
}

void PoolLockstep::expect(bool holds, const char* what) {
  if (!holds) fail(std::string("expectation: ") + what);
}

/// Grows with every step: small numbers first, then numbers around 2^32, since a pool may store
/// larger stamps in another place.
std::uint64_t PoolLockstep::stamp() const {
  return steps_ < kSmallStamps ? steps_ : (std::uint64_t{1} << 32) - 2 * kSmallStamps + steps_;
}

/// Above all other segments or below them, each with or without a gap; the first place again when
/// there are none.
Address PoolLockstep::place(Bytes size) const {
  const auto& segments = model_.map().segments;
  if (segments.empty()) return kFirstBase;
  const Bytes gap = grows_ % 2 == 0 ? granule_ * (grows_ + 1) : Bytes{};
  const Address lowest = segments.front().base;
  const Address end = segments.back().base + segments.back().size;
  if (grows_ % 4 >= 2 && lowest.value() > size.count() + gap.count() + granule_.count())
    return lowest - size - gap;
  return end + gap;
}

void PoolLockstep::run_grow(Bytes size, bool is_reserved) {
  const std::optional<Bytes> rounded = checked_round_up(size, granule_);
  outcome_ = Code::kInvalidArgument;
  if (size == Bytes{}) return;
  outcome_ = Code::kSizeOverflow;
  if (!rounded || *rounded > kPoolSegmentMax) return;
  outcome_ = Code::kOutOfAddresses;
  const Address base = place(*rounded);
  if (model_.map().segments.size() == kPoolSegmentsMax ||
      base.value() > kLastAddress - rounded->count() ||
      grown_.count() > kLastAddress - rounded->count())
    return;
  const std::uint64_t ordinal = grows_++;
  grown_ += *rounded;
  if (is_reserved) {
    return compare_outcomes(model_.reserve(base, *rounded, ordinal),
                            subject_.reserve(base, *rounded, ordinal));
  }
  compare_outcomes(model_.grow(base, *rounded, ordinal, stamp()),
                   subject_.grow(base, *rounded, ordinal, stamp()));
}

void PoolLockstep::run_alloc(const Op& op, Bytes size_end, bool split) {
  const std::uint64_t p = op.arg[0];
  if (p >= kPoolPointersMax) return;
  PoolRequest request;
  request.requested = Bytes{op.arg[1]};
  request.user = word_of(p);
  request.split = split;
  request.size_end = size_end;
  outcome_ = Code::kInvalidArgument;
  if (request.requested == Bytes{}) return;
  outcome_ = Code::kSizeOverflow;
  const std::optional<Bytes> rounded = checked_round_up(request.requested, granule_);
  if (!rounded) return;
  request.size = *rounded;

  const Result<Address> expected = model_.allocate(request);
  const Result<Address> actual = subject_.allocate(request);
  compare_outcomes(expected.status(), actual.status());
  if (diverged() || !expected.is_ok()) return;
  if (expected.value() != actual.value()) {
    return fail("the model hands out " + std::to_string(expected.value().value()) + ", the pool " +
                std::to_string(actual.value().value()));
  }
  const std::string broken =
      check_usable(model_.map(), actual.value(), request.requested, granule_);
  if (!broken.empty()) return fail(broken);
  if (p >= pointers_.size()) pointers_.resize(p + 1);
  pointers_[p] = actual.value();
}

void PoolLockstep::run_take_lifted(const Op& op) {
  const std::uint64_t p = op.arg[0];
  if (p >= kPoolPointersMax) return;
  on_block(model_.nth(PoolState::kInTransfer, op.arg[1]), [&](Address a) {
    const Bytes requested = Bytes{1 + op.arg[1] % granule_.count()};
    compare_outcomes(model_.take_lifted(a, requested, word_of(p)),
                     subject_.take_lifted(a, requested, word_of(p)));
    if (diverged()) return;
    if (p >= pointers_.size()) pointers_.resize(p + 1);
    pointers_[p] = a;
  });
}

void PoolLockstep::compare_outcomes(Status expected, Status actual) {
  outcome_ = expected.code();
  if (expected == actual) return;
  fail(std::string("the model answers ") + code_name(expected.code()) + ", the pool " +
       code_name(actual.code()));
}

void PoolLockstep::compare() {
  subject_.map(&map_);
  if (map_ != model_.map()) return fail("the maps differ");
  const std::string broken = check_conserved(model_.map(), subject_.books());
  if (!broken.empty()) fail(broken);
}

bool PoolLockstep::check() {
  subject_.map(&map_);
  subject_.free_order(&order_);
  subject_.unmapped_order(&unmapped_order_);
  for (const std::string& broken : {check_disjoint(map_), check_tiling(map_), check_coalesced(map_),
                                    check_index(map_, PoolState::kFree, order_),
                                    check_index(map_, PoolState::kUnmapped, unmapped_order_),
                                    check_conserved(map_, subject_.books())}) {
    if (!broken.empty()) fail(broken);
  }
  for (const PoolBlock& block : map_.blocks) {
    const bool owned = block.state == PoolState::kLive || block.state == PoolState::kPending;
    if (subject_.owns(block.address) != owned)
      fail("C16: the pool disowns a block, or owns one that is free");
    if (block.size > granule_ && subject_.owns(block.address + granule_))
      fail("C16: the pool owns an inner address");
  }
  if (const char* broken = subject_.validate()) fail(broken);
  return !diverged();
}

bool PoolLockstep::finish() {
  if (diverged() || !check()) return false;
  const auto all = [this](PoolState state, auto give_back) {
    while (const PoolBlock* block = model_.nth(state, 0)) {
      give_back(block->address);
      if (diverged()) return;
    }
  };
  steps_ += 1;
  all(PoolState::kLive, [this](Address a) {
    compare_outcomes(model_.release(a, stamp()), subject_.release(a, stamp()));
  });
  all(PoolState::kPending, [this](Address a) {
    compare_outcomes(model_.complete(a, stamp()), subject_.complete(a, stamp()));
  });
  all(PoolState::kUnmapped,
      [this](Address a) { compare_outcomes(model_.lift_unmapped(a), subject_.lift_unmapped(a)); });
  all(PoolState::kInTransfer, [this](Address a) {
    compare_outcomes(model_.lower(a, stamp()), subject_.lower(a, stamp()));
  });
  while (!diverged() && !model_.map().segments.empty()) {
    const PoolBlock* idle = model_.nth_idle(0);
    if (idle == nullptr) {
      fail("C14: everything is free, and a segment is not idle");
      break;
    }
    const Address base = idle->address;
    compare_outcomes(model_.shrink(base), subject_.shrink(base));
  }
  if (!diverged() && check() && !(subject_.books() == PoolBooks{}))
    fail("C14: an empty pool holds something");
  if (diverged())
    report_ =
        "at the end, everything being given back\n" + report_ + side_by_side(model_.map(), map_);
  return !diverged();
}

void PoolLockstep::fail(const std::string& why) {
  if (report_.empty()) report_ = why;
}

}  // namespace ashlar::spec
