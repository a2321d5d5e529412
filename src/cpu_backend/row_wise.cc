#include <algorithm>
#include <cmath>
#include <limits>

#include "src/cpu_backend/kernels.h"

namespace ashlar::cpu {

// Sums are doubles, so that a row's length costs no precision.
Status norm_rows(const KernelCall& call, std::uint64_t begin, std::uint64_t end, Scratch& scratch) {
  const bool has_mean = call.out.tensor->operation == graph::Operation::kNorm;
  const std::uint64_t length = call.out.extent(0);
  for (std::uint64_t row = begin; row < end; ++row) {
    const RowAt at(call.out.tensor->shape, row);
    const float* const x = read_row(call.in[0], at.i1, at.i2, at.i3, scratch.a);
    double sum = 0, squares = 0;
    for (std::uint64_t k = 0; k < length && has_mean; ++k) sum += static_cast<double>(x[k]);
    const double mean = sum / static_cast<double>(length);
    for (std::uint64_t k = 0; k < length; ++k) {
      const double distance = static_cast<double>(x[k]) - mean;
      squares += distance * distance;
    }
    const double root =
        std::sqrt(squares / static_cast<double>(length) + static_cast<double>(call.real(0)));
    float* const out = row_to_write(call.out, at.i1, at.i2, at.i3, scratch.c);
    for (std::uint64_t k = 0; k < length; ++k)
      out[k] = static_cast<float>((static_cast<double>(x[k]) - mean) / root);
    write_row(call.out, at.i1, at.i2, at.i3, out);
  }
  return Status::ok();
}

Status soft_max_rows(const KernelCall& call, std::uint64_t begin, std::uint64_t end,
                     Scratch& scratch) {
  const std::uint64_t length = call.out.extent(0);
  for (std::uint64_t row = begin; row < end; ++row) {
    const RowAt at(call.out.tensor->shape, row);
    const float* const x = read_row(call.in[0], at.i1, at.i2, at.i3, scratch.a);
    const float* mask = nullptr;
    if (call.has(1)) {
      const graph::Shape& shape = call.in[1].tensor->shape;
      mask = read_row(call.in[1], at.i1, at.i2 % shape[2], at.i3 % shape[3], scratch.b);
    }
    float* const out = row_to_write(call.out, at.i1, at.i2, at.i3, scratch.c);
    float most = -std::numeric_limits<float>::infinity();
    for (std::uint64_t k = 0; k < length; ++k) {
      out[k] = call.real(0) * x[k] + (mask == nullptr ? 0.0f : mask[k]);
      most = std::max(most, out[k]);
    }
    double sum = 0;
    for (std::uint64_t k = 0; k < length; ++k) {
      out[k] = std::exp(out[k] - most);
      sum += static_cast<double>(out[k]);
    }
    for (std::uint64_t k = 0; k < length; ++k)
      out[k] = static_cast<float>(static_cast<double>(out[k]) / sum);
    write_row(call.out, at.i1, at.i2, at.i3, out);
  }
  return Status::ok();
}

Status rope_rows(const KernelCall& call, std::uint64_t begin, std::uint64_t end, Scratch& scratch) {
  const auto turned = static_cast<std::uint64_t>(call.number(0));
  const bool is_neighbours = call.number(1) == 0;
  const std::uint64_t length = call.out.extent(0);
  for (std::uint64_t row = begin; row < end; ++row) {
    const RowAt at(call.out.tensor->shape, row);
    const auto position = static_cast<double>(read_index(call.in[1], at.i2, 0, 0, 0));
    const float* const x = read_row(call.in[0], at.i1, at.i2, at.i3, scratch.a);
    float* const out = row_to_write(call.out, at.i1, at.i2, at.i3, scratch.c);
    for (std::uint64_t k = 0; k < turned / 2; ++k) {
      const double exponent = -2.0 * static_cast<double>(k) / static_cast<double>(turned);
      const double angle = position * std::pow(static_cast<double>(call.real(0)), exponent);
      const auto cosine = static_cast<float>(std::cos(angle));
      const auto sine = static_cast<float>(std::sin(angle));
      const std::uint64_t first = is_neighbours ? 2 * k : k;
      const std::uint64_t second = is_neighbours ? 2 * k + 1 : k + turned / 2;
      const float a = x[first], b = x[second];
      out[first] = a * cosine - b * sine;
      out[second] = a * sine + b * cosine;
    }
    for (std::uint64_t k = turned; k < length; ++k) out[k] = x[k];
    write_row(call.out, at.i1, at.i2, at.i3, out);
  }
  return Status::ok();
}

Status diag_mask_rows(const KernelCall& call, std::uint64_t begin, std::uint64_t end,
                      Scratch& scratch) {
  for (std::uint64_t row = begin; row < end; ++row) {
    const RowAt at(call.out.tensor->shape, row);
    const float* const x = read_row(call.in[0], at.i1, at.i2, at.i3, scratch.a);
    float* const out = row_to_write(call.out, at.i1, at.i2, at.i3, scratch.c);
    const std::int64_t last = static_cast<std::int64_t>(at.i1) + call.number(0);
    for (std::uint64_t k = 0; k < call.out.extent(0); ++k) {
      const bool is_masked = static_cast<std::int64_t>(k) > last;
      out[k] = is_masked ? -std::numeric_limits<float>::infinity() : x[k];
    }
    write_row(call.out, at.i1, at.i2, at.i3, out);
  }
  return Status::ok();
}

}  // namespace ashlar::cpu
