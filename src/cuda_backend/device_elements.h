// Units that are elements: one thread computes one.
//
// Thread safety: units of one node in any order, on any threads.
#pragma once

#include <cmath>

#include <ashlar/graph/operation.h>

#include "src/cuda_backend/device_call.h"

namespace ashlar::cuda_backend {

ASHLAR_ON_DEVICE inline float device_sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }

ASHLAR_ON_DEVICE inline float device_unary(const DeviceCall& call, float x) {
  using graph::Operation;
  switch (static_cast<Operation>(call.operation)) {
    case Operation::kScale: return call.reals[0] * x + call.reals[1];
    case Operation::kSqr: return x * x;
    case Operation::kSqrt: return sqrtf(x);
    case Operation::kLog: return logf(x);
    case Operation::kExp: return expf(x);
    case Operation::kNeg: return -x;
    case Operation::kStep: return x > 0 ? 1.0f : 0.0f;
    case Operation::kRelu: return x > 0 ? x : 0.0f;
    case Operation::kGelu:
      return 0.5f * x * (1.0f + tanhf(0.79788456080286535588f * x * (1.0f + 0.044715f * x * x)));
    case Operation::kSilu: return x * device_sigmoid(x);
    case Operation::kTanh: return tanhf(x);
    default: return device_sigmoid(x);
  }
}

ASHLAR_ON_DEVICE inline float device_binary(const DeviceCall& call, float x, float y) {
  using graph::Operation;
  switch (static_cast<Operation>(call.operation)) {
    case Operation::kAdd: return x + y;
    case Operation::kSub: return x - y;
    case Operation::kMul: return x * y;
    default: return x / y;
  }
}

/// The row that an index names; false, and the fault is set, if there is none.
ASHLAR_ON_DEVICE inline bool device_index(const DeviceCall& call, std::int64_t index,
                                          std::uint64_t bound, std::uint64_t* row) {
  *row = static_cast<std::uint64_t>(index);
  if (index >= 0 && *row < bound) return true;
  *call.fault = 1;
  return false;
}

ASHLAR_ON_DEVICE inline void rope_element(const DeviceCall& call, std::uint64_t pair_unit) {
  // A unit is a pair of a row, or one of the elements behind the pairs.
  const DeviceOperand& x = call.in[0];
  const auto turned = static_cast<std::uint64_t>(call.integers[0]);
  const std::uint64_t in_row = call.out.shape[0] - turned / 2;
  DevicePlace at = DevicePlace::of_row(call.out.shape, pair_unit / in_row);
  const std::uint64_t k = pair_unit % in_row;
  if (k >= turned / 2) {
    at.i0 = k + turned / 2;
    store(call.out, at, load(x, at));
    return;
  }
  const bool is_neighbours = call.integers[1] == 0;
  DevicePlace first = at, second = at;
  first.i0 = is_neighbours ? 2 * k : k;
  second.i0 = is_neighbours ? 2 * k + 1 : k + turned / 2;
  const auto position = static_cast<double>(load_index(call.in[1], at.i2, 0, 0));
  const double exponent = -2.0 * static_cast<double>(k) / static_cast<double>(turned);
  const double angle = position * pow(static_cast<double>(call.reals[0]), exponent);
  const auto cosine = static_cast<float>(cos(angle)), sine = static_cast<float>(sin(angle));
  const float a = load(x, first), b = load(x, second);
  store(call.out, first, a * cosine - b * sine);
  store(call.out, second, a * sine + b * cosine);
}

/// Windows over an image, as IM2COL's numbers have them; an image of one dimension is one row high.
struct DeviceWindows {
  bool is_flat;
  std::int64_t stride_x, stride_y, pad_x, pad_y, dilation_x, dilation_y, width, height;

  ASHLAR_ON_DEVICE DeviceWindows(const DeviceCall& call, const std::uint64_t* kernel)
      : is_flat(call.integers[6] == 1),
        stride_x(call.integers[0]),
        stride_y(is_flat ? 1 : call.integers[1]),
        pad_x(call.integers[2]),
        pad_y(is_flat ? 0 : call.integers[3]),
        dilation_x(call.integers[4]),
        dilation_y(is_flat ? 1 : call.integers[5]),
        width(static_cast<std::int64_t>(kernel[0])),
        height(is_flat ? 1 : static_cast<std::int64_t>(kernel[1])) {}
  ASHLAR_ON_DEVICE std::int64_t x(std::uint64_t step, std::int64_t place) const {
    return static_cast<std::int64_t>(step) * stride_x - pad_x + place * dilation_x;
  }
  ASHLAR_ON_DEVICE std::int64_t y(std::uint64_t step, std::int64_t place) const {
    return static_cast<std::int64_t>(step) * stride_y - pad_y + place * dilation_y;
  }
};

ASHLAR_ON_DEVICE inline void im2col_element(const DeviceCall& call, const DevicePlace& at) {
  const DeviceWindows w(call, call.in[0].shape);
  const DeviceOperand& image = call.in[1];
  const auto k = static_cast<std::int64_t>(at.i0);
  const std::int64_t x = w.x(at.i1, k % w.width);
  const std::int64_t y = w.y(w.is_flat ? 0 : at.i2, k / w.width % w.height);
  const auto channel = static_cast<std::uint64_t>(k / w.width / w.height);
  const auto size_y = w.is_flat ? 1 : static_cast<std::int64_t>(image.shape[1]);
  float value = 0;
  if (x >= 0 && y >= 0 && x < static_cast<std::int64_t>(image.shape[0]) && y < size_y) {
    const auto ux = static_cast<std::uint64_t>(x), uy = static_cast<std::uint64_t>(y);
    value = w.is_flat ? load(image, ux, channel, at.i2, 0) : load(image, ux, uy, channel, at.i3);
  }
  store(call.out, at, value);
}

ASHLAR_ON_DEVICE inline void im2col_back_element(const DeviceCall& call, const DevicePlace& at) {
  const DeviceOperand& patches = call.in[0];
  const DeviceWindows w(call, call.in[1].shape);
  const auto x = static_cast<std::int64_t>(at.i0);
  const auto y = static_cast<std::int64_t>(w.is_flat ? 0 : at.i1);
  const auto channel = static_cast<std::int64_t>(w.is_flat ? at.i1 : at.i2);
  const std::uint64_t n = w.is_flat ? at.i2 : at.i3;
  float sum = 0;
  for (std::uint64_t step_y = 0; step_y < (w.is_flat ? 1 : patches.shape[2]); ++step_y) {
    for (std::int64_t ky = 0; ky < w.height; ++ky) {
      if (w.y(step_y, ky) != y) continue;
      for (std::uint64_t step_x = 0; step_x < patches.shape[1]; ++step_x) {
        for (std::int64_t kx = 0; kx < w.width; ++kx) {
          if (w.x(step_x, kx) != x) continue;
          const auto k = static_cast<std::uint64_t>((channel * w.height + ky) * w.width + kx);
          sum += w.is_flat ? load(patches, k, step_x, n, 0) : load(patches, k, step_x, step_y, n);
        }
      }
    }
  }
  store(call.out, at, sum);
}

/// The pixels of a pool's window that are in the image: [begin, end) along one side.
struct DeviceSpan {
  std::int64_t begin, end;
  ASHLAR_ON_DEVICE DeviceSpan(const DeviceCall& call, int side, std::uint64_t step,
                              std::uint64_t size) {
    const std::int64_t first =
        static_cast<std::int64_t>(step) * call.integers[3 + side] - call.integers[5 + side];
    const std::int64_t last = first + call.integers[1 + side];
    const auto limit = static_cast<std::int64_t>(size);
    begin = first < 0 ? 0 : first;
    end = last < limit ? last : limit;
  }
};

ASHLAR_ON_DEVICE inline void pool_element(const DeviceCall& call, const DevicePlace& at) {
  const DeviceOperand& image = call.in[0];
  const DeviceSpan across(call, 0, at.i0, image.shape[0]), down(call, 1, at.i1, image.shape[1]);
  const bool is_mean = call.integers[0] == 1;
  float value = is_mean ? 0.0f : -INFINITY;
  for (std::int64_t y = down.begin; y < down.end; ++y) {
    for (std::int64_t x = across.begin; x < across.end; ++x) {
      const float pixel =
          load(image, static_cast<std::uint64_t>(x), static_cast<std::uint64_t>(y), at.i2, at.i3);
      value = is_mean ? value + pixel : (value < pixel ? pixel : value);
    }
  }
  const float window = static_cast<float>(call.integers[1]) * static_cast<float>(call.integers[2]);
  store(call.out, at, is_mean ? value / window : value);
}

/// Whether the window's gradient goes to that pixel: to all, or to the first that has the maximum.
ASHLAR_ON_DEVICE inline bool is_pooled_from(const DeviceCall& call, const DeviceSpan& across,
                                            const DeviceSpan& down, const DevicePlace& at) {
  const auto own_x = static_cast<std::int64_t>(at.i0), own_y = static_cast<std::int64_t>(at.i1);
  if (own_x < across.begin || own_x >= across.end || own_y < down.begin || own_y >= down.end)
    return false;
  if (call.integers[0] == 1) return true;
  bool is_any = false, is_own = false;
  float most = 0;
  for (std::int64_t y = down.begin; y < down.end; ++y) {
    for (std::int64_t x = across.begin; x < across.end; ++x) {
      const float pixel = load(call.in[1], static_cast<std::uint64_t>(x),
                               static_cast<std::uint64_t>(y), at.i2, at.i3);
      if (is_any && !(pixel > most)) continue;
      is_any = true;
      most = pixel;
      is_own = x == own_x && y == own_y;
    }
  }
  return is_own;
}

ASHLAR_ON_DEVICE inline void pool_back_element(const DeviceCall& call, const DevicePlace& at) {
  const DeviceOperand& gradients = call.in[0];
  const float window = static_cast<float>(call.integers[1]) * static_cast<float>(call.integers[2]);
  float sum = 0;
  for (std::uint64_t step_y = 0; step_y < gradients.shape[1]; ++step_y) {
    const DeviceSpan down(call, 1, step_y, call.out.shape[1]);
    for (std::uint64_t step_x = 0; step_x < gradients.shape[0]; ++step_x) {
      const DeviceSpan across(call, 0, step_x, call.out.shape[0]);
      if (!is_pooled_from(call, across, down, at)) continue;
      const float gradient = load(gradients, step_x, step_y, at.i2, at.i3);
      sum += call.integers[0] == 1 ? gradient / window : gradient;
    }
  }
  store(call.out, at, sum);
}

}  // namespace ashlar::cuda_backend
