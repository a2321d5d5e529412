// Which nodes have a kernel for a GPU, and what that is told of a node. Host code.
//
// Thread safety: pure functions.
#pragma once

#include <span>

#include <ashlar/graph/graph.h>

#include "src/cpu_backend/kernels.h"
#include "src/cuda_backend/device_call.h"

namespace ashlar::cuda_backend {

/// Whether there is a kernel for the node: those of the processor's that the GPU's kernels have too. Attention
/// keeps sums in its result, which must be floats for that.
inline bool has_device_kernel(const graph::Graph& graph, graph::TensorId node) noexcept {
  const graph::Tensor& tensor = graph[node];
  if (tensor.operation == graph::Operation::kFlashAttnExt &&
      tensor.type != graph::ElementType::kF32)
    return false;
  return cpu::has_kernel(graph, node);
}

/// Whether the node computes nothing, as views do.
inline bool is_view_only(const graph::Graph& graph, graph::TensorId node) noexcept {
  return cpu::kernel_of(graph[node].operation).kernel == nullptr;
}

/// A tensor that lies there.
inline DeviceOperand device_operand(const graph::Tensor& tensor, Address at) {
  DeviceOperand operand;
  operand.base = static_cast<unsigned char*>(at.pointer());
  for (std::size_t d = 0; d < graph::kDimensions; ++d) {
    operand.shape[d] = tensor.shape[d];
    operand.strides[d] = tensor.strides[d];
  }
  operand.type = static_cast<std::uint8_t>(tensor.type);
  operand.is_there = true;
  return operand;
}

/// The node; `fault` is where kernels can reach it. REQUIRES: at most DeviceCall::kSourcesMax sources.
inline DeviceCall device_call(const graph::Graph& graph, graph::TensorId node,
                              std::span<const Address> addresses, int* fault) {
  const graph::Tensor& tensor = graph[node];
  DeviceCall call;
  call.out = device_operand(tensor, addresses[node.value()]);
  const auto sources = graph.sources(tensor);
  for (std::size_t k = 0; k < sources.size(); ++k) {
    if (sources[k] != graph::kNoTensor)
      call.in[k] = device_operand(graph[sources[k]], addresses[sources[k].value()]);
  }
  for (std::size_t k = 0; k < 4; ++k) call.reals[k] = tensor.parameters.reals[k];
  for (std::size_t k = 0; k < 8; ++k) call.integers[k] = tensor.parameters.integers[k];
  call.operation = static_cast<std::uint8_t>(tensor.operation);
  call.fault = fault;
  return call;
}

/// Contiguous floats of the same shape, with no address yet.
inline DeviceOperand contiguous_floats(const DeviceOperand& like) {
  DeviceOperand floats;
  std::uint64_t stride = sizeof(float);
  for (std::size_t d = 0; d < graph::kDimensions; ++d) {
    floats.shape[d] = like.shape[d];
    floats.strides[d] = stride;
    stride *= like.shape[d];
  }
  floats.type = kDeviceF32;
  floats.is_there = true;
  return floats;
}

/// Copies the elements, as floats.
inline DeviceCall unpacking_call(const DeviceOperand& floats, const DeviceOperand& from) {
  DeviceCall call;
  call.out = floats;
  call.in[0] = from;
  call.operation = static_cast<std::uint8_t>(graph::Operation::kCont);
  return call;
}

}  // namespace ashlar::cuda_backend
