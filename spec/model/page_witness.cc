#include "spec/model/page_witness.h"

#include <algorithm>

namespace ashlar::spec {

void PageWitness::on_create(PageHandle page, std::uint64_t size) {
  size_of_[page.value()] = size;
  held_bytes_ += size;
}

void PageWitness::on_release(PageHandle page) {
  const auto found = size_of_.find(page.value());
  if (found == size_of_.end()) return;
  held_bytes_ -= found->second;
  size_of_.erase(found);
}

void PageWitness::on_access(std::uint64_t at, std::uint64_t size) {
  const std::uint64_t usable_before = usable_bytes_;
  cut(at, at + size);  // what was usable before counts once
  Range joined{at, at + size};
  const auto is_before = [](const Range& range, std::uint64_t address) {
    return range.end < address;
  };
  const auto first = std::lower_bound(usable_.begin(), usable_.end(), at, is_before);
  auto last = first;
  for (; last != usable_.end() && last->begin <= joined.end; ++last) {
    joined.begin = std::min(joined.begin, last->begin);
    joined.end = std::max(joined.end, last->end);
  }
  usable_.insert(usable_.erase(first, last), joined);
  usable_bytes_ += size;
  gained_bytes_ += usable_bytes_ - usable_before;
}

void PageWitness::on_unmap(std::uint64_t at, std::uint64_t size) {
  const std::uint64_t usable_before = usable_bytes_;
  cut(at, at + size);
  lost_bytes_ += usable_before - usable_bytes_;
}

void PageWitness::cut(std::uint64_t begin, std::uint64_t end) {
  std::vector<Range> rest;
  for (const Range& range : usable_) {
    if (range.begin < begin) rest.push_back({range.begin, std::min(range.end, begin)});
    if (range.end > end) rest.push_back({std::max(range.begin, end), range.end});
    const std::uint64_t from = std::max(range.begin, begin);
    const std::uint64_t to = std::min(range.end, end);
    if (from < to) usable_bytes_ -= to - from;
  }
  usable_ = std::move(rest);
}

}  // namespace ashlar::spec
