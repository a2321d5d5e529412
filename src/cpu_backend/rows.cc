#include "src/cpu_backend/rows.h"

#include <cstring>

#include "src/cpu_backend/conversions.h"

namespace ashlar::cpu {
namespace {

using graph::ElementType;

template <class T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <class T>
void store(std::byte* to, T value) {
  std::memcpy(to, &value, sizeof value);
}

float element_at(ElementType type, const std::byte* at) {
  switch (type) {
    case ElementType::kF32: return load<float>(at);
    case ElementType::kF16: return half_to_float(load<std::uint16_t>(at));
    case ElementType::kI32: return static_cast<float>(load<std::int32_t>(at));
    case ElementType::kI64: return static_cast<float>(load<std::int64_t>(at));
    case ElementType::kQ4_0:
    case ElementType::kQ6_K: break;
  }
  return 0;
}

}  // namespace

const float* read_row(const Operand& from, std::uint64_t i1, std::uint64_t i2, std::uint64_t i3,
                      std::vector<float>& scratch) {
  const std::byte* at = from.row(i1, i2, i3);
  if (from.has_float_rows()) return reinterpret_cast<const float*>(at);
  const std::uint64_t length = from.extent(0);
  scratch.resize(length);
  const ElementType type = from.tensor->type;
  if (type == ElementType::kQ4_0) {
    unpack_q4_0(at, length / 32, scratch.data());
  } else if (type == ElementType::kQ6_K) {
    unpack_q6_k(at, length / 256, scratch.data());
  } else {
    for (std::uint64_t i0 = 0; i0 < length; ++i0, at += from.tensor->strides[0])
      scratch[i0] = element_at(type, at);
  }
  return scratch.data();
}

float* row_to_write(const Operand& to, std::uint64_t i1, std::uint64_t i2, std::uint64_t i3,
                    std::vector<float>& scratch) {
  if (to.has_float_rows()) return reinterpret_cast<float*>(to.row(i1, i2, i3));
  scratch.resize(to.extent(0));
  return scratch.data();
}

void write_row(const Operand& to, std::uint64_t i1, std::uint64_t i2, std::uint64_t i3,
               const float* values) {
  std::byte* at = to.row(i1, i2, i3);
  if (reinterpret_cast<const std::byte*>(values) == at) return;
  for (std::uint64_t i0 = 0; i0 < to.extent(0); ++i0, at += to.tensor->strides[0]) {
    switch (to.tensor->type) {
      case ElementType::kF32: store(at, values[i0]); break;
      case ElementType::kF16: store(at, float_to_half(values[i0])); break;
      default: break;
    }
  }
}

float read_element(const Operand& from, std::uint64_t i0, std::uint64_t i1, std::uint64_t i2,
                   std::uint64_t i3) {
  return element_at(from.tensor->type, from.row(i1, i2, i3) + i0 * from.tensor->strides[0]);
}

std::int64_t read_index(const Operand& from, std::uint64_t i0, std::uint64_t i1, std::uint64_t i2,
                        std::uint64_t i3) {
  const std::byte* const at = from.row(i1, i2, i3) + i0 * from.tensor->strides[0];
  return from.tensor->type == ElementType::kI32 ? load<std::int32_t>(at) : load<std::int64_t>(at);
}

}  // namespace ashlar::cpu
