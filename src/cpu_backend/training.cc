#include <algorithm>
#include <cmath>
#include <limits>

#include "src/cpu_backend/kernels.h"

namespace ashlar::cpu {
namespace {

/// The largest element and the logarithm of the sum of exponentials, less that element.
struct LogSum {
  double most = -std::numeric_limits<double>::infinity();
  double log_sum = 0;
  LogSum(const float* x, std::uint64_t length) {
    for (std::uint64_t k = 0; k < length; ++k) most = std::max(most, static_cast<double>(x[k]));
    double sum = 0;
    for (std::uint64_t k = 0; k < length; ++k) sum += std::exp(static_cast<double>(x[k]) - most);
    log_sum = std::log(sum);
  }
};

}  // namespace

Status loss_sum(const KernelCall& call, std::uint64_t, std::uint64_t, Scratch& scratch) {
  const Operand &logits = call.in[0], &labels = call.in[1];
  const std::uint64_t rows = rows_of(logits.tensor->shape);
  double loss = 0;
  for (std::uint64_t row = 0; row < rows; ++row) {
    const RowAt at(logits.tensor->shape, row);
    const float* const x = read_row(logits, at.i1, at.i2, at.i3, scratch.a);
    const float* const label = read_row(labels, at.i1, at.i2, at.i3, scratch.b);
    const LogSum sum(x, logits.extent(0));
    for (std::uint64_t k = 0; k < logits.extent(0); ++k) {
      loss -= static_cast<double>(label[k]) * (static_cast<double>(x[k]) - sum.most - sum.log_sum);
    }
  }
  float* const out = row_to_write(call.out, 0, 0, 0, scratch.c);
  *out = static_cast<float>(rows == 0 ? 0.0 : loss / static_cast<double>(rows));
  write_row(call.out, 0, 0, 0, out);
  return Status::ok();
}

Status loss_back_rows(const KernelCall& call, std::uint64_t begin, std::uint64_t end,
                      Scratch& scratch) {
  const double gradient = static_cast<double>(read_element(call.in[0], 0, 0, 0, 0)) /
                          static_cast<double>(rows_of(call.out.tensor->shape));
  for (std::uint64_t row = begin; row < end; ++row) {
    const RowAt at(call.out.tensor->shape, row);
    const float* const x = read_row(call.in[1], at.i1, at.i2, at.i3, scratch.a);
    const float* const label = read_row(call.in[2], at.i1, at.i2, at.i3, scratch.b);
    const LogSum sum(x, call.out.extent(0));
    float* const out = row_to_write(call.out, at.i1, at.i2, at.i3, scratch.c);
    for (std::uint64_t k = 0; k < call.out.extent(0); ++k) {
      const double soft_max = std::exp(static_cast<double>(x[k]) - sum.most - sum.log_sum);
      out[k] = static_cast<float>((soft_max - static_cast<double>(label[k])) * gradient);
    }
    write_row(call.out, at.i1, at.i2, at.i3, out);
  }
  return Status::ok();
}

// The seven numbers: rate, beta1, beta2, epsilon, decay, and the two corrections of the moments.
Status adamw_rows(const KernelCall& call, std::uint64_t begin, std::uint64_t end,
                  Scratch& scratch) {
  std::array<double, 7> numbers{};
  for (std::size_t k = 0; k < numbers.size(); ++k)
    numbers[k] = static_cast<double>(read_element(call.in[4], k, 0, 0, 0));
  const auto [rate, beta1, beta2, epsilon, decay, correction1, correction2] = numbers;
  std::vector<float> first_scratch, second_scratch;
  for (std::uint64_t row = begin; row < end; ++row) {
    const RowAt at(call.out.tensor->shape, row);
    const float* const gradient = read_row(call.in[1], at.i1, at.i2, at.i3, scratch.a);
    // Parameter and moments are packed f32: they are changed where they lie.
    float* const x = row_to_write(call.out, at.i1, at.i2, at.i3, scratch.c);
    float* const first = row_to_write(call.in[2], at.i1, at.i2, at.i3, first_scratch);
    float* const second = row_to_write(call.in[3], at.i1, at.i2, at.i3, second_scratch);
    for (std::uint64_t k = 0; k < call.out.extent(0); ++k) {
      const auto slope = static_cast<double>(gradient[k]);
      const double mean = static_cast<double>(first[k]) * beta1 + slope * (1 - beta1);
      const double square = static_cast<double>(second[k]) * beta2 + slope * slope * (1 - beta2);
      const double step = mean * correction1 / (std::sqrt(square * correction2) + epsilon);
      first[k] = static_cast<float>(mean);
      second[k] = static_cast<float>(square);
      x[k] = static_cast<float>(static_cast<double>(x[k]) * (1 - rate * decay) - rate * step);
    }
  }
  return Status::ok();
}

}  // namespace ashlar::cpu
