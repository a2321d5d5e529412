// cuBLAS's functions over the simulated GPU: products of matrices in column order, with sums in doubles.
//
// Thread safety: as cuda_face.h; a handle belongs to one thread at a time.
// Source: "cuBLAS", version 13.0, cublasSgemmStridedBatched, cublasSetStream, cublasSetWorkspace.
#include <atomic>
#include <vector>

#include "spec/cuda_face/face_calls.h"

namespace ashlar::spec::cuda_face {
namespace {

constexpr int kBlasNotInitialized = 1;    // CUBLAS_STATUS_NOT_INITIALIZED
constexpr int kBlasInvalidValue = 7;      // CUBLAS_STATUS_INVALID_VALUE
constexpr int kBlasExecutionFailed = 13;  // CUBLAS_STATUS_EXECUTION_FAILED
constexpr std::uint64_t kWorkspaceAlignment = 256;

struct Handle {
  StreamPointer stream = nullptr;
  Address workspace;
  Bytes workspace_size;
};

struct Matrix {
  std::uint64_t base;
  int leading;
  long long stride;

  float* at(int row, int column, int batch) const {
    const long long index = stride * batch + static_cast<long long>(leading) * column + row;
    return static_cast<float*>(Address{base}.pointer()) + index;
  }
  /// The bytes of `batch` matrices of that many rows and columns.
  Touch touch(int rows, int columns, int batch, Access access) const {
    const auto first = reinterpret_cast<std::uintptr_t>(at(0, 0, 0));
    const auto last = reinterpret_cast<std::uintptr_t>(at(rows - 1, columns - 1, batch - 1));
    return {Address{first}, Bytes{last + sizeof(float) - first}, access};
  }
};

std::atomic<int> products{0};

void multiply(const Matrix& a, const Matrix& b, const Matrix& c, int m, int n, int k, int batch) {
  for (int each = 0; each < batch; ++each) {
    for (int column = 0; column < n; ++column) {
      for (int row = 0; row < m; ++row) {
        double sum = 0;
        for (int in = 0; in < k; ++in)
          sum += static_cast<double>(*a.at(in, row, each)) *
                 static_cast<double>(*b.at(in, column, each));
        *c.at(row, column, each) = static_cast<float>(sum);
      }
    }
  }
}

}  // namespace

int blas_products() { return products; }

}  // namespace ashlar::spec::cuda_face

namespace face = ashlar::spec::cuda_face;

extern "C" [[gnu::visibility("default")]] int cublasCreate_v2(void** handle) {
  if (face::contexts().empty()) return face::kBlasNotInitialized;
  if (face::take_planned() != face::kSuccess) return face::kBlasNotInitialized;
  *handle = new face::Handle;
  return 0;
}

extern "C" [[gnu::visibility("default")]] int cublasDestroy_v2(void* handle) {
  delete static_cast<face::Handle*>(handle);
  return 0;
}

extern "C" [[gnu::visibility("default")]] int cublasSetStream_v2(void* handle,
                                                                 face::StreamPointer stream) {
  *static_cast<face::Handle*>(handle) = {stream, {}, {}};  // cuBLAS goes back to its own workspace
  return 0;
}

extern "C" [[gnu::visibility("default")]] int cublasSetWorkspace_v2(void* handle, void* workspace,
                                                                    std::size_t bytes) {
  auto& own = *static_cast<face::Handle*>(handle);
  own.workspace = ashlar::Address::of(workspace);
  own.workspace_size = ashlar::Bytes{bytes};
  return own.workspace.value() % face::kWorkspaceAlignment == 0 ? 0 : face::kBlasInvalidValue;
}

/// The form that is built: the first operand transposed, the second as it is, alpha 1 and beta 0.
extern "C" [[gnu::visibility("default")]] int cublasSgemmStridedBatched(
    void* handle, int a_as, int b_as, int m, int n, int k, const float* alpha, const float* a,
    int a_leading, long long a_stride, const float* b, int b_leading, long long b_stride,
    const float* beta, float* c, int c_leading, long long c_stride, int batch) {
  using face::Matrix;
  if (a_as != 1 || b_as != 0 || *alpha != 1.0f || *beta != 0.0f || m < 1 || n < 1 || k < 1 ||
      batch < 1 || a_leading < k || b_leading < k || c_leading < m)
    return face::kBlasInvalidValue;
  const Matrix left{reinterpret_cast<std::uintptr_t>(a), a_leading, a_stride};
  const Matrix right{reinterpret_cast<std::uintptr_t>(b), b_leading, b_stride};
  const Matrix out{reinterpret_cast<std::uintptr_t>(c), c_leading, c_stride};
  using ashlar::spec::Access;
  const auto& own = *static_cast<const face::Handle*>(handle);
  const std::vector<ashlar::spec::Touch> touches{
      left.touch(k, m, batch, Access::kRead),
      right.touch(k, n, batch, Access::kRead),
      out.touch(m, n, batch, Access::kWrite),
      {own.workspace, own.workspace_size, Access::kReadWrite}};
  ++face::products;
  const face::CallResult enqueued = face::enqueue_work(
      own.stream, touches, [=] { face::multiply(left, right, out, m, n, k, batch); });
  return enqueued == face::kSuccess ? 0 : face::kBlasExecutionFailed;
}
