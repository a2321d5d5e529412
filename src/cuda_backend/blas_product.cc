#include "src/cuda_backend/blas_product.h"

#include <limits>

#include <ashlar/graph/operation.h>

namespace ashlar::cuda_backend {
namespace {

/// What cuBLAS recommends for the GPU with the largest need ("cuBLAS", cublasSetWorkspace): Hopper's.
constexpr Bytes kWorkspaceBytes = 32_MiB;

Status status_of_blas(BlasResult result) noexcept {
  if (result == 0) return Status::ok();
  if (result == kBlasAllocFailed) return {Code::kOutOfMemory, "cuBLAS has no memory"};
  return {Code::kDriverError, "cuBLAS failed"};
}

bool is_int(std::uint64_t n) { return n <= std::uint64_t{std::numeric_limits<int>::max()}; }

/// Floats in contiguous rows that do not overlap.
bool is_matrix_of_floats(const DeviceOperand& operand) {
  constexpr std::uint64_t kFloat = sizeof(float);
  if (operand.type != kDeviceF32 || operand.strides[0] != kFloat) return false;
  for (std::size_t d = 1; d < 4; ++d) {
    if (operand.strides[d] % kFloat != 0) return false;
  }
  return operand.strides[1] / kFloat >= operand.shape[0] && is_int(operand.strides[1] / kFloat);
}

int leading(const DeviceOperand& operand) {
  return static_cast<int>(operand.strides[1] / sizeof(float));
}
long long stride(const DeviceOperand& operand) {
  return static_cast<long long>(operand.strides[2] / sizeof(float));
}
float* matrix(const DeviceOperand& operand, std::uint64_t i2, std::uint64_t i3) {
  return reinterpret_cast<float*>(operand.row(0, i2, i3));
}

}  // namespace

Status BlasProduct::open(CudaGpu& gpu, const Stream& stream) noexcept {
  if (!gpu.blas().is_there()) return Status::ok();
  gpu_ = &gpu;
  BlasResult result = 0;
  const auto call = [&](auto&& make) {
    const Status called = gpu.context().call([&] {
      result = make();
      return CallResult{cuda::kSuccess};
    });
    return called.is_ok() ? status_of_blas(result) : called;
  };
  Status status = call([&] { return gpu.blas().create(&handle_); });
  if (!status.is_ok()) {
    handle_ = nullptr;
    return status;
  }
  status = call([&] { return gpu.blas().set_stream(handle_, pointer_of(stream)); });
  if (!status.is_ok()) return status;
  const Result<Address> workspace = gpu.allocator().allocate(kWorkspaceBytes, stream);
  if (!workspace.is_ok()) return workspace.status();
  workspace_ = workspace.value();
  return call([&] {
    return gpu.blas().set_workspace(handle_, workspace_.pointer(), kWorkspaceBytes.count());
  });
}

void BlasProduct::close() noexcept {
  if (handle_ != nullptr) {
    const auto destroy = [this] {
      static_cast<void>(gpu_->blas().destroy(handle_));
      return CallResult{cuda::kSuccess};
    };
    // A lost context is not entered, but the handle's memory on the host is given back.
    if (!gpu_->context().call(destroy).is_ok()) static_cast<void>(destroy());
  }
  if (!workspace_.is_null()) static_cast<void>(gpu_->allocator().free(workspace_));
  handle_ = nullptr;
  workspace_ = Address{};
}

bool BlasProduct::takes(const DeviceCall& call) noexcept {
  if (call.operation != static_cast<std::uint8_t>(graph::Operation::kMulMat)) return false;
  const DeviceOperand &a = call.in[0], &b = call.in[1], &out = call.out;
  if (out.elements() == 0 || a.shape[0] == 0) return false;
  return is_matrix_of_floats(a) && is_matrix_of_floats(b) && is_matrix_of_floats(out) &&
         is_int(a.shape[0]) && is_int(out.shape[0]) && is_int(out.shape[1]) && is_int(b.shape[2]);
}

Status BlasProduct::enqueue(const DeviceCall& call) noexcept {
  const DeviceOperand &a = call.in[0], &b = call.in[1], &out = call.out;
  // In column order a row is a column: out = transposed a times b. A matrix of `a` serves `shared2` of `b`
  // in a row, with a stride of 0; where it serves one, a call takes them all.
  const std::uint64_t shared2 = b.shape[2] / a.shape[2], shared3 = b.shape[3] / a.shape[3];
  const std::uint64_t batch = shared2 == 1 ? b.shape[2] : shared2;
  const long long a_stride = shared2 == 1 ? stride(a) : 0;
  const float one = 1, zero = 0;
  BlasResult result = 0;
  const Status called = gpu_->context().call([&] {
    for (std::uint64_t i3 = 0; i3 < b.shape[3]; ++i3) {
      for (std::uint64_t i2 = 0; i2 < b.shape[2] && result == 0; i2 += batch) {
        result = gpu_->blas().sgemm_batched(
            handle_, kBlasTransposed, kBlasAsItIs, static_cast<int>(out.shape[0]),
            static_cast<int>(out.shape[1]), static_cast<int>(a.shape[0]), &one,
            matrix(a, i2 / shared2, i3 / shared3), leading(a), a_stride, matrix(b, i2, i3),
            leading(b), stride(b), &zero, matrix(out, i2, i3), leading(out), stride(out),
            static_cast<int>(batch));
      }
    }
    return CallResult{cuda::kSuccess};
  });
  return called.is_ok() ? status_of_blas(result) : called;
}

}  // namespace ashlar::cuda_backend
