// Every operation as units: how many a node has, who computes one, and what one is.
//
// Thread safety: pure functions; units of one node in any order.
#pragma once

#include "src/cuda_backend/device_moves.h"
#include "src/cuda_backend/device_rows.h"

namespace ashlar::cuda_backend {

/// Whether the lanes of a warp compute a unit together; else one thread does.
ASHLAR_ON_DEVICE inline bool is_by_lanes(std::uint8_t operation) {
  using graph::Operation;
  switch (static_cast<Operation>(operation)) {
    case Operation::kNorm:
    case Operation::kRmsNorm:
    case Operation::kSoftMax:
    case Operation::kMulMat:
    case Operation::kMulMatId:
    case Operation::kOutProd:
    case Operation::kFlashAttnExt:
    case Operation::kSum:
    case Operation::kSumRows:
    case Operation::kMean:
    case Operation::kArgsort:
    case Operation::kCrossEntropyLoss:
    case Operation::kCrossEntropyLossBack: return true;
    default: return false;
  }
}

/// The number of units.
ASHLAR_ON_DEVICE inline std::uint64_t units_of(const DeviceCall& call) {
  using graph::Operation;
  switch (static_cast<Operation>(call.operation)) {
    case Operation::kSum:
    case Operation::kCrossEntropyLoss: return 1;
    case Operation::kSetRows: return call.in[0].elements();
    case Operation::kRope:
      return call.out.rows() *
             (call.out.shape[0] - static_cast<std::uint64_t>(call.integers[0]) / 2);
    case Operation::kMulMat:
    case Operation::kMulMatId:
    case Operation::kOutProd: return call.out.elements();
    default: return is_by_lanes(call.operation) ? call.out.rows() : call.out.elements();
  }
}

/// Computes a unit of an operation that is_by_lanes().
template <class Lanes>
ASHLAR_ON_DEVICE void compute_by_lanes(const DeviceCall& call, std::uint64_t unit,
                                       const Lanes& lanes) {
  using graph::Operation;
  switch (static_cast<Operation>(call.operation)) {
    case Operation::kNorm:
    case Operation::kRmsNorm: return norm_row(call, unit, lanes);
    case Operation::kSoftMax: return soft_max_row(call, unit, lanes);
    case Operation::kMulMat:
    case Operation::kMulMatId:
    case Operation::kOutProd: return product_sum(call, unit, lanes);
    case Operation::kFlashAttnExt: return attention_row(call, unit, lanes);
    case Operation::kArgsort: return sorted_row(call, unit, lanes);
    case Operation::kCrossEntropyLoss: return loss_of_all(call, lanes);
    case Operation::kCrossEntropyLossBack: return loss_back_row(call, unit, lanes);
    default: return summed(call, unit, lanes);
  }
}

/// Computes a unit of any other operation.
ASHLAR_ON_DEVICE inline void compute_by_thread(const DeviceCall& call, std::uint64_t unit) {
  using graph::Operation;
  const auto operation = static_cast<Operation>(call.operation);
  if (operation == Operation::kRope) return rope_element(call, unit);
  if (operation == Operation::kSetRows) return set_rows_element(call, unit);
  if (operation == Operation::kCont || operation == Operation::kCpy)
    return copied_element(call, unit);
  const DevicePlace at = DevicePlace::of_element(call.out.shape, unit);
  switch (operation) {
    case Operation::kAdd:
    case Operation::kSub:
    case Operation::kMul:
    case Operation::kDiv:
      return store(call.out, at,
                   device_binary(call, load(call.in[0], at), load_repeated(call.in[1], at)));
    case Operation::kDiagMaskInf: {
      const bool is_masked =
          static_cast<std::int64_t>(at.i0) > static_cast<std::int64_t>(at.i1) + call.integers[0];
      return store(call.out, at, is_masked ? -INFINITY : load(call.in[0], at));
    }
    case Operation::kGetRows: return get_rows_element(call, at);
    case Operation::kSwiglu: return swiglu_element(call, at);
    case Operation::kConcat: return concat_element(call, at);
    case Operation::kPad: return pad_element(call, at);
    case Operation::kRepeat: return repeat_element(call, at);
    case Operation::kRepeatBack: return repeat_back_element(call, at);
    case Operation::kIm2col: return im2col_element(call, at);
    case Operation::kIm2colBack: return im2col_back_element(call, at);
    case Operation::kPool2d: return pool_element(call, at);
    case Operation::kPool2dBack: return pool_back_element(call, at);
    case Operation::kOptStepAdamw: return adamw_element(call, at);
    default: return store(call.out, at, device_unary(call, load(call.in[0], at)));
  }
}

}  // namespace ashlar::cuda_backend
