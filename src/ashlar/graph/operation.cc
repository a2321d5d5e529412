#include <ashlar/graph/operation.h>

#include <array>
#include <cstddef>

namespace ashlar::inline v0::graph {
namespace {

consteval OperationTraits view(std::string_view name) {
  return {name, 1, 2, true, false, InPlace::kNever};
}
consteval OperationTraits elementwise(std::string_view name, std::uint8_t sources) {
  return {name, sources, sources, false, false, InPlace::kAnySource};
}
consteval OperationTraits row_wise(std::string_view name, std::uint8_t sources_max) {
  return {name, 1, sources_max, false, false, InPlace::kFirstSource};
}
consteval OperationTraits out_of_place(std::string_view name, std::uint8_t least,
                                       std::uint8_t most) {
  return {name, least, most, false, false, InPlace::kNever};
}
consteval OperationTraits writer(std::string_view name, std::uint8_t least, std::uint8_t most) {
  return {name, least, most, false, true, InPlace::kNever};
}

constexpr std::uint8_t kAnyNumber = 255;

constexpr std::array<OperationTraits, kOperations> kTraits{{
    {"NONE", 0, 0, false, false, InPlace::kNever},
    view("VIEW"),
    view("RESHAPE"),
    view("PERMUTE"),
    view("TRANSPOSE"),
    elementwise("ADD", 2),
    elementwise("SUB", 2),
    elementwise("MUL", 2),
    elementwise("DIV", 2),
    elementwise("SCALE", 1),
    elementwise("SQR", 1),
    elementwise("SQRT", 1),
    elementwise("LOG", 1),
    elementwise("EXP", 1),
    elementwise("NEG", 1),
    elementwise("STEP", 1),
    elementwise("RELU", 1),
    elementwise("GELU", 1),
    elementwise("SILU", 1),
    elementwise("TANH", 1),
    elementwise("SIGMOID", 1),
    row_wise("NORM", 1),
    row_wise("RMS_NORM", 1),
    row_wise("SOFT_MAX", 2),
    row_wise("ROPE", 2),
    row_wise("DIAG_MASK_INF", 1),
    out_of_place("MUL_MAT", 2, 2),
    out_of_place("MUL_MAT_ID", 3, 3),
    out_of_place("OUT_PROD", 2, 2),
    out_of_place("FLASH_ATTN_EXT", 3, 4),
    out_of_place("GET_ROWS", 2, 2),
    out_of_place("CONT", 1, 1),
    out_of_place("SWIGLU", 1, 2),
    out_of_place("CONCAT", 2, 2),
    out_of_place("REPEAT", 1, 1),
    out_of_place("REPEAT_BACK", 1, 1),
    out_of_place("PAD", 1, 1),
    out_of_place("SUM", 1, 1),
    out_of_place("SUM_ROWS", 1, 1),
    out_of_place("MEAN", 1, 1),
    out_of_place("ARGSORT", 1, 1),
    out_of_place("IM2COL", 2, 2),
    out_of_place("IM2COL_BACK", 2, 2),
    out_of_place("POOL_2D", 1, 1),
    out_of_place("POOL_2D_BACK", 2, 2),
    out_of_place("CROSS_ENTROPY_LOSS", 2, 2),
    out_of_place("CROSS_ENTROPY_LOSS_BACK", 3, 3),
    writer("CPY", 1, 2),
    writer("SET_ROWS", 2, 3),
    {"OPT_STEP_ADAMW", 5, 5, false, true, InPlace::kNever, 0b1100},
    out_of_place("CONTROL", 0, kAnyNumber),
}};

}  // namespace

const OperationTraits& traits_of(Operation operation) noexcept {
  return kTraits[static_cast<std::size_t>(operation)];
}

std::optional<Operation> operation_of(std::string_view name) noexcept {
  for (std::uint8_t k = 0; k < kOperations; ++k) {
    if (kTraits[k].name == name) return static_cast<Operation>(k);
  }
  return std::nullopt;
}

}  // namespace ashlar::inline v0::graph
