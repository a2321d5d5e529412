#include <ashlar/graph/online_allocator.h>

#include <algorithm>
#include <utility>

#include <ashlar/base/checked.h>
#include <ashlar/base/exceptions.h>
#include <ashlar/block/block_pool.h>

namespace ashlar::inline v0::graph {
namespace {

constexpr Address kMeasureBase{1u << 16};
constexpr Bytes kMeasureBytes{std::uint64_t{1} << 62};

}  // namespace

struct OnlineAllocator::Parts {
  Address base;   // as given
  Address first;  // aligned
  Bytes size;     // from `first`, a multiple of the alignment
  Bytes alignment;
  Bytes peak;
  std::unique_ptr<block::BlockPool> pool;
};

OnlineAllocator::OnlineAllocator(Address base, Bytes size, Bytes alignment)
    : parts_(std::make_unique<Parts>()) {
  ASHLAR_ASSERT(is_power_of_two(alignment.count()) && alignment >= 16_B && alignment <= 64_KiB,
                "OnlineAllocator: an alignment that is not a power of two from 16 to 65536");
  size = std::min(size, Bytes{~base.value()});
  const auto aligned = checked_round_up(Bytes{base.value()}, alignment);
  if (!aligned) size = Bytes{};  // no aligned byte is left
  const Address first{aligned.value_or(Bytes{}).count()};
  const Bytes skipped = aligned ? first - base : Bytes{};
  parts_->base = base;
  parts_->first = first;
  parts_->size = skipped < size ? round_down(size - skipped, alignment) : Bytes{};
  parts_->alignment = alignment;
  reset();
}

OnlineAllocator OnlineAllocator::measuring(Bytes alignment) {
  return OnlineAllocator(kMeasureBase, kMeasureBytes, alignment);
}

OnlineAllocator::OnlineAllocator(OnlineAllocator&&) noexcept = default;
OnlineAllocator& OnlineAllocator::operator=(OnlineAllocator&&) noexcept = default;
OnlineAllocator::~OnlineAllocator() = default;

void OnlineAllocator::reset() {
  auto pool = std::make_unique<block::BlockPool>(parts_->alignment);
  if (parts_->size > 0_B) {
    const block::SegmentIndex segment =
        pool->add_segment(parts_->first, parts_->size, block::Position{0}, 0, 0);
    if (segment == block::kNoSegment) throw_bad_alloc();
  }
  parts_->pool = std::move(pool);
}

Result<Address> OnlineAllocator::allocate(Bytes size) noexcept {
  if (size == 0_B) return Address{};
  const auto padded = checked_round_up(size, parts_->alignment);
  if (!padded) return {Code::kSizeOverflow, "the size wraps when it is rounded up"};
  block::BlockPool& pool = *parts_->pool;
  block::BlockIndex fit = pool.best_fit(*padded, Bytes::max());
  // The last range is the last resort: it grows the peak.
  const Address end = parts_->first + parts_->size;
  if (fit != block::kNoBlock && pool.address(fit) + pool.size(fit) == end) {
    const block::BlockIndex other = pool.next_fit(fit);
    if (other != block::kNoBlock) fit = other;
  }
  if (fit == block::kNoBlock) return {Code::kOutOfMemory, "no free range is large enough"};
  const block::BlockIndex taken = pool.take(fit, *padded, true, size, 0);
  if (taken == block::kNoBlock) return {Code::kHostOutOfMemory, "no host memory for a record"};
  const Address address = pool.address(taken);
  parts_->peak = std::max(parts_->peak, address + *padded - parts_->base);
  return address;
}

Status OnlineAllocator::free(Address address) noexcept {
  if (address.is_null()) return Status::ok();
  const block::BlockIndex block = parts_->pool->find(address);
  if (block == block::kNoBlock) return {Code::kUnknownPointer, "no live range begins there"};
  parts_->pool->release(block, 0);
  return Status::ok();
}

Bytes OnlineAllocator::peak() const noexcept { return parts_->peak; }

std::uint64_t OnlineAllocator::live() const noexcept {
  return parts_->pool->counts().blocks[block::raw(BlockState::kLive)];
}

}  // namespace ashlar::inline v0::graph
