#include <cmath>
#include <limits>

#include "src/cpu_backend/kernels.h"

namespace ashlar::cpu {
namespace {

using graph::Operation;

float sigmoid(float x) { return 1.0f / (1.0f + std::exp(-x)); }

float gelu(float x) {
  constexpr float kSqrtTwoOverPi = 0.79788456080286535588f;
  constexpr float kCubic = 0.044715f;
  return 0.5f * x * (1.0f + std::tanh(kSqrtTwoOverPi * x * (1.0f + kCubic * x * x)));
}

float binary(Operation operation, float x, float y) {
  switch (operation) {
    case Operation::kAdd: return x + y;
    case Operation::kSub: return x - y;
    case Operation::kMul: return x * y;
    default: return x / y;
  }
}

float unary(const KernelCall& call, float x) {
  switch (call.out.tensor->operation) {
    case Operation::kScale: return call.real(0) * x + call.real(1);
    case Operation::kSqr: return x * x;
    case Operation::kSqrt: return std::sqrt(x);
    case Operation::kLog: return std::log(x);
    case Operation::kExp: return std::exp(x);
    case Operation::kNeg: return -x;
    case Operation::kStep: return x > 0 ? 1.0f : 0.0f;
    case Operation::kRelu: return x > 0 ? x : 0.0f;
    case Operation::kGelu: return gelu(x);
    case Operation::kSilu: return x * sigmoid(x);
    case Operation::kTanh: return std::tanh(x);
    case Operation::kSigmoid: return sigmoid(x);
    default: return std::numeric_limits<float>::quiet_NaN();
  }
}

}  // namespace

Status binary_rows(const KernelCall& call, std::uint64_t begin, std::uint64_t end,
                   Scratch& scratch) {
  const Operation operation = call.out.tensor->operation;
  const graph::Shape& small = call.in[1].tensor->shape;
  for (std::uint64_t row = begin; row < end; ++row) {
    const RowAt at(call.out.tensor->shape, row);
    const float* const x = read_row(call.in[0], at.i1, at.i2, at.i3, scratch.a);
    const float* const y =
        read_row(call.in[1], at.i1 % small[1], at.i2 % small[2], at.i3 % small[3], scratch.b);
    float* const out = row_to_write(call.out, at.i1, at.i2, at.i3, scratch.c);
    for (std::uint64_t k = 0; k < call.out.extent(0); ++k)
      out[k] = binary(operation, x[k], y[k % small[0]]);
    write_row(call.out, at.i1, at.i2, at.i3, out);
  }
  return Status::ok();
}

Status unary_rows(const KernelCall& call, std::uint64_t begin, std::uint64_t end,
                  Scratch& scratch) {
  for (std::uint64_t row = begin; row < end; ++row) {
    const RowAt at(call.out.tensor->shape, row);
    const float* const x = read_row(call.in[0], at.i1, at.i2, at.i3, scratch.a);
    float* const out = row_to_write(call.out, at.i1, at.i2, at.i3, scratch.c);
    for (std::uint64_t k = 0; k < call.out.extent(0); ++k) out[k] = unary(call, x[k]);
    write_row(call.out, at.i1, at.i2, at.i3, out);
  }
  return Status::ok();
}

Status swiglu_rows(const KernelCall& call, std::uint64_t begin, std::uint64_t end,
                   Scratch& scratch) {
  const std::uint64_t length = call.out.extent(0);
  for (std::uint64_t row = begin; row < end; ++row) {
    const RowAt at(call.out.tensor->shape, row);
    const float* const gate = read_row(call.in[0], at.i1, at.i2, at.i3, scratch.a);
    const float* const value =
        call.has(1) ? read_row(call.in[1], at.i1, at.i2, at.i3, scratch.b) : gate + length;
    float* const out = row_to_write(call.out, at.i1, at.i2, at.i3, scratch.c);
    for (std::uint64_t k = 0; k < length; ++k) out[k] = gate[k] * sigmoid(gate[k]) * value[k];
    write_row(call.out, at.i1, at.i2, at.i3, out);
  }
  return Status::ok();
}

}  // namespace ashlar::cpu
