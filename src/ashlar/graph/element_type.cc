#include <ashlar/graph/element_type.h>

#include <array>

namespace ashlar::inline v0::graph {
namespace {

constexpr std::array<TypeTraits, kElementTypes> kTypeTraits{{
    {"f32", 1, 4_B, 4_B},
    {"f16", 1, 2_B, 2_B},
    {"i32", 1, 4_B, 4_B},
    {"i64", 1, 8_B, 8_B},
    {"q4_0", 32, 18_B, 2_B},
    {"q6_K", 256, 210_B, 2_B},
}};

}  // namespace

const TypeTraits& traits_of(ElementType type) noexcept {
  return kTypeTraits[static_cast<std::size_t>(type)];
}

std::optional<ElementType> element_type_of(std::string_view name) noexcept {
  for (std::uint8_t k = 0; k < kElementTypes; ++k) {
    if (kTypeTraits[k].name == name) return static_cast<ElementType>(k);
  }
  return std::nullopt;
}

}  // namespace ashlar::inline v0::graph
