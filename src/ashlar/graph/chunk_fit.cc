#include <ashlar/graph/chunk_fit.h>

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

namespace ashlar::inline v0::graph {
namespace {

struct PlacedItem {
  Bytes offset;
  ChunkItem item;
};

/// A buffer that is being filled; its items by ascending offset.
struct Chunk {
  Bytes limit;
  Bytes peak;
  std::vector<PlacedItem> placed;
};

/// The lowest offset at which the item fits, Bytes::max() if it does not.
Bytes lowest_fit(const Chunk& chunk, const ChunkItem& item) {
  Bytes at;
  for (const PlacedItem& other : chunk.placed) {
    if (other.item.begin >= item.end || item.begin >= other.item.end) continue;
    if (other.offset >= at && other.offset - at >= item.size) break;
    at = std::max(at, other.offset + other.item.size);
  }
  return at <= chunk.limit && chunk.limit - at >= item.needed ? at : Bytes::max();
}

void place(Chunk* chunk, Bytes offset, const ChunkItem& item) {
  const auto behind =
      std::upper_bound(chunk->placed.begin(), chunk->placed.end(), offset,
                       [](Bytes value, const PlacedItem& placed) { return value < placed.offset; });
  chunk->placed.insert(behind, PlacedItem{offset, item});
  chunk->peak = std::max(chunk->peak, offset + item.size);
}

/// Fits the items in that order. Returns the sum of the chunks' peaks.
Bytes fit_in_order(std::span<const ChunkItem> items, std::span<const std::uint32_t> order,
                   Bytes limit, std::vector<ChunkPlace>* places) {
  std::vector<Chunk> chunks;
  for (const std::uint32_t k : order) {
    const ChunkItem& item = items[k];
    std::uint32_t c = 0;
    Bytes offset = Bytes::max();
    for (; c < chunks.size(); ++c) {
      offset = lowest_fit(chunks[c], item);
      if (offset != Bytes::max()) break;
    }
    if (c == chunks.size()) {
      chunks.push_back({std::max(limit, item.needed), {}, {}});
      offset = Bytes{};
    }
    place(&chunks[c], offset, item);
    (*places)[k] = {c, offset};
  }
  Bytes sum;
  for (const Chunk& chunk : chunks) sum += chunk.peak;
  return sum;
}

}  // namespace

std::vector<ChunkPlace> fit_chunks(std::span<const ChunkItem> items, Bytes limit) {
  std::vector<std::uint32_t> order(items.size());
  std::iota(order.begin(), order.end(), 0);
  std::vector<ChunkPlace> best(items.size()), places(items.size());
  Bytes least = Bytes::max();
  const auto try_order = [&](const auto& comes_first) {
    std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      if (comes_first(items[a], items[b])) return true;
      return !comes_first(items[b], items[a]) && a < b;
    });
    const Bytes sum = fit_in_order(items, order, limit, &places);
    if (sum >= least) return;
    least = sum;
    best = places;
  };
  try_order([](const ChunkItem& a, const ChunkItem& b) { return a.begin < b.begin; });
  try_order([](const ChunkItem& a, const ChunkItem& b) { return a.size > b.size; });
  try_order([](const ChunkItem& a, const ChunkItem& b) {
    const auto area = [](const ChunkItem& item) {
      return static_cast<double>(item.size.count()) * (item.end - item.begin);
    };
    return area(a) > area(b);
  });
  return best;
}

}  // namespace ashlar::inline v0::graph
