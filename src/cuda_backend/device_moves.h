// Units that move elements: copies, rows by number, joins, and the steps of an optimizer.
//
// Thread safety: units of one node in any order, on any threads.
#pragma once

#include <cmath>

#include "src/cuda_backend/device_elements.h"

namespace ashlar::cuda_backend {

/// CONT and CPY: the n-th element of the source becomes the n-th of the result.
ASHLAR_ON_DEVICE inline void copied_element(const DeviceCall& call, std::uint64_t n) {
  move_element(call.out, DevicePlace::of_element(call.out.shape, n), call.in[0],
               DevicePlace::of_element(call.in[0].shape, n));
}

ASHLAR_ON_DEVICE inline void get_rows_element(const DeviceCall& call, const DevicePlace& at) {
  std::uint64_t row = 0;
  if (!device_index(call, load_index(call.in[1], at.i1, at.i2, at.i3), call.in[0].shape[1], &row))
    return;
  move_element(call.out, at, call.in[0], {at.i0, row, at.i2, at.i3});
}

/// The number that names the place of a row of values.
ASHLAR_ON_DEVICE inline std::int64_t set_rows_index(const DeviceCall& call, std::uint64_t i1,
                                                    const DevicePlace& at) {
  return load_index(call.in[1], i1, at.i2 % call.in[1].shape[1], at.i3 % call.in[1].shape[2]);
}

/// A unit is an element of the values. Of two rows for one place the later one is written.
ASHLAR_ON_DEVICE inline void set_rows_element(const DeviceCall& call, std::uint64_t n) {
  const DeviceOperand& values = call.in[0];
  const DevicePlace at = DevicePlace::of_element(values.shape, n);
  const std::int64_t wanted = set_rows_index(call, at.i1, at);
  std::uint64_t row = 0;
  if (!device_index(call, wanted, call.out.shape[1], &row)) return;
  for (std::uint64_t later = at.i1 + 1; later < values.shape[1]; ++later) {
    if (set_rows_index(call, later, at) == wanted) return;
  }
  store(call.out, {at.i0, row, at.i2, at.i3}, load(values, at));
}

ASHLAR_ON_DEVICE inline void concat_element(const DeviceCall& call, const DevicePlace& at) {
  std::uint64_t place[4] = {at.i0, at.i1, at.i2, at.i3};
  const int axis = call.integers[0];
  const std::uint64_t split = call.in[0].shape[axis];
  const bool is_second = place[axis] >= split;
  if (is_second) place[axis] -= split;
  copy_element(call.out, at, call.in[is_second ? 1 : 0], {place[0], place[1], place[2], place[3]});
}

ASHLAR_ON_DEVICE inline void pad_element(const DeviceCall& call, const DevicePlace& at) {
  const std::uint64_t* const shape = call.in[0].shape;
  if (at.i0 < shape[0] && at.i1 < shape[1] && at.i2 < shape[2] && at.i3 < shape[3]) {
    copy_element(call.out, at, call.in[0], at);
    return;
  }
  unsigned char* const byte = call.out.row(at.i1, at.i2, at.i3) + at.i0 * call.out.strides[0];
  const int bytes = call.out.type == kDeviceF16 ? 2 : call.out.type == kDeviceI64 ? 8 : 4;
  for (int k = 0; k < bytes; ++k) byte[k] = 0;
}

ASHLAR_ON_DEVICE inline void repeat_element(const DeviceCall& call, const DevicePlace& at) {
  const std::uint64_t* const shape = call.in[0].shape;
  copy_element(call.out, at, call.in[0],
               {at.i0 % shape[0], at.i1 % shape[1], at.i2 % shape[2], at.i3 % shape[3]});
}

ASHLAR_ON_DEVICE inline void repeat_back_element(const DeviceCall& call, const DevicePlace& at) {
  const DeviceOperand& from = call.in[0];
  const std::uint64_t* const step = call.out.shape;
  double sum = 0;
  for (std::uint64_t i3 = at.i3; i3 < from.shape[3]; i3 += step[3]) {
    for (std::uint64_t i2 = at.i2; i2 < from.shape[2]; i2 += step[2]) {
      for (std::uint64_t i1 = at.i1; i1 < from.shape[1]; i1 += step[1]) {
        for (std::uint64_t i0 = at.i0; i0 < from.shape[0]; i0 += step[0])
          sum += static_cast<double>(load(from, i0, i1, i2, i3));
      }
    }
  }
  store(call.out, at, static_cast<float>(sum));
}

ASHLAR_ON_DEVICE inline void swiglu_element(const DeviceCall& call, const DevicePlace& at) {
  DevicePlace other = at;
  if (!call.in[1].is_there) other.i0 += call.out.shape[0];
  const float gate = load(call.in[0], at);
  const float value = load(call.in[1].is_there ? call.in[1] : call.in[0], other);
  store(call.out, at, gate * device_sigmoid(gate) * value);
}

ASHLAR_ON_DEVICE inline void adamw_element(const DeviceCall& call, const DevicePlace& at) {
  double n[7];
  for (std::uint64_t k = 0; k < 7; ++k) n[k] = static_cast<double>(load(call.in[4], k, 0, 0, 0));
  const auto slope = static_cast<double>(load(call.in[1], at));
  const double mean = static_cast<double>(load(call.in[2], at)) * n[1] + slope * (1 - n[1]);
  const double square =
      static_cast<double>(load(call.in[3], at)) * n[2] + slope * slope * (1 - n[2]);
  const double step = mean * n[5] / (sqrt(square * n[6]) + n[3]);
  store(call.in[2], at, static_cast<float>(mean));
  store(call.in[3], at, static_cast<float>(square));
  const auto x = static_cast<double>(load(call.out, at));
  store(call.out, at, static_cast<float>(x * (1 - n[0] * n[4]) - n[0] * step));
}

}  // namespace ashlar::cuda_backend
