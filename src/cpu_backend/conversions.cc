#include "src/cpu_backend/conversions.h"

#include <bit>
#include <cstring>
#include <Eigen/Core>

namespace ashlar::cpu {
namespace {

constexpr std::uint64_t kQ4Elements = 32;
constexpr std::uint64_t kQ4Bytes = 18;
constexpr std::uint64_t kQ6Elements = 256;
constexpr std::uint64_t kQ6Bytes = 210;

float half_at(const std::byte* from) {
  std::uint16_t half = 0;
  std::memcpy(&half, from, sizeof half);
  return half_to_float(half);
}

int byte_at(const std::byte* from, std::uint64_t k) { return std::to_integer<int>(from[k]); }

}  // namespace

float half_to_float(std::uint16_t half) noexcept {
  return static_cast<float>(Eigen::numext::bit_cast<Eigen::half>(half));
}

std::uint16_t float_to_half(float value) noexcept {
  return Eigen::numext::bit_cast<std::uint16_t>(Eigen::half(value));
}

// A block is a scale, then 16 bytes: element k and k + 16 are the low and the high half of byte k.
void unpack_q4_0(const std::byte* from, std::uint64_t blocks, float* to) noexcept {
  for (std::uint64_t b = 0; b < blocks; ++b, from += kQ4Bytes, to += kQ4Elements) {
    const float scale = half_at(from);
    for (std::uint64_t k = 0; k < kQ4Elements / 2; ++k) {
      const int pair = byte_at(from + 2, k);
      to[k] = scale * static_cast<float>((pair & 15) - 8);
      to[k + kQ4Elements / 2] = scale * static_cast<float>((pair >> 4) - 8);
    }
  }
}

// A block is 128 bytes of low halves, 64 bytes of two high bits each, 16 signed scales and a scale of
// those. Each half of the block has four groups of 32 elements.
void unpack_q6_k(const std::byte* from, std::uint64_t blocks, float* to) noexcept {
  for (std::uint64_t b = 0; b < blocks; ++b, from += kQ6Bytes, to += kQ6Elements) {
    const float scale = half_at(from + 208);
    for (std::uint64_t half = 0; half < 2; ++half) {
      const std::byte* const low = from + 64 * half;
      const std::byte* const high = from + 128 + 32 * half;
      const std::byte* const scales = from + 192 + 8 * half;
      for (std::uint64_t k = 0; k < 32; ++k) {
        for (std::uint64_t group = 0; group < 4; ++group) {
          const int four = byte_at(low, k + 32 * (group % 2)) >> (group < 2 ? 0 : 4) & 15;
          const int two = byte_at(high, k) >> (2 * group) & 3;
          const auto step = std::bit_cast<std::int8_t>(scales[k / 16 + 2 * group]);
          to[128 * half + 32 * group + k] =
              scale * static_cast<float>(step) * static_cast<float>((four | two << 4) - 32);
        }
      }
    }
  }
}

}  // namespace ashlar::cpu
