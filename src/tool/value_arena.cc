#include "src/tool/value_arena.h"

#include <ashlar/base/assert.h>

namespace ashlar::tool {
namespace {

constexpr std::uint64_t kNoChunks = ~std::uint64_t{0};  // Value::bits of an empty container

bool is_container(ValueKind kind) {
  return kind == ValueKind::kList || kind == ValueKind::kTuple || kind == ValueKind::kDict;
}

}  // namespace

std::optional<ValueId> ValueArena::add(ValueKind kind, std::uint64_t bits) {
  if (values_.size() >= kDocumentValuesMax) return std::nullopt;
  const ValueId id{static_cast<std::uint32_t>(values_.size())};
  values_.push_back({is_container(kind) ? kNoChunks : bits, 0, kind});
  return id;
}

std::optional<ValueId> ValueArena::add_text(std::string_view piece) {
  const auto offset = static_cast<std::uint64_t>(piece.data() - source_.data());
  const auto id = add(ValueKind::kText, offset);
  if (id) values_.back().length = static_cast<std::uint32_t>(piece.size());
  return id;
}

std::optional<ValueId> ValueArena::add_copy(std::string_view text) {
  const bool is_short = text.size() <= kSharedTextMax;
  if (is_short) {
    const auto known = shared_.find(std::string(text));
    if (known != shared_.end()) return known->second;
  }
  const auto id = add(ValueKind::kText, copies_.size() | kIsCopy);
  if (!id) return id;
  values_.back().length = static_cast<std::uint32_t>(text.size());
  copies_ += text;
  if (is_short && shared_.size() < kSharedTextsMax) shared_.emplace(text, *id);
  return id;
}

bool ValueArena::append(ValueId container, std::span<const ValueId> values) {
  Value& value = values_[container.value()];
  ASHLAR_ASSERT(is_container(value.kind), "values: only containers hold values");
  if (values.empty()) return true;
  if (ids_.size() + values.size() > 2 * kDocumentValuesMax) return false;
  const auto index = static_cast<std::uint32_t>(chunks_.size());
  const auto count = static_cast<std::uint32_t>(values.size());
  chunks_.push_back({static_cast<std::uint32_t>(ids_.size()), count, kNoChunk});
  ids_.insert(ids_.end(), values.begin(), values.end());
  // Of a container, bits are the first chunk's index, and above it the last one's.
  std::uint64_t first = index;
  if (value.bits != kNoChunks) {
    first = value.bits & 0xffffffffu;
    chunks_[value.bits >> 32].next = index;
  }
  value.bits = (std::uint64_t{index} << 32) | first;
  value.length += count;
  return true;
}

std::string_view ValueArena::text(ValueId id) const {
  const Value& value = values_[id.value()];
  ASHLAR_ASSERT(value.kind == ValueKind::kText, "values: text of a text alone");
  const std::string_view all = (value.bits & kIsCopy) != 0 ? std::string_view(copies_) : source_;
  return all.substr(value.bits & ~kIsCopy, value.length);
}

template <class Visit>
void ValueArena::visit_chunks(ValueId container, Visit visit) const {
  const Value& value = values_[container.value()];
  if (!is_container(value.kind) || value.bits == kNoChunks) return;
  std::uint32_t at = value.bits & 0xffffffffu;
  while (at != kNoChunk) {
    const Chunk& chunk = chunks_[at];
    visit(std::span<const ValueId>(ids_).subspan(chunk.begin, chunk.count));
    at = chunk.next;
  }
}

std::optional<ValueId> ValueArena::find(ValueId dict, std::string_view key) const {
  std::optional<ValueId> found;
  if (values_[dict.value()].kind != ValueKind::kDict) return found;
  visit_chunks(dict, [&](std::span<const ValueId> pairs) {
    for (std::size_t i = 0; i + 1 < pairs.size(); i += 2) {
      if (values_[pairs[i].value()].kind == ValueKind::kText && text(pairs[i]) == key)
        found = pairs[i + 1];
    }
  });
  return found;
}

std::vector<ValueId> ValueArena::items(ValueId container) const {
  std::vector<ValueId> all;
  all.reserve(values_[container.value()].length);
  visit_chunks(container, [&](std::span<const ValueId> ids) {
    all.insert(all.end(), ids.begin(), ids.end());
  });
  return all;
}

}  // namespace ashlar::tool
