#include "spec/model/page_witness.h"

#include <algorithm>

namespace ashlar::spec {

void PageWitness::on_create(PageHandle page, std::uint64_t size) {
  std::uint32_t index = static_cast<std::uint32_t>(pages_.size());
  if (unused_.empty()) {
    pages_.emplace_back();
  } else {
    index = unused_.back();
    unused_.pop_back();
  }
  pages_[index] = Page{size, 0, 0, false, next_byte_};
  next_byte_ += size;
  index_of_[page.value()] = index;
  held_bytes_ += size;
  held_bytes_max_ = std::max(held_bytes_max_, held_bytes_);
}

void PageWitness::on_release(PageHandle page) {
  const auto found = index_of_.find(page.value());
  if (found == index_of_.end()) return;
  const std::uint32_t index = found->second;
  index_of_.erase(found);
  pages_[index].is_released = true;
  drop_if_unused(index);
}

void PageWitness::drop_if_unused(std::uint32_t index) {
  const Page& page = pages_[index];
  if (!page.is_released || page.mappings != 0) return;
  held_bytes_ -= page.size;
  unused_.push_back(index);
}

std::vector<PageWitness::Mapping>::const_iterator PageWitness::mapping_after(
    std::uint64_t address) const {
  return std::lower_bound(
      mappings_.begin(), mappings_.end(), address,
      [](const Mapping& mapping, std::uint64_t value) { return mapping.end <= value; });
}

bool PageWitness::any_alias_in(const AddressRange& range, const RangeSet& set) const {
  std::vector<bool> is_in_range(pages_.size());
  for (auto at = mapping_after(range.begin); at != mappings_.end() && at->begin < range.end; ++at)
    is_in_range[at->page] = true;
  return std::any_of(mappings_.begin(), mappings_.end(), [&](const Mapping& each) {
    const AddressRange there{each.begin, each.end};
    return is_in_range[each.page] && !there.touches(range) && set.touches(there);
  });
}

std::vector<ByteRange> PageWitness::bytes_at(std::uint64_t begin, std::uint64_t end) const {
  std::vector<ByteRange> bytes;
  for (auto mapping = mapping_after(begin); begin < end; ++mapping) {
    const bool is_last = mapping == mappings_.end() || mapping->begin >= end;
    const std::uint64_t bare = is_last ? end : std::max(begin, mapping->begin);
    if (begin < bare) bytes.push_back({begin, bare});
    if (is_last) break;
    const std::uint64_t first = pages_[mapping->page].first_byte;
    const std::uint64_t stop = std::min(end, mapping->end);
    bytes.push_back({first + (bare - mapping->begin), first + (stop - mapping->begin)});
    begin = stop;
  }
  return bytes;
}

void PageWitness::on_map(std::uint64_t at, std::uint64_t size, PageHandle page) {
  const auto found = index_of_.find(page.value());
  if (found == index_of_.end()) return;
  mappings_.insert(mapping_after(at), Mapping{at, at + size, found->second});
  ++pages_[found->second].mappings;
}

void PageWitness::on_access(std::uint64_t at, std::uint64_t size) {
  for (auto i = static_cast<std::size_t>(mapping_after(at) - mappings_.begin());
       i < mappings_.size() && mappings_[i].begin < at + size; ++i) {
    Mapping& mapping = mappings_[i];
    if (mapping.has_access) continue;
    mapping.has_access = true;
    Page& page = pages_[mapping.page];
    address_bytes_ += page.size;
    if (page.accesses++ == 0) gained_bytes_ += page.size;
  }
}

void PageWitness::on_unmap(std::uint64_t at, std::uint64_t size) {
  const auto first = mapping_after(at);
  auto last = first;
  for (; last != mappings_.end() && last->begin < at + size; ++last) {
    Page& page = pages_[last->page];
    --page.mappings;
    if (last->has_access) {
      address_bytes_ -= page.size;
      if (--page.accesses == 0) lost_bytes_ += page.size;
    }
    drop_if_unused(last->page);
  }
  mappings_.erase(first, last);
}

}  // namespace ashlar::spec
