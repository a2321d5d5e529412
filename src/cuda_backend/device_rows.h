// Units that are rows and sums: the lanes of a warp compute one together.
//
// Thread safety: units of one node in any order, on any threads. After its last sum or largest a lane
// reads only those elements of the row that it writes itself, so the row may be written in place.
#pragma once

#include <cmath>

#include "src/cuda_backend/device_elements.h"

namespace ashlar::cuda_backend {

template <class Lanes>
ASHLAR_ON_DEVICE void norm_row(const DeviceCall& call, std::uint64_t unit, const Lanes& lanes) {
  const bool has_mean = static_cast<graph::Operation>(call.operation) == graph::Operation::kNorm;
  const DevicePlace row = DevicePlace::of_row(call.out.shape, unit);
  const std::uint64_t length = call.out.shape[0];
  const auto x = [&](std::uint64_t k) {
    return static_cast<double>(load(call.in[0], k, row.i1, row.i2, row.i3));
  };
  double own = 0;
  for (std::uint64_t k = lanes.first(); k < length && has_mean; k += lanes.step()) own += x(k);
  const double mean = lanes.sum(own) / static_cast<double>(length);
  own = 0;
  for (std::uint64_t k = lanes.first(); k < length; k += lanes.step())
    own += (x(k) - mean) * (x(k) - mean);
  const double root =
      sqrt(lanes.sum(own) / static_cast<double>(length) + static_cast<double>(call.reals[0]));
  for (std::uint64_t k = lanes.first(); k < length; k += lanes.step())
    store(call.out, {k, row.i1, row.i2, row.i3}, static_cast<float>((x(k) - mean) / root));
}

template <class Lanes>
ASHLAR_ON_DEVICE void soft_max_row(const DeviceCall& call, std::uint64_t unit, const Lanes& lanes) {
  const DevicePlace row = DevicePlace::of_row(call.out.shape, unit);
  const DeviceOperand& mask = call.in[1];
  const auto x = [&](std::uint64_t k) {
    float value = call.reals[0] * load(call.in[0], k, row.i1, row.i2, row.i3);
    if (mask.is_there)
      value += load(mask, k, row.i1, row.i2 % mask.shape[2], row.i3 % mask.shape[3]);
    return value;
  };
  float most = -INFINITY;
  for (std::uint64_t k = lanes.first(); k < call.out.shape[0]; k += lanes.step()) {
    const float value = x(k);
    if (value > most) most = value;
  }
  most = lanes.largest(most);
  double own = 0;
  for (std::uint64_t k = lanes.first(); k < call.out.shape[0]; k += lanes.step())
    own += static_cast<double>(expf(x(k) - most));
  const double total = lanes.sum(own);
  for (std::uint64_t k = lanes.first(); k < call.out.shape[0]; k += lanes.step()) {
    const double value = static_cast<double>(expf(x(k) - most)) / total;
    store(call.out, {k, row.i1, row.i2, row.i3}, static_cast<float>(value));
  }
}

/// An element of MUL_MAT, MUL_MAT_ID or OUT_PROD: the sum over the shared side.
template <class Lanes>
ASHLAR_ON_DEVICE void product_sum(const DeviceCall& call, std::uint64_t unit, const Lanes& lanes) {
  using graph::Operation;
  const DeviceOperand &a = call.in[0], &b = call.in[1];
  const auto operation = static_cast<Operation>(call.operation);
  const DevicePlace at = DevicePlace::of_element(call.out.shape, unit);
  double own = 0;
  if (operation == Operation::kMulMatId) {
    std::uint64_t expert = 0;
    if (!device_index(call, load_index(call.in[2], at.i1, at.i2, 0), a.shape[2], &expert)) return;
    for (std::uint64_t k = lanes.first(); k < a.shape[0]; k += lanes.step()) {
      own += static_cast<double>(load(a, k, at.i0, expert, 0)) *
             static_cast<double>(load(b, k, at.i1 % b.shape[1], at.i2, 0));
    }
  } else {
    const std::uint64_t i2 = at.i2 / (b.shape[2] / a.shape[2]);
    const std::uint64_t i3 = at.i3 / (b.shape[3] / a.shape[3]);
    const bool is_outer = operation == Operation::kOutProd;
    for (std::uint64_t k = lanes.first(); k < a.shape[is_outer ? 1 : 0]; k += lanes.step()) {
      const float left = is_outer ? load(a, at.i0, k, i2, i3) : load(a, k, at.i0, i2, i3);
      const float right =
          is_outer ? load(b, at.i1, k, at.i2, at.i3) : load(b, k, at.i1, at.i2, at.i3);
      own += static_cast<double>(left) * static_cast<double>(right);
    }
  }
  const double total = lanes.sum(own);
  if (lanes.first() == 0) store(call.out, at, static_cast<float>(total));
}

/// A head and a token: soft-max over the keys as they come, with the sums of values kept in the result.
template <class Lanes>
ASHLAR_ON_DEVICE void attention_row(const DeviceCall& call, std::uint64_t unit,
                                    const Lanes& lanes) {
  const DeviceOperand &q = call.in[0], &k = call.in[1], &v = call.in[2], &mask = call.in[3];
  const DevicePlace at = DevicePlace::of_row(call.out.shape, unit);  // i1: head, i2: token
  const std::uint64_t head = at.i1 / (q.shape[2] / k.shape[2]);
  const std::uint64_t batch = at.i3 / (q.shape[3] / k.shape[3]);
  for (std::uint64_t d = lanes.first(); d < v.shape[0]; d += lanes.step())
    store(call.out, {d, at.i1, at.i2, at.i3}, 0.0f);
  float most = -INFINITY;
  double total = 0;
  for (std::uint64_t n = 0; n < k.shape[1]; ++n) {
    double own = 0;
    for (std::uint64_t d = lanes.first(); d < q.shape[0]; d += lanes.step()) {
      own += static_cast<double>(load(q, d, at.i2, at.i1, at.i3)) *
             static_cast<double>(load(k, d, n, head, batch));
    }
    float score = call.reals[0] * static_cast<float>(lanes.sum(own));
    if (mask.is_there) score += load(mask, n, at.i2, 0, 0);
    if (score == -INFINITY) continue;  // it has no weight, whatever comes
    const float larger = score > most || score != score ? score : most;
    const float keep = expf(most - larger), weight = expf(score - larger);
    most = larger;
    total = total * static_cast<double>(keep) + static_cast<double>(weight);
    for (std::uint64_t d = lanes.first(); d < v.shape[0]; d += lanes.step()) {
      const DevicePlace place{d, at.i1, at.i2, at.i3};
      store(call.out, place, load(call.out, place) * keep + weight * load(v, d, n, head, batch));
    }
  }
  for (std::uint64_t d = lanes.first(); d < v.shape[0]; d += lanes.step()) {
    const DevicePlace place{d, at.i1, at.i2, at.i3};
    store(call.out, place, static_cast<float>(static_cast<double>(load(call.out, place)) / total));
  }
}

/// SUM_ROWS and MEAN of a row, SUM of all.
template <class Lanes>
ASHLAR_ON_DEVICE void summed(const DeviceCall& call, std::uint64_t unit, const Lanes& lanes) {
  using graph::Operation;
  const DeviceOperand& x = call.in[0];
  const auto operation = static_cast<Operation>(call.operation);
  const bool is_all = operation == Operation::kSum;
  const std::uint64_t count = is_all ? x.elements() : x.shape[0];
  const DevicePlace row =
      is_all ? DevicePlace{0, 0, 0, 0} : DevicePlace::of_row(call.out.shape, unit);
  double own = 0;
  for (std::uint64_t k = lanes.first(); k < count; k += lanes.step()) {
    const DevicePlace at =
        is_all ? DevicePlace::of_element(x.shape, k) : DevicePlace{k, row.i1, row.i2, row.i3};
    own += static_cast<double>(load(x, at));
  }
  const double total = lanes.sum(own);
  if (lanes.first() != 0) return;
  const bool is_mean = operation == Operation::kMean;
  store(call.out, row, static_cast<float>(is_mean ? total / static_cast<double>(count) : total));
}

/// Each lane finds the places of its elements: how many come before.
template <class Lanes>
ASHLAR_ON_DEVICE void sorted_row(const DeviceCall& call, std::uint64_t unit, const Lanes& lanes) {
  const DevicePlace row = DevicePlace::of_row(call.out.shape, unit);
  const bool is_descending = call.integers[0] == 1;
  for (std::uint64_t k = lanes.first(); k < call.out.shape[0]; k += lanes.step()) {
    const float own = load(call.in[0], k, row.i1, row.i2, row.i3);
    std::uint64_t place = 0;
    for (std::uint64_t j = 0; j < call.out.shape[0]; ++j) {
      const float other = load(call.in[0], j, row.i1, row.i2, row.i3);
      const bool has_own = own == own, has_other = other == other;
      bool is_before = j < k;
      if (has_own != has_other) {
        is_before = has_other;
      } else if (has_own && own != other) {
        is_before = is_descending ? other > own : other < own;
      }
      place += is_before ? 1 : 0;
    }
    unsigned char* const at = call.out.row(row.i1, row.i2, row.i3) + place * call.out.strides[0];
    *reinterpret_cast<std::int32_t*>(at) = static_cast<std::int32_t>(k);
  }
}

/// The logarithm of the sum of a row's exponentials. One lane.
ASHLAR_ON_DEVICE inline double log_sum_of_row(const DeviceOperand& x, const DevicePlace& row) {
  double most = static_cast<double>(-INFINITY), sum = 0;
  for (std::uint64_t k = 0; k < x.shape[0]; ++k) {
    const auto value = static_cast<double>(load(x, k, row.i1, row.i2, row.i3));
    if (value > most) most = value;
  }
  for (std::uint64_t k = 0; k < x.shape[0]; ++k)
    sum += exp(static_cast<double>(load(x, k, row.i1, row.i2, row.i3)) - most);
  return most + log(sum);
}

/// Each lane has some of the rows.
template <class Lanes>
ASHLAR_ON_DEVICE void loss_of_all(const DeviceCall& call, const Lanes& lanes) {
  const DeviceOperand &logits = call.in[0], &labels = call.in[1];
  double own = 0;
  for (std::uint64_t r = lanes.first(); r < logits.rows(); r += lanes.step()) {
    const DevicePlace row = DevicePlace::of_row(logits.shape, r);
    const double log_sum = log_sum_of_row(logits, row);
    for (std::uint64_t k = 0; k < logits.shape[0]; ++k) {
      own -= static_cast<double>(load(labels, k, row.i1, row.i2, row.i3)) *
             (static_cast<double>(load(logits, k, row.i1, row.i2, row.i3)) - log_sum);
    }
  }
  const double total = lanes.sum(own);
  const std::uint64_t rows = logits.rows();
  if (lanes.first() == 0) {
    store(call.out, {0, 0, 0, 0},
          static_cast<float>(rows == 0 ? 0.0 : total / static_cast<double>(rows)));
  }
}

template <class Lanes>
ASHLAR_ON_DEVICE void loss_back_row(const DeviceCall& call, std::uint64_t unit,
                                    const Lanes& lanes) {
  const DevicePlace row = DevicePlace::of_row(call.out.shape, unit);
  const double log_sum = log_sum_of_row(call.in[1], row);
  const double gradient =
      static_cast<double>(load(call.in[0], 0, 0, 0, 0)) / static_cast<double>(call.out.rows());
  for (std::uint64_t k = lanes.first(); k < call.out.shape[0]; k += lanes.step()) {
    const DevicePlace at{k, row.i1, row.i2, row.i3};
    const double soft_max = exp(static_cast<double>(load(call.in[1], at)) - log_sum);
    store(call.out, at,
          static_cast<float>((soft_max - static_cast<double>(load(call.in[2], at))) * gradient));
  }
}

}  // namespace ashlar::cuda_backend
