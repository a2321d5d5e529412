// Conversions between floats and the other types of elements.
//
// Thread safety: pure functions.
// Source: IEEE 754-2019 binary16, rounding to nearest even; the blocks of ggml's types q4_0 and q6_K.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ashlar::cpu {

float half_to_float(std::uint16_t half) noexcept;
std::uint16_t float_to_half(float value) noexcept;

/// The elements of `blocks` blocks.
void unpack_q4_0(const std::byte* from, std::uint64_t blocks, float* to) noexcept;
void unpack_q6_k(const std::byte* from, std::uint64_t blocks, float* to) noexcept;

}  // namespace ashlar::cpu
