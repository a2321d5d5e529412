#include "src/cpu_backend/kernels.h"

#include <ashlar/graph/shape_rules.h>

namespace ashlar::cpu {
namespace {

using graph::ElementType;
using graph::Operation;
using graph::Tensor;

std::uint64_t rows(const KernelCall& call) { return rows_of(call.out.tensor->shape); }
std::uint64_t one(const KernelCall&) { return 1; }

bool is_float(const Tensor& tensor) {
  return tensor.type == ElementType::kF32 || tensor.type == ElementType::kF16;
}
bool is_quantised(const Tensor& tensor) { return traits_of(tensor.type).block_elements > 1; }
bool is_whole(const Tensor& tensor) {
  return tensor.type == ElementType::kI32 || tensor.type == ElementType::kI64;
}

/// Whether values go from one type to the other: the same plain type, or any to floats.
bool is_movable(const Tensor& from, const Tensor& to) {
  if (is_quantised(to)) return false;
  return from.type == to.type || (is_float(to) && !is_whole(from));
}

/// The sources' types, by operation; `source` gives them.
template <class Source>
bool has_types(const Tensor& out, const Source& source, std::size_t sources) {
  const auto all_float = [&](std::size_t begin) {
    for (std::size_t k = begin; k < sources; ++k) {
      if (source(k) != nullptr && !is_float(*source(k))) return false;
    }
    return is_float(out);
  };
  switch (out.operation) {
    case Operation::kMulMat: return !is_whole(*source(0)) && all_float(1);
    case Operation::kMulMatId:
      return !is_whole(*source(0)) && is_float(*source(1)) && is_float(out);
    case Operation::kGetRows: return is_movable(*source(0), out);
    case Operation::kSetRows: return is_float(*source(0)) && is_float(out);
    case Operation::kCont:
    case Operation::kCpy: {
      const bool is_reshaped = source(0)->shape != out.shape;
      return is_movable(*source(0), out) && !(is_reshaped && is_quantised(*source(0)));
    }
    case Operation::kConcat:
      return source(0)->type == out.type && source(1)->type == out.type && !is_quantised(out);
    case Operation::kPad:
    case Operation::kRepeat: return source(0)->type == out.type && !is_quantised(out);
    case Operation::kRope: return is_float(*source(0)) && is_float(out);
    case Operation::kArgsort: return is_float(*source(0)) && out.type == ElementType::kI32;
    case Operation::kIm2col: return is_float(*source(1)) && is_float(out);
    case Operation::kIm2colBack: return is_float(*source(0)) && is_float(out);
    case Operation::kOptStepAdamw: {
      for (std::size_t k = 0; k < 4; ++k) {
        if (source(k)->type != ElementType::kF32) return false;
        if (k != 1 && !is_packed(*source(k))) return false;
      }
      return source(4)->type == ElementType::kF32 && is_packed(out);
    }
    default: return all_float(0);
  }
}

}  // namespace

bool has_kernel(const graph::Graph& graph, graph::TensorId node) noexcept {
  const Tensor& out = graph[node];
  if (shape_fault(graph, node) != nullptr) return false;
  if (kernel_of(out.operation).kernel == nullptr) return true;
  const auto ids = graph.sources(out);
  const auto source = [&](std::size_t k) {
    return k < ids.size() && ids[k] != graph::kNoTensor ? &graph[ids[k]] : nullptr;
  };
  return ids.size() <= KernelCall::kSourcesMax && has_types(out, source, ids.size());
}

KernelEntry kernel_of(Operation operation) noexcept {
  switch (operation) {
    case Operation::kNone:
    case Operation::kView:
    case Operation::kReshape:
    case Operation::kPermute:
    case Operation::kTranspose:
    case Operation::kControl: return {};
    case Operation::kAdd:
    case Operation::kSub:
    case Operation::kMul:
    case Operation::kDiv: return {binary_rows, rows};
    case Operation::kScale:
    case Operation::kSqr:
    case Operation::kSqrt:
    case Operation::kLog:
    case Operation::kExp:
    case Operation::kNeg:
    case Operation::kStep:
    case Operation::kRelu:
    case Operation::kGelu:
    case Operation::kSilu:
    case Operation::kTanh:
    case Operation::kSigmoid: return {unary_rows, rows};
    case Operation::kNorm:
    case Operation::kRmsNorm: return {norm_rows, rows};
    case Operation::kSoftMax: return {soft_max_rows, rows};
    case Operation::kRope: return {rope_rows, rows};
    case Operation::kDiagMaskInf: return {diag_mask_rows, rows};
    case Operation::kMulMat: return {mul_mat_blocks, mul_mat_units};
    case Operation::kMulMatId: return {mul_mat_id_rows, rows};
    case Operation::kOutProd: return {out_prod_matrices, out_prod_units};
    case Operation::kFlashAttnExt: return {attention_rows, rows};
    case Operation::kGetRows: return {get_rows, rows};
    case Operation::kCont:
    case Operation::kCpy: return {copy_rows, rows};
    case Operation::kSetRows: return {set_rows, one};
    case Operation::kSwiglu: return {swiglu_rows, rows};
    case Operation::kConcat: return {concat_rows, rows};
    case Operation::kRepeat: return {repeat_rows, rows};
    case Operation::kRepeatBack: return {repeat_back_rows, rows};
    case Operation::kPad: return {pad_rows, rows};
    case Operation::kSum: return {sum_all, one};
    case Operation::kSumRows:
    case Operation::kMean: return {sum_rows, rows};
    case Operation::kArgsort: return {argsort_rows, rows};
    case Operation::kIm2col: return {im2col_rows, rows};
    case Operation::kIm2colBack: return {im2col_back_rows, rows};
    case Operation::kPool2d: return {pool_rows, rows};
    case Operation::kPool2dBack: return {pool_back_planes, plane_units};
    case Operation::kCrossEntropyLoss: return {loss_sum, one};
    case Operation::kCrossEntropyLossBack: return {loss_back_rows, rows};
    case Operation::kOptStepAdamw: return {adamw_rows, rows};
  }
  return {};
}

}  // namespace ashlar::cpu
