// Rows of tensors of any type and strides, as floats.
//
// Purpose: a kernel works on rows: it reads a row into floats, computes, and writes a row. A row that is
// packed f32 is used where it lies.
// Thread safety: pure functions of the memory they are given.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <ashlar/graph/tensor.h>

namespace ashlar::cpu {

/// A tensor and where it lies.
struct Operand {
  const graph::Tensor* tensor = nullptr;
  std::byte* base = nullptr;

  std::uint64_t extent(std::size_t d) const { return tensor->shape[d]; }
  /// The first byte of a row.
  std::byte* row(std::uint64_t i1, std::uint64_t i2, std::uint64_t i3) const {
    return base + i1 * tensor->strides[1] + i2 * tensor->strides[2] + i3 * tensor->strides[3];
  }
  /// Whether a row is floats next to each other.
  bool has_float_rows() const {
    return tensor->type == graph::ElementType::kF32 &&
           (tensor->strides[0] == sizeof(float) || tensor->shape[0] <= 1);
  }
};

/// The position of a row, counted in the order of dimensions 1 to 3.
struct RowAt {
  std::uint64_t i1, i2, i3;
  RowAt(const graph::Shape& shape, std::uint64_t row)
      : i1(row % shape[1]), i2(row / shape[1] % shape[2]), i3(row / shape[1] / shape[2]) {}
};
/// How many rows have elements.
inline std::uint64_t rows_of(const graph::Shape& shape) {
  return shape[0] == 0 ? 0 : shape[1] * shape[2] * shape[3];
}

/// The row's elements as floats: where it lies if it can be, else in `scratch`. For every type.
const float* read_row(const Operand& from, std::uint64_t i1, std::uint64_t i2, std::uint64_t i3,
                      std::vector<float>& scratch);
/// Where a row can be written: its own place, or `scratch`, which write_row() then stores. For kF32 and
/// kF16.
float* row_to_write(const Operand& to, std::uint64_t i1, std::uint64_t i2, std::uint64_t i3,
                    std::vector<float>& scratch);
/// Stores what row_to_write() gave. For kF32 and kF16.
void write_row(const Operand& to, std::uint64_t i1, std::uint64_t i2, std::uint64_t i3,
               const float* values);

/// One element as a float. For types that are not quantised.
float read_element(const Operand& from, std::uint64_t i0, std::uint64_t i1, std::uint64_t i2,
                   std::uint64_t i3);
/// One whole number. For kI32 and kI64.
std::int64_t read_index(const Operand& from, std::uint64_t i0, std::uint64_t i1, std::uint64_t i2,
                        std::uint64_t i3);

}  // namespace ashlar::cpu
