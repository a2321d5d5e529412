// The operations of a graph's nodes, and what the allocator has to know of each.
//
// Purpose: the allocator needs to know of an operation whether its result is a view, and over which
// source it may be computed in place. What an operation computes is defined in
// src/ashlar/graph/README.md; kernels are in the backends.
// Thread safety: pure functions of constant tables.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include <ashlar/base/export.h>

namespace ashlar::inline v0::graph {

/// What a node computes. Append only: graph files contain the names.
enum class Operation : std::uint8_t {
  kNone,  ///< nothing: a leaf, whose values come from outside, or a view
  // Views: they compute nothing and share their root's memory.
  kView,
  kReshape,
  kPermute,
  kTranspose,
  // Element by element. The second source is repeated to the shape of the first.
  kAdd,
  kSub,
  kMul,
  kDiv,
  kScale,
  kSqr,
  kSqrt,
  kLog,
  kExp,
  kNeg,
  kStep,
  kRelu,
  kGelu,
  kSilu,
  kTanh,
  kSigmoid,
  // Row by row.
  kNorm,
  kRmsNorm,
  kSoftMax,
  kRope,
  kDiagMaskInf,
  // Results of a shape or a type of their own.
  kMulMat,
  kMulMatId,
  kOutProd,
  kFlashAttnExt,
  kGetRows,
  kCont,
  kSwiglu,
  kConcat,
  kRepeat,
  kRepeatBack,
  kPad,
  kSum,
  kSumRows,
  kMean,
  kArgsort,
  kIm2col,
  kIm2colBack,
  kPool2d,
  kPool2dBack,
  kCrossEntropyLoss,
  kCrossEntropyLossBack,
  // Writers: if the result is a view, the node writes its root's memory. A kCpy that is not a view is a cast into
  // memory of its own; the other two are always views.
  kCpy,
  kSetRows,
  kOptStepAdamw,
  /// ends a region (Graph::end_region) and hands its results on; computes nothing
  kControl
};
inline constexpr std::uint8_t kOperations = static_cast<std::uint8_t>(Operation::kControl) + 1;

/// Which sources a result may be written over while it is computed, if the layouts are the same.
enum class InPlace : std::uint8_t {
  kNever,
  kFirstSource,  ///< a row of the first source is read before that row of the result is written
  /// each element of the result depends on the elements at its place alone, so any source will do,
  /// and several may be the same tensor
  kAnySource
};

/// What the allocator knows of an operation.
struct OperationTraits {
  std::string_view name;             ///< as in graph files
  std::uint8_t sources_min;          ///< it has at least so many sources
  std::uint8_t sources_max;          ///< and at most so many; kControl any number
  bool is_view;                      ///< computes nothing, and the result must be a view
  bool is_writer;                    ///< the result may be a view, which the node writes
  InPlace in_place;                  ///< over which sources it may be computed
  std::uint8_t written_sources = 0;  ///< bit k: the node writes source k besides its result
};

/// The traits of `operation`. Cost: O(1). Never throws.
ASHLAR_API const OperationTraits& traits_of(Operation operation) noexcept;
/// The operation of that name; std::nullopt if there is none. Cost: O(operations). Never throws.
ASHLAR_API std::optional<Operation> operation_of(std::string_view name) noexcept;

}  // namespace ashlar::inline v0::graph
