// A document of plain values, as a pickle or JSON says it: lists, tuples, dicts, text and numbers.
//
// Purpose: the readers of memory snapshots (pickle_reader.h, json_document.h) fill one structure, and
// the converter (snapshot_import.h) reads it. A document comes from outside, so nothing here recurses and
// memory is bounded by the input: a value takes 16 bytes, each addition to a container 12 bytes, and 4
// for each value in it. What the input shares stays shared; a reader who walks a document must bound
// its own steps, because a value may stand in many places, and a container within itself.
// Thread safety: plain values.
//
// Invariants:
//   (1) Every id that a container holds is of this arena.
//   (2) A dict holds its keys and values in turn, key first.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <ashlar/base/types.h>

namespace ashlar::tool {

/// Larger inputs are refused by the readers; of compressed ones, what they unpack to.
inline constexpr std::size_t kDocumentBytesMax = std::size_t{1} << 30;
/// The maximum number of values in a document.
inline constexpr std::size_t kDocumentValuesMax = std::size_t{1} << 27;
/// The maximum nesting: of containers in JSON, of open marks in a pickle.
inline constexpr std::size_t kDocumentDepthMax = 64;

using ValueId = Id<struct ValueIdTag, std::uint32_t>;

enum class ValueKind : std::uint8_t {
  kNone,
  kBool,     ///< bits: 0 or 1
  kInteger,  ///< bits: two's complement
  kLarge,    ///< an integer from 2^63 to 2^64 - 1: bits
  kHuge,     ///< an integer beyond 64 bits, without its digits
  kFloat,    ///< bits: of the double
  kText,     ///< length in bytes; bits: where it is
  kList,     ///< length: how many values; bits: where they are
  kTuple,
  kDict,  ///< length: two for each key
};

struct Value {
  std::uint64_t bits = 0;
  std::uint32_t length = 0;
  ValueKind kind = ValueKind::kNone;
};

inline bool is_list(const Value& value) {
  return value.kind == ValueKind::kList || value.kind == ValueKind::kTuple;
}

/// The values of one document.
class ValueArena {
 public:
  /// `source` is what add_text() may refer to; it must outlive the arena.
  explicit ValueArena(std::string_view source = {}) : source_(source) {}

  /// Adds a number, a truth or nothing. Nothing: the document has kDocumentValuesMax values already.
  std::optional<ValueId> add(ValueKind kind, std::uint64_t bits = 0);
  /// Adds text that stands in the source. REQUIRES: it does. Errors as add().
  std::optional<ValueId> add_text(std::string_view piece);
  /// Adds a copy of the text; short ones that were added before are shared. Errors as add().
  std::optional<ValueId> add_copy(std::string_view text);
  /// Appends to a list, tuple or dict. False: the arena is full.
  bool append(ValueId container, std::span<const ValueId> values);

  const Value& operator[](ValueId id) const { return values_[id.value()]; }
  std::size_t size() const { return values_.size(); }
  /// REQUIRES: a kText.
  std::string_view text(ValueId id) const;
  /// The value of a text key; the last one if it stands there twice, as in Python. Nothing if it is not
  /// there or `dict` is no dict. Cost: O(its length).
  std::optional<ValueId> find(ValueId dict, std::string_view key) const;
  /// The ids in a container, in order.
  std::vector<ValueId> items(ValueId container) const;

 private:
  struct Chunk {
    std::uint32_t begin;  // in ids_
    std::uint32_t count;
    std::uint32_t next;  // index into chunks_, or kNoChunk
  };
  /// Copies up to this length are shared, so that the keys of a million dicts are stored once.
  static constexpr std::size_t kSharedTextMax = 64;
  static constexpr std::size_t kSharedTextsMax = 4096;
  static constexpr std::uint32_t kNoChunk = 0xffffffffu;
  static constexpr std::uint64_t kIsCopy = std::uint64_t{1} << 63;

  template <class Visit>
  void visit_chunks(ValueId container, Visit visit) const;

  std::string_view source_;
  std::vector<Value> values_;
  std::vector<Chunk> chunks_;
  std::vector<ValueId> ids_;
  std::string copies_;
  std::unordered_map<std::string, ValueId> shared_;
};

/// A document, and the value that it consists of.
struct Document {
  ValueArena arena;
  ValueId root;
};

}  // namespace ashlar::tool
