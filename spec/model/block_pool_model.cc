#include "spec/model/block_pool_model.h"

#include <algorithm>

namespace ashlar::spec {
namespace {

constexpr Status kUnknown{Code::kUnknownPointer, "no live or pending block starts there"};

bool owned(const PoolBlock& block) {
  return block.state == PoolState::kLive || block.state == PoolState::kPending;
}

/// One block with the bytes of both and the later of the two stamps.
PoolBlock join(const PoolBlock& left, const PoolBlock& right) {
  PoolBlock both = left;
  both.size = left.size + right.size;
  both.stamp = std::max(left.stamp, right.stamp);
  return both;
}

}  // namespace

Status BlockPoolModel::grow(Address base, Bytes size, std::uint64_t ordinal, std::uint64_t stamp) {
  add({base, size, ordinal}, PoolState::kFree, stamp);
  return Status::ok();
}

Status BlockPoolModel::reserve(Address base, Bytes size, std::uint64_t ordinal) {
  add({base, size, ordinal}, PoolState::kUnmapped, 0);
  reserved_.push_back(base);
  return Status::ok();
}

void BlockPoolModel::add(const PoolSegment& segment, PoolState state, std::uint64_t stamp) {
  std::size_t i = 0;
  while (i < map_.blocks.size() && map_.blocks[i].address < segment.base) ++i;
  const PoolBlock whole{segment.base, segment.size, Bytes{}, segment.base, stamp, 0, state};
  splice(i, 0, &whole, 1);
  std::size_t s = 0;
  while (s < map_.segments.size() && map_.segments[s].base < segment.base) ++s;
  map_.segments.insert(map_.segments.begin() + static_cast<std::ptrdiff_t>(s), segment);
}

Status BlockPoolModel::shrink(Address base) {
  const std::size_t i = at(base);
  if (i == kNowhere || !is_idle(map_.blocks[i]))
    return {Code::kBusy, "the segment is not one free block"};
  splice(i, 1, nullptr, 0);
  std::erase(reserved_, base);
  for (std::size_t s = 0; s < map_.segments.size(); ++s) {
    if (map_.segments[s].base != base) continue;
    map_.segments.erase(map_.segments.begin() + static_cast<std::ptrdiff_t>(s));
    break;
  }
  return Status::ok();
}

Result<Address> BlockPoolModel::allocate(const PoolRequest& request) {
  const std::size_t i = best_fit(request);
  if (i == kNowhere) return {Code::kOutOfMemory, "no free block fits"};
  const PoolBlock found = map_.blocks[i];
  PoolBlock front = found;
  front.requested = request.requested;
  front.user = request.user;
  front.stamp = 0;
  front.state = PoolState::kLive;
  if (!request.split || found.size == request.size) {
    splice(i, 1, &front, 1);
    return front.address;
  }
  front.size = request.size;
  PoolBlock rest = found;
  rest.address = front.end();
  rest.size = found.size - request.size;
  const std::array<PoolBlock, 2> carved{front, rest};
  splice(i, 1, carved.data(), carved.size());
  return front.address;
}

Status BlockPoolModel::release(Address address, std::uint64_t stamp) {
  const std::size_t i = at(address);
  if (i == kNowhere || !owned(map_.blocks[i])) return kUnknown;
  if (map_.blocks[i].state == PoolState::kPending)
    return {Code::kDoubleFree, "the block's free is pending"};
  free_at(i, stamp);
  return Status::ok();
}

Status BlockPoolModel::defer(Address address) {
  const std::size_t i = at(address);
  if (i == kNowhere || !owned(map_.blocks[i])) return kUnknown;
  if (map_.blocks[i].state == PoolState::kPending)
    return {Code::kDoubleFree, "the block's free is pending"};
  map_.blocks[i].state = PoolState::kPending;
  return Status::ok();
}

Status BlockPoolModel::complete(Address address, std::uint64_t stamp) {
  const std::size_t i = at(address);
  if (i == kNowhere || !owned(map_.blocks[i])) return kUnknown;
  if (map_.blocks[i].state == PoolState::kLive) return {Code::kBusy, "the block is live"};
  free_at(i, stamp);
  return Status::ok();
}

Status BlockPoolModel::lift(Address address) {
  const std::size_t i = at(address);
  if (i == kNowhere || map_.blocks[i].state != PoolState::kFree)
    return {Code::kNotFound, "no free block is there"};
  map_.blocks[i].state = PoolState::kInTransfer;
  return Status::ok();
}

Status BlockPoolModel::lower(Address address, std::uint64_t stamp) {
  const std::size_t i = at(address);
  if (i == kNowhere || map_.blocks[i].state != PoolState::kInTransfer) {
    return {Code::kNotFound, "no block in transfer is there"};
  }
  free_at(i, stamp);
  return Status::ok();
}

Status BlockPoolModel::divide(Address address, Bytes size) {
  const std::size_t i = at(address);
  if (i == kNowhere || map_.blocks[i].state != PoolState::kInTransfer)
    return {Code::kNotFound, "no block in transfer is there"};
  if (size == Bytes{} || size >= map_.blocks[i].size)
    return {Code::kInvalidArgument, "a part without bytes"};
  PoolBlock parts[2] = {map_.blocks[i], map_.blocks[i]};
  parts[0].size = size;
  parts[1].address = parts[1].address + size;
  parts[1].size -= size;
  splice(i, 1, parts, 2);
  return Status::ok();
}

Status BlockPoolModel::take_lifted(Address address, Bytes requested, std::uint64_t user) {
  const std::size_t i = at(address);
  if (i == kNowhere || map_.blocks[i].state != PoolState::kInTransfer)
    return {Code::kNotFound, "no block in transfer is there"};
  PoolBlock& block = map_.blocks[i];
  if (requested > block.size) return {Code::kInvalidArgument, "more is requested than it has"};
  block.state = PoolState::kLive;
  block.requested = requested;
  block.user = user;
  block.stamp = 0;
  return Status::ok();
}

Status BlockPoolModel::unmap(Address address) {
  const std::size_t i = at(address);
  if (i == kNowhere || map_.blocks[i].state != PoolState::kInTransfer ||
      !is_reserved(map_.blocks[i].segment))
    return {Code::kNotFound, "no block in transfer of a reserved segment is there"};
  map_.blocks[i].state = PoolState::kUnmapped;
  map_.blocks[i].stamp = 0;
  join_at(i);
  return Status::ok();
}

Status BlockPoolModel::lift_unmapped(Address address) {
  const std::size_t i = at(address);
  if (i == kNowhere || map_.blocks[i].state != PoolState::kUnmapped)
    return {Code::kNotFound, "no unmapped block is there"};
  map_.blocks[i].state = PoolState::kInTransfer;
  return Status::ok();
}

bool BlockPoolModel::is_reserved(Address segment) const {
  return std::find(reserved_.begin(), reserved_.end(), segment) != reserved_.end();
}

bool BlockPoolModel::owns(Address address) const {
  const std::size_t i = at(address);
  return i != kNowhere && owned(map_.blocks[i]);
}

const PoolBlock* BlockPoolModel::nth(PoolState state, std::uint64_t n) const {
  std::uint64_t count = 0;
  for (const PoolBlock& block : map_.blocks) count += block.state == state;
  if (count == 0) return nullptr;
  n %= count;
  for (const PoolBlock& block : map_.blocks) {
    if (block.state == state && n-- == 0) return &block;
  }
  return nullptr;
}

const PoolBlock* BlockPoolModel::nth_to_unmap(std::uint64_t n) const {
  std::vector<const PoolBlock*> found;
  for (const PoolBlock& block : map_.blocks) {
    if (block.state == PoolState::kInTransfer && is_reserved(block.segment))
      found.push_back(&block);
  }
  return found.empty() ? nullptr : found[n % found.size()];
}

const PoolBlock* BlockPoolModel::nth_idle(std::uint64_t n) const {
  std::uint64_t count = 0;
  for (const PoolBlock& block : map_.blocks) count += is_idle(block);
  if (count == 0) return nullptr;
  n %= count;
  for (const PoolBlock& block : map_.blocks) {
    if (is_idle(block) && n-- == 0) return &block;
  }
  return nullptr;
}

std::size_t BlockPoolModel::at(Address address) const {
  for (std::size_t i = 0; i < map_.blocks.size(); ++i) {
    if (map_.blocks[i].address == address) return i;
  }
  return kNowhere;
}

std::size_t BlockPoolModel::best_fit(const PoolRequest& request) const {
  std::size_t best = kNowhere;
  for (std::size_t i = 0; i < map_.blocks.size(); ++i) {
    const PoolBlock& block = map_.blocks[i];
    if (block.state != PoolState::kFree || block.size < request.size ||
        block.size >= request.size_end)
      continue;
    // of equal sizes in one segment the first has the lowest address
    const auto is_before = [this](const PoolBlock& a, const PoolBlock& b) {
      return a.size < b.size || (a.size == b.size && ordinal_of(a) < ordinal_of(b));
    };
    if (best == kNowhere || is_before(block, map_.blocks[best])) best = i;
  }
  return best;
}

std::uint64_t BlockPoolModel::ordinal_of(const PoolBlock& block) const {
  for (const PoolSegment& segment : map_.segments) {
    if (segment.base == block.segment) return segment.ordinal;
  }
  return 0;
}

bool BlockPoolModel::is_idle(const PoolBlock& block) const {
  if (block.state != PoolState::kFree || block.address != block.segment) return false;
  for (const PoolSegment& segment : map_.segments) {
    if (segment.base == block.segment) return segment.size == block.size;
  }
  return false;
}

bool BlockPoolModel::joins(std::size_t left, std::size_t right) const {
  const PoolBlock& a = map_.blocks[left];
  const PoolBlock& b = map_.blocks[right];
  const bool merges = a.state == PoolState::kFree || a.state == PoolState::kUnmapped;
  return merges && a.state == b.state && a.segment == b.segment;
}

void BlockPoolModel::splice(std::size_t first, std::size_t count, const PoolBlock* into,
                            std::size_t into_count) {
  const std::size_t same = std::min(count, into_count);
  std::copy(into, into + same, map_.blocks.begin() + static_cast<std::ptrdiff_t>(first));
  const auto rest = map_.blocks.begin() + static_cast<std::ptrdiff_t>(first + same);
  if (count > same) map_.blocks.erase(rest, rest + static_cast<std::ptrdiff_t>(count - same));
  if (into_count > same) map_.blocks.insert(rest, into + same, into + into_count);
}

void BlockPoolModel::free_at(std::size_t index, std::uint64_t stamp) {
  PoolBlock& freed = map_.blocks[index];
  freed.state = PoolState::kFree;
  freed.stamp = stamp;
  freed.requested = Bytes{};
  freed.user = 0;
  join_at(index);
}

void BlockPoolModel::join_at(std::size_t index) {
  std::size_t first = index;
  std::size_t count = 1;
  PoolBlock whole = map_.blocks[index];
  if (index + 1 < map_.blocks.size() && joins(index, index + 1)) {
    whole = join(whole, map_.blocks[index + 1]);
    count += 1;
  }
  if (index > 0 && joins(index - 1, index)) {
    whole = join(map_.blocks[index - 1], whole);
    first -= 1;
    count += 1;
  }
  splice(first, count, &whole, 1);
}

}  // namespace ashlar::spec
