// A program of the CUDA runtime's functions alone, as a user writes it: compiled by nvcc, and run over the simulated GPU's library in
// place of NVIDIA's. runtime_program_test.sh builds and runs it.
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

#define CHECK(call)                                                                        \
  do {                                                                                     \
    const cudaError_t answer = (call);                                                     \
    if (answer != cudaSuccess) {                                                           \
      std::fprintf(stderr, "%s: %s: %s\n", #call, cudaGetErrorName(answer),                \
                   cudaGetErrorString(answer));                                            \
      return 1;                                                                            \
    }                                                                                      \
  } while (false)

int main() {
  constexpr int kCount = 100000;
  constexpr size_t kBytes = kCount * sizeof(int);
  int devices = 0;
  CHECK(cudaGetDeviceCount(&devices));
  CHECK(cudaSetDevice(devices - 1));
  std::vector<int> there(kCount), back(kCount);
  for (int i = 0; i < kCount; ++i) there[i] = i * 7;

  int* plain = nullptr;
  CHECK(cudaMalloc(&plain, kBytes));
  CHECK(cudaMemcpy(plain, there.data(), kBytes, cudaMemcpyHostToDevice));

  cudaStream_t stream, other;
  cudaEvent_t copied;
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  CHECK(cudaEventCreateWithFlags(&copied, cudaEventDisableTiming));
  int* ordered = nullptr;
  CHECK(cudaMallocAsync(&ordered, kBytes, stream));
  CHECK(cudaMemsetAsync(ordered, 0, kBytes, stream));
  CHECK(cudaMemcpyAsync(ordered + 1, plain, kBytes - sizeof(int), cudaMemcpyDeviceToDevice, stream));
  CHECK(cudaEventRecord(copied, stream));
  CHECK(cudaStreamWaitEvent(other, copied, 0));
  CHECK(cudaMemcpyAsync(back.data(), ordered, kBytes, cudaMemcpyDeviceToHost, other));
  CHECK(cudaFreeAsync(ordered, other));
  cudaError_t polled;
  while ((polled = cudaStreamQuery(other)) == cudaErrorNotReady) cudaGetLastError();
  CHECK(polled);
  CHECK(cudaEventSynchronize(copied));
  CHECK(cudaDeviceSynchronize());
  for (int i = 0; i < kCount; ++i) {
    if (back[i] == (i == 0 ? 0 : (i - 1) * 7)) continue;
    std::fprintf(stderr, "at %d stands %d\n", i, back[i]);
    return 1;
  }
  size_t free = 0, total = 0;
  CHECK(cudaFree(plain));
  CHECK(cudaEventDestroy(copied));
  CHECK(cudaStreamDestroy(stream));
  CHECK(cudaStreamDestroy(other));
  CHECK(cudaMemGetInfo(&free, &total));
  std::printf("%d devices, %zu bytes, %s\n", devices, total, free == total ? "all free" : "some in use");
  return free == total ? 0 : 1;
}
