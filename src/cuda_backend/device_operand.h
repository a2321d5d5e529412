// Tensors as a GPU's kernels see them: elements of any type and strides as floats.
//
// Purpose: plain C++ that nvcc compiles for the GPU and any compiler for the host, so that every line of the
// kernels is tested without a GPU.
// Thread safety: pure functions of the memory they are given.
// Source of the packed types: as src/cpu_backend/conversions.h.
#pragma once

#include <cstdint>

#include "src/cuda_backend/on_device.h"

namespace ashlar::cuda_backend {

/// Numbers of graph::ElementType.
enum DeviceType : std::uint8_t {
  kDeviceF32,
  kDeviceF16,
  kDeviceI32,
  kDeviceI64,
  kDeviceQ4,
  kDeviceQ6
};

ASHLAR_ON_DEVICE inline float float_of_bits(std::uint32_t bits) {
  union {
    std::uint32_t whole;
    float real;
  } both;
  both.whole = bits;
  return both.real;
}
ASHLAR_ON_DEVICE inline std::uint32_t bits_of_float(float value) {
  union {
    float real;
    std::uint32_t whole;
  } both;
  both.real = value;
  return both.whole;
}

/// IEEE 754 binary16 to binary32.
ASHLAR_ON_DEVICE inline float half_bits_to_float(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000u) << 16;
  const std::uint32_t exponent = half >> 10 & 31u, mantissa = half & 1023u;
  if (exponent == 31) return float_of_bits(sign | 0x7f800000u | mantissa << 13);
  if (exponent != 0) return float_of_bits(sign | (exponent + 112) << 23 | mantissa << 13);
  const float small = static_cast<float>(mantissa) * (1.0f / 16777216.0f);
  return sign != 0 ? -small : small;
}

/// binary32 to binary16, to the nearest, ties to even.
ASHLAR_ON_DEVICE inline std::uint16_t float_to_half_bits(float value) {
  const std::uint32_t bits = bits_of_float(value);
  const auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000u);
  const std::uint32_t rest = bits & 0x7fffffffu;
  if (rest > 0x7f800000u) return static_cast<std::uint16_t>(sign | 0x7e00u);
  if (rest >= 0x477ff000u) return static_cast<std::uint16_t>(sign | 0x7c00u);
  if (rest < 0x38800000u) {  // below the smallest normal half: an addition rounds to its last place
    const float magic = 0.5f;
    const std::uint32_t rounded = bits_of_float(float_of_bits(rest) + magic);
    return static_cast<std::uint16_t>(sign | (rounded - bits_of_float(magic)));
  }
  const std::uint32_t odd = rest >> 13 & 1u;
  const std::uint32_t rounded = rest - (112u << 23) + 0xfffu + odd;
  return static_cast<std::uint16_t>(sign | rounded >> 13);
}

/// A tensor and where it lies.
struct DeviceOperand {
  unsigned char* base = nullptr;
  std::uint64_t shape[4] = {1, 1, 1, 1};
  std::uint64_t strides[4] = {0, 0, 0, 0};
  std::uint8_t type = kDeviceF32;
  bool is_there = false;

  ASHLAR_ON_DEVICE std::uint64_t elements() const {
    return shape[0] * shape[1] * shape[2] * shape[3];
  }
  ASHLAR_ON_DEVICE std::uint64_t rows() const {
    return shape[0] == 0 ? 0 : shape[1] * shape[2] * shape[3];
  }
  ASHLAR_ON_DEVICE unsigned char* row(std::uint64_t i1, std::uint64_t i2, std::uint64_t i3) const {
    return base + i1 * strides[1] + i2 * strides[2] + i3 * strides[3];
  }
};

/// The place of an element or a row, counted in the order of dimensions.
struct DevicePlace {
  std::uint64_t i0, i1, i2, i3;

  ASHLAR_ON_DEVICE static DevicePlace of_element(const std::uint64_t* shape, std::uint64_t n) {
    return {n % shape[0], n / shape[0] % shape[1], n / shape[0] / shape[1] % shape[2],
            n / shape[0] / shape[1] / shape[2]};
  }
  ASHLAR_ON_DEVICE static DevicePlace of_row(const std::uint64_t* shape, std::uint64_t n) {
    return {0, n % shape[1], n / shape[1] % shape[2], n / shape[1] / shape[2]};
  }
};

ASHLAR_ON_DEVICE inline std::uint16_t half_at(const unsigned char* at) {
  return static_cast<std::uint16_t>(at[0] | at[1] << 8);
}

ASHLAR_ON_DEVICE inline float q4_element(const unsigned char* block, std::uint64_t k) {
  const int pair = block[2 + k % 16];
  const int four = k < 16 ? pair & 15 : pair >> 4;
  return half_bits_to_float(half_at(block)) * static_cast<float>(four - 8);
}

ASHLAR_ON_DEVICE inline float q6_element(const unsigned char* block, std::uint64_t k) {
  const std::uint64_t half = k / 128, group = k / 32 % 4, in = k % 32;
  const int low = block[64 * half + in + 32 * (group % 2)] >> (group < 2 ? 0 : 4) & 15;
  const int high = block[128 + 32 * half + in] >> (2 * group) & 3;
  const auto step = static_cast<signed char>(block[192 + 8 * half + in / 16 + 2 * group]);
  return half_bits_to_float(half_at(block + 208)) * static_cast<float>(step) *
         static_cast<float>((low | high << 4) - 32);
}

/// One element as a float.
ASHLAR_ON_DEVICE inline float load(const DeviceOperand& from, std::uint64_t i0, std::uint64_t i1,
                                   std::uint64_t i2, std::uint64_t i3) {
  const unsigned char* const row = from.row(i1, i2, i3);
  const unsigned char* const at = row + i0 * from.strides[0];
  switch (from.type) {
    case kDeviceF32: return *reinterpret_cast<const float*>(at);
    case kDeviceF16: return half_bits_to_float(*reinterpret_cast<const std::uint16_t*>(at));
    case kDeviceQ4: return q4_element(row + i0 / 32 * 18, i0 % 32);
    case kDeviceQ6: return q6_element(row + i0 / 256 * 210, i0 % 256);
    case kDeviceI32: return static_cast<float>(*reinterpret_cast<const std::int32_t*>(at));
    default: return static_cast<float>(*reinterpret_cast<const std::int64_t*>(at));
  }
}
ASHLAR_ON_DEVICE inline float load(const DeviceOperand& from, const DevicePlace& at) {
  return load(from, at.i0, at.i1, at.i2, at.i3);
}
/// The same place, repeated in each dimension.
ASHLAR_ON_DEVICE inline float load_repeated(const DeviceOperand& from, const DevicePlace& at) {
  return load(from, at.i0 % from.shape[0], at.i1 % from.shape[1], at.i2 % from.shape[2],
              at.i3 % from.shape[3]);
}
/// One whole number. For kDeviceI32 and kDeviceI64.
ASHLAR_ON_DEVICE inline std::int64_t load_index(const DeviceOperand& from, std::uint64_t i0,
                                                std::uint64_t i1, std::uint64_t i2) {
  const unsigned char* const at = from.row(i1, i2, 0) + i0 * from.strides[0];
  return from.type == kDeviceI32 ? *reinterpret_cast<const std::int32_t*>(at)
                                 : *reinterpret_cast<const std::int64_t*>(at);
}
/// Stores an element. For kDeviceF32 and kDeviceF16.
ASHLAR_ON_DEVICE inline void store(const DeviceOperand& to, const DevicePlace& at, float value) {
  unsigned char* const byte = to.row(at.i1, at.i2, at.i3) + at.i0 * to.strides[0];
  if (to.type == kDeviceF32) {
    *reinterpret_cast<float*>(byte) = value;
  } else {
    *reinterpret_cast<std::uint16_t*>(byte) = float_to_half_bits(value);
  }
}
/// Copies an element of the same type that is not packed.
ASHLAR_ON_DEVICE inline void copy_element(const DeviceOperand& to, const DevicePlace& at,
                                          const DeviceOperand& from, const DevicePlace& source) {
  unsigned char* const byte = to.row(at.i1, at.i2, at.i3) + at.i0 * to.strides[0];
  const unsigned char* const other =
      from.row(source.i1, source.i2, source.i3) + source.i0 * from.strides[0];
  switch (to.type) {
    case kDeviceF16:
      *reinterpret_cast<std::uint16_t*>(byte) = *reinterpret_cast<const std::uint16_t*>(other);
      break;
    case kDeviceI64:
      *reinterpret_cast<std::uint64_t*>(byte) = *reinterpret_cast<const std::uint64_t*>(other);
      break;
    default:
      *reinterpret_cast<std::uint32_t*>(byte) = *reinterpret_cast<const std::uint32_t*>(other);
  }
}
/// Copies an element, converted if the types differ.
ASHLAR_ON_DEVICE inline void move_element(const DeviceOperand& to, const DevicePlace& at,
                                          const DeviceOperand& from, const DevicePlace& source) {
  if (to.type == from.type) {
    copy_element(to, at, from, source);
  } else {
    store(to, at, load(from, source));
  }
}

}  // namespace ashlar::cuda_backend
