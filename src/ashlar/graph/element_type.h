// The types of a tensor's elements.
//
// Thread safety: pure functions of constant tables.
//
// A quantised type packs a block of consecutive elements of the first dimension; a plain type is a
// block of one element.
// Source of the block sizes: ggml's types of the same names (ggml-common.h, block_q4_0, block_q6_K).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include <ashlar/base/export.h>
#include <ashlar/base/types.h>

namespace ashlar::inline v0::graph {

/// The type of an element. Append only: graph files contain the names.
enum class ElementType : std::uint8_t {
  kF32,
  kF16,
  kI32,
  kI64,
  kQ4_0,  ///< 32 elements of 4 bits with one scale, 18 bytes
  kQ6_K   ///< 256 elements of 6 bits with 16 scales and a scale of those, 210 bytes
};
inline constexpr std::uint8_t kElementTypes = 6;

/// How a type lies in memory.
struct TypeTraits {
  std::string_view name;         ///< as in graph files
  std::uint64_t block_elements;  ///< elements of a block
  Bytes block_bytes;             ///< bytes of a block
  Bytes alignment;               ///< of every address, offset and stride
};

/// The traits of `type`. Cost: O(1). Never throws.
ASHLAR_API const TypeTraits& traits_of(ElementType type) noexcept;
/// The type of that name; std::nullopt if there is none. Cost: O(types). Never throws.
ASHLAR_API std::optional<ElementType> element_type_of(std::string_view name) noexcept;

}  // namespace ashlar::inline v0::graph
