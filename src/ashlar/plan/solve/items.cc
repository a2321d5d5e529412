#include <ashlar/plan/solve/items.h>

#include <algorithm>
#include <map>
#include <numeric>

#include <ashlar/base/checked.h>

#include <ashlar/plan/live.h>

namespace ashlar::inline v0::plan::solve {
namespace {

/// A stretch of time in which an item has one height.
struct Stretch {
  Lifetime life;
  std::uint64_t height;
  ItemIndex item;
};

/// Appends the pieces of a buffer's life.
void append_stretches(const Problem& problem, const Buffer& buffer, ItemIndex item,
                      std::vector<Stretch>* out) {
  for (std::uint32_t k = 0; k < live_pieces(buffer); ++k) {
    out->push_back({live_piece(problem, buffer, k), buffer.size.count(), item});
  }
}

/// Replaces the stretches of several buffers of one item by stretches that do not overlap, as high
/// at each time as the highest of them.
void flatten(std::vector<Stretch>* stretches) {
  std::vector<Time> times;
  for (const Stretch& s : *stretches) {
    times.push_back(s.life.lower);
    times.push_back(s.life.upper);
  }
  std::sort(times.begin(), times.end());
  times.erase(std::unique(times.begin(), times.end()), times.end());
  std::vector<std::uint64_t> heights(times.size(), 0);
  for (const Stretch& s : *stretches) {
    const auto at = std::lower_bound(times.begin(), times.end(), s.life.lower) - times.begin();
    for (auto i = static_cast<std::size_t>(at); times[i] < s.life.upper; ++i)
      heights[i] = std::max(heights[i], s.height);
  }
  const ItemIndex item = stretches->front().item;
  stretches->clear();
  for (std::size_t i = 0; i + 1 < times.size(); ++i) {
    if (heights[i] == 0) continue;
    if (!stretches->empty() && stretches->back().life.upper == times[i] &&
        stretches->back().height == heights[i]) {
      stretches->back().life.upper = times[i + 1];
    } else {
      stretches->push_back({{times[i], times[i + 1]}, heights[i], item});
    }
  }
}

struct Draft {
  std::vector<Stretch> stretches;  // by item, then time
  Items items;
};

void add_item(Draft* draft, const Buffer& buffer) {
  draft->items.items.push_back(
      Item{0, 0, 0, 0, 0, static_cast<Units>(buffer.alignment.count()),
           buffer.pinned == kNowhere ? kNotPinned : static_cast<Units>(buffer.pinned.count())});
}

/// The items and their stretches, in bytes.
Draft make_draft(const Problem& problem, std::uint32_t space) {
  Draft draft;
  draft.items.item_of.assign(problem.buffers.size(), kNoItem);
  std::map<std::uint32_t, std::vector<std::uint32_t>> groups;
  for (std::uint32_t b = 0; b < problem.buffers.size(); ++b) {
    const Buffer& buffer = problem.buffers[b];
    if (buffer.space != space) continue;
    if (buffer.group != kNoGroup) {
      groups[buffer.group].push_back(b);
      continue;
    }
    draft.items.item_of[b] = draft.items.size();
    append_stretches(problem, buffer, draft.items.size(), &draft.stretches);
    add_item(&draft, buffer);
  }
  for (const auto& [group, members] : groups) {
    const ItemIndex index = draft.items.size();
    std::vector<Stretch> of_group;
    add_item(&draft, problem.buffers[members.front()]);
    Item& item = draft.items.items.back();
    for (const std::uint32_t b : members) {
      const Buffer& buffer = problem.buffers[b];
      draft.items.item_of[b] = index;
      append_stretches(problem, buffer, index, &of_group);
      item.alignment = std::max(item.alignment, static_cast<Units>(buffer.alignment.count()));
      if (buffer.pinned != kNowhere) item.pinned = static_cast<Units>(buffer.pinned.count());
    }
    flatten(&of_group);
    draft.stretches.insert(draft.stretches.end(), of_group.begin(), of_group.end());
  }
  return draft;
}

/// The greatest number that divides every height, every alignment above one, and every pin.
std::uint64_t common_unit(const Draft& draft) {
  std::uint64_t unit = 0;
  for (const Stretch& s : draft.stretches) unit = std::gcd(unit, s.height);
  for (const Item& item : draft.items.items) {
    if (item.alignment > 1) unit = std::gcd(unit, static_cast<std::uint64_t>(item.alignment));
    if (item.pinned > 0) unit = std::gcd(unit, static_cast<std::uint64_t>(item.pinned));
  }
  return std::max<std::uint64_t>(unit, 1);
}

/// Makes a piece of every stretch: finds its sections.
void number_sections(Draft* draft) {
  struct Moment {
    Time at;
    bool begins;  // at one time, ends come before beginnings: lifetimes are half-open
    std::uint32_t stretch;
  };
  std::vector<Moment> moments;
  moments.reserve(2 * draft->stretches.size());
  for (std::uint32_t i = 0; i < draft->stretches.size(); ++i) {
    moments.push_back({draft->stretches[i].life.lower, true, i});
    moments.push_back({draft->stretches[i].life.upper, false, i});
  }
  std::sort(moments.begin(), moments.end(), [](const Moment& a, const Moment& b) {
    if (a.at != b.at) return a.at < b.at;
    return a.begins != b.begins ? b.begins : a.stretch < b.stretch;
  });
  Items& items = draft->items;
  items.pieces.resize(draft->stretches.size());
  Section sections = 0;
  bool one_has_ended = true;
  for (const Moment& moment : moments) {
    if (!moment.begins) {
      items.pieces[moment.stretch].last = sections;
      one_has_ended = true;
      continue;
    }
    if (one_has_ended) sections += 1;
    one_has_ended = false;
    items.pieces[moment.stretch].first = sections - 1;
    items.moment.resize(sections);
    items.moment.back() = moment.at;  // the last beginning, before anything of the section ends
  }
  items.load.assign(sections, 0);
}

/// The greatest sum of heights in a section, or end of a pinned item: in bytes, before rounding.
/// REQUIRES: sections are numbered.
std::uint64_t least_peak(const Draft& draft) {
  const Items& items = draft.items;
  // Differences from the section before; partial_sum() adds them up. They wrap around, the sums do
  // not: a sound problem's sizes add up to at most 2^62.
  std::vector<std::uint64_t> load(items.sections() + std::size_t{1}, 0);
  std::uint64_t most = 0;
  for (std::size_t p = 0; p < items.pieces.size(); ++p) {
    const Stretch& stretch = draft.stretches[p];
    load[items.pieces[p].first] += stretch.height;
    load[items.pieces[p].last] -= stretch.height;
    const Units pinned = items.items[stretch.item].pinned;
    if (pinned != kNotPinned)
      most = std::max(most, static_cast<std::uint64_t>(pinned) + stretch.height);
  }
  std::partial_sum(load.begin(), load.end(), load.begin());
  return std::max(most, *std::max_element(load.begin(), load.end()));
}

/// The draft with numbered sections, and the bound that does not depend on rounding.
Draft numbered_draft(const Problem& problem, std::uint32_t space) {
  Draft draft = make_draft(problem, space);
  number_sections(&draft);
  draft.items.lower_bound_unrounded = Bytes{least_peak(draft)};
  return draft;
}

/// Rounds the heights up to the alignment of all items, if they have one.
void round_heights(Draft* draft) {
  const std::vector<Item>& items = draft->items.items;
  const auto differs = [&](const Item& item) { return item.alignment != items[0].alignment; };
  if (items.empty() || std::any_of(items.begin(), items.end(), differs)) return;
  const Bytes alignment{static_cast<std::uint64_t>(items[0].alignment)};
  std::uint64_t most = 0;
  for (Stretch& stretch : draft->stretches) {
    const std::uint64_t rounded = round_up(Bytes{stretch.height}, alignment).count();
    most = std::max(most, rounded - stretch.height);
    stretch.height = rounded;
  }
  draft->items.rounding = Bytes{most};
}

Items items_of(Draft draft) {
  const auto unit = static_cast<Units>(common_unit(draft));
  Items& items = draft.items;
  items.unit = Bytes{static_cast<std::uint64_t>(unit)};

  for (std::uint32_t p = 0; p < items.pieces.size(); ++p) {
    const Stretch& stretch = draft.stretches[p];
    Piece& piece = items.pieces[p];
    Item& item = items.items[stretch.item];
    piece.height = static_cast<Units>(stretch.height) / unit;
    if (item.height == 0) {
      item.pieces_begin = p;
      item.first = piece.first;
    }
    item.pieces_end = p + 1;
    item.last = piece.last;
    item.height = std::max(item.height, piece.height);
    // Differences from the section before; partial_sum() below adds them up.
    items.load[piece.first] += piece.height;
    if (piece.last < items.sections()) items.load[piece.last] -= piece.height;
  }
  std::partial_sum(items.load.begin(), items.load.end(), items.load.begin());
  for (const Units load : items.load) items.lower_bound = std::max(items.lower_bound, load);
  for (Item& item : items.items) {
    item.alignment = std::max<Units>(item.alignment / unit, 1);
    if (item.pinned != kNotPinned) {
      item.pinned /= unit;
      items.lower_bound = std::max(items.lower_bound, item.pinned + item.height);
    }
  }
  return std::move(draft.items);
}

}  // namespace

Items make_items(const Problem& problem, std::uint32_t space) {
  return items_of(numbered_draft(problem, space));
}

Items make_rounded_items(const Problem& problem, std::uint32_t space) {
  Draft draft = numbered_draft(problem, space);
  round_heights(&draft);
  return items_of(std::move(draft));
}

Bytes peak_in_bytes(const Problem& problem, const Items& items, const std::vector<Units>& offsets) {
  Bytes peak;
  for (std::uint32_t b = 0; b < items.item_of.size(); ++b) {
    if (items.item_of[b] == kNoItem) continue;
    const auto offset = static_cast<std::uint64_t>(offsets[items.item_of[b]]);
    peak = std::max(peak, items.unit * offset + problem.buffers[b].size);
  }
  return peak;
}

Units peak_of(const Items& items, const std::vector<Units>& offsets) {
  Units peak = 0;
  for (ItemIndex i = 0; i < items.size(); ++i)
    peak = std::max(peak, offsets[i] + items.items[i].height);
  return peak;
}

std::uint64_t cover_of(const Items& items) {
  std::uint64_t cover = 0;
  for (const Piece& piece : items.pieces) cover += piece.last - piece.first;
  return cover;
}

void write_offsets(const Items& items, const std::vector<Units>& offsets, std::vector<Bytes>* out) {
  for (std::uint32_t b = 0; b < items.item_of.size(); ++b) {
    const ItemIndex item = items.item_of[b];
    if (item != kNoItem) (*out)[b] = items.unit * static_cast<std::uint64_t>(offsets[item]);
  }
}

}  // namespace ashlar::inline v0::plan::solve
