#include <algorithm>
#include <cstring>
#include <numeric>

#include "src/cpu_backend/kernels.h"

namespace ashlar::cpu {

Status repeat_back_rows(const KernelCall& call, std::uint64_t begin, std::uint64_t end,
                        Scratch& scratch) {
  const Operand& from = call.in[0];
  const std::uint64_t length = call.out.extent(0);
  std::vector<double> sums(length);
  for (std::uint64_t row = begin; row < end; ++row) {
    const RowAt at(call.out.tensor->shape, row);
    std::fill(sums.begin(), sums.end(), 0.0);
    for (std::uint64_t i3 = at.i3; i3 < from.extent(3); i3 += call.out.extent(3)) {
      for (std::uint64_t i2 = at.i2; i2 < from.extent(2); i2 += call.out.extent(2)) {
        for (std::uint64_t i1 = at.i1; i1 < from.extent(1); i1 += call.out.extent(1)) {
          const float* const x = read_row(from, i1, i2, i3, scratch.a);
          for (std::uint64_t k = 0; k < from.extent(0); ++k)
            sums[k % length] += static_cast<double>(x[k]);
        }
      }
    }
    float* const out = row_to_write(call.out, at.i1, at.i2, at.i3, scratch.c);
    for (std::uint64_t k = 0; k < length; ++k) out[k] = static_cast<float>(sums[k]);
    write_row(call.out, at.i1, at.i2, at.i3, out);
  }
  return Status::ok();
}

Status sum_all(const KernelCall& call, std::uint64_t, std::uint64_t, Scratch& scratch) {
  const Operand& from = call.in[0];
  double sum = 0;
  for (std::uint64_t row = 0; row < rows_of(from.tensor->shape); ++row) {
    const RowAt at(from.tensor->shape, row);
    const float* const x = read_row(from, at.i1, at.i2, at.i3, scratch.a);
    for (std::uint64_t k = 0; k < from.extent(0); ++k) sum += static_cast<double>(x[k]);
  }
  const auto value = static_cast<float>(sum);
  float* const out = row_to_write(call.out, 0, 0, 0, scratch.c);
  *out = value;
  write_row(call.out, 0, 0, 0, out);
  return Status::ok();
}

Status sum_rows(const KernelCall& call, std::uint64_t begin, std::uint64_t end, Scratch& scratch) {
  const Operand& from = call.in[0];
  const bool is_mean = call.out.tensor->operation == graph::Operation::kMean;
  for (std::uint64_t row = begin; row < end; ++row) {
    const RowAt at(call.out.tensor->shape, row);
    const float* const x = read_row(from, at.i1, at.i2, at.i3, scratch.a);
    double sum = 0;
    for (std::uint64_t k = 0; k < from.extent(0); ++k) sum += static_cast<double>(x[k]);
    if (is_mean) sum /= static_cast<double>(from.extent(0));
    float* const out = row_to_write(call.out, at.i1, at.i2, at.i3, scratch.c);
    *out = static_cast<float>(sum);
    write_row(call.out, at.i1, at.i2, at.i3, out);
  }
  return Status::ok();
}

Status argsort_rows(const KernelCall& call, std::uint64_t begin, std::uint64_t end,
                    Scratch& scratch) {
  const bool is_descending = call.number(0) == 1;
  std::vector<std::int32_t> order(call.out.extent(0));
  for (std::uint64_t row = begin; row < end; ++row) {
    const RowAt at(call.out.tensor->shape, row);
    const float* const x = read_row(call.in[0], at.i1, at.i2, at.i3, scratch.a);
    std::iota(order.begin(), order.end(), 0);
    // Numbers that are not comparable come last, so that the order is one.
    const auto comes_first = [&](std::int32_t a, std::int32_t b) {
      const float left = x[a], right = x[b];
      const bool has_left = left == left, has_right = right == right;
      if (has_left != has_right) return has_left;
      if (!has_left || left == right) return a < b;
      return is_descending ? left > right : left < right;
    };
    std::sort(order.begin(), order.end(), comes_first);
    std::byte* into = call.out.row(at.i1, at.i2, at.i3);
    for (const std::int32_t k : order) {
      std::memcpy(into, &k, sizeof k);
      into += call.out.tensor->strides[0];
    }
  }
  return Status::ok();
}

}  // namespace ashlar::cpu
