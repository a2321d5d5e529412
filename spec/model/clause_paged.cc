// C1, C14, DEV-10: pages. What a snapshot shows as memory of a paged segment is mapped with access,
// no page at two addresses, no page is held for nothing, and each is mapped at few addresses. See
// cache_clauses.h.
#include <vector>

#include "spec/model/cache_clauses.h"
#include "spec/model/settings.h"

namespace ashlar::spec {

RangeSet shown_pages(const JudgedDevice& device) {
  RangeSet shown;
  const cache::Snapshot& map = device.map.view;
  for (std::size_t i = 0; i < map.segments.size(); ++i) {
    const cache::SnapshotSegment& segment = map.segments[i];
    if (!device.ledger.witness().segments()[i].is_paged) continue;
    for (std::uint32_t b = 0; b < segment.block_count; ++b) {
      const cache::SnapshotBlock& block = map.blocks[segment.block_first + b];
      if (block.state == BlockState::kUnmapped) continue;
      const std::uint64_t begin = block.address.value();
      shown.add({begin, begin + block.size.count()});
    }
  }
  return shown;
}

namespace {

/// What the pages under the shown memory are.
struct ShownPages {
  std::uint64_t bytes = 0;          ///< of those whose handles are held
  const char* objection = nullptr;  ///< what C1 has against them
};

ShownPages pages_under(const RangeSet& shown, const PageWitness& pages) {
  ShownPages under;
  std::vector<bool> is_shown(pages.page_indices());
  for (const AddressRange& range : shown.ranges()) {
    std::uint64_t reached = range.begin;
    for (auto at = pages.mapping_after(reached); reached < range.end; ++at) {
      const bool is_mapped = at != pages.mappings().end() && at->begin == reached &&
                             at->end <= range.end && at->has_access;
      under.objection = !is_mapped           ? "the map shows other bytes as memory than have pages"
                        : is_shown[at->page] ? "one page is shown as memory at two addresses"
                                             : nullptr;
      if (under.objection != nullptr) return under;
      is_shown[at->page] = true;
      reached = at->end;
      if (!pages.is_released(at->page)) under.bytes += at->end - at->begin;
    }
  }
  return under;
}

/// The addresses that a page may be mapped at. A mapping that the device refuses to take back stays besides.
constexpr std::uint32_t kAddressesMax = 5;

void judge_addresses(CacheState& state, const PageWitness& pages) {
  for (std::uint32_t page = 0; page < pages.page_indices(); ++page) {
    if (pages.addresses_of(page) > kAddressesMax)
      return state.verdict.report("DEV-10", "a page is mapped at ", pages.addresses_of(page),
                                  " addresses");
  }
}

}  // namespace

bool has_refused_pages(const CacheState& state, const JudgedDevice& device) {
  const DeviceWitness& witness = device.ledger.witness();
  return witness.failures_of(device::CallKind::kPageUnmap) +
                 witness.failures_of(device::CallKind::kPageRelease) !=
             0 ||
         end_of(state, device) != Code::kOk;
}

void judge_pages(CacheState& state, const JudgedDevice& device) {
  const PageWitness& pages = device.ledger.witness().pages();
  if (pages.held_bytes() == 0 && pages.gained_bytes() == 0) return;
  if (!has_refused_pages(state, device)) judge_addresses(state, pages);
  const ShownPages under = pages_under(shown_pages(device), pages);
  if (under.objection != nullptr) return state.verdict.report("C1", under.objection);
  // A page that the device refused to unmap may be held, though the subject uses it for nothing.
  if (pages.held_bytes() != under.bytes && !has_refused_pages(state, device))
    state.verdict.report("C14", pages.held_bytes(), " bytes of pages are held, but ", under.bytes,
                         " are shown as memory");
}

bool is_paged(const JudgedDevice& device, const cache::SnapshotSegment& segment) {
  const std::vector<DeviceWitness::Held>& held = device.ledger.witness().segments();
  return std::any_of(held.begin(), held.end(), [&segment](const DeviceWitness::Held& each) {
    return each.base == segment.base.value() && each.is_paged;
  });
}

std::uint64_t whole_page_bytes(const JudgedDevice& device, const cache::SnapshotSegment& segment,
                               bool pending_too) {
  const cache::Snapshot& map = device.map.view;
  std::uint64_t bytes = 0;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  const auto count = [&] {
    const std::uint64_t base = segment.base.value();
    const std::uint64_t first = (begin - base + kPageBytes - 1) / kPageBytes;
    const std::uint64_t last = (end - base) / kPageBytes;
    if (last <= first) return;
    bytes += (last - first) * kPageBytes;
    for (std::uint64_t i = first; i < last && !device.pins.is_empty(); ++i) {
      const std::uint64_t page = base + i * kPageBytes;
      if (device.pins.touches({page, page + kPageBytes})) bytes -= kPageBytes;
    }
  };
  begin = end = segment.base.value();
  for (std::uint32_t i = 0; i < segment.block_count; ++i) {
    const cache::SnapshotBlock& block = map.blocks[segment.block_first + i];
    const bool is_obtainable =
        block.state == BlockState::kFree || (pending_too && block.state == BlockState::kPending);
    if (is_obtainable && end != block.address.value()) begin = block.address.value();
    if (is_obtainable) end = block.address.value() + block.size.count();
    const bool is_last = i + 1 == segment.block_count;
    if (is_obtainable && !is_last) continue;
    count();
    begin = end = block.address.value() + block.size.count();
  }
  return bytes;
}

void judge_segment_of_pages(CacheState& state, const JudgedDevice& device, std::uint64_t rounded) {
  const cache::Config& config = state.rules.config();
  const DeviceWitness& witness = device.ledger.witness();
  const std::uint64_t asked = witness.segment_asked();
  const std::uint64_t pages = growth_size(state, rounded);
  // Of pages that the call gave back the judge does not know whether that was before.
  const std::uint64_t held =
      std::max(device.ledger.reserved_before(), witness.pages().held_bytes());
  const bool is_over_budget =
      config.page_handles_max != 0 && (held + pages) / kPageBytes > config.page_handles_max;
  if (asked == pages && is_over_budget) return;
  const std::uint64_t first = config.first_growth.count();
  if (first == 0 || asked != std::max(first, pages) ||
      state.rules.pool_of(rounded) != PoolId::kLarge || device.ladder.was_surely_short_before) {
    state.verdict.report("DEV-10", "a segment of ", asked, " bytes was asked for, not pages");
    return;
  }
  const std::uint64_t early_max = std::min(device.memory.limit, witness.total()) / 4;
  // What a collection gave back before does not count (row DEV-11).
  std::uint64_t back = device.ledger.lost_bytes();
  for (const DeviceWitness::Held& each : witness.grants().returned())
    back += each.is_paged ? 0 : each.size;
  const std::uint64_t before = device.ledger.reserved_before();
  if (before - std::min(before, back) + asked > early_max)
    state.verdict.report("DEV-10", "a first growth of ", asked, " bytes to over ", early_max);
}

void judge_page_budget(CacheState& state, const JudgedDevice& device) {
  const std::uint64_t most = state.rules.config().page_handles_max;
  const std::uint64_t held = device.ledger.witness().pages().held_bytes_max() / kPageBytes;
  if (most != 0 && held > most)
    state.verdict.report("DEV-10", held, " pages existed at a time, ", most, " are permitted");
}

}  // namespace ashlar::spec
