// Stream-ordered memory of the runtime's face (spec/cuda_face/runtime_pool.cc): who may have what was freed, and when it goes back.
//
// Imitates: cudaMallocAsync as its documentation describes it. Does not prove: that a driver's pool places memory so.
#include "props/cuda/runtime_machine.h"

namespace ashlar {
namespace {

using namespace cuda;  // NOLINT(google-build-using-namespace): the answers
namespace rt = spec::cuda_runtime;

class CudaRuntimePool : public props::RuntimeMachine {
 protected:
  void* take(StreamPointer on, std::size_t size = 1 << 20) {
    void* made = nullptr;
    EXPECT_EQ(rt::cudaMallocAsync(&made, size, on), kSuccess);
    return made;
  }
  /// Memory that was freed on the stream behind work that is pending.
  void* freed_behind_work(StreamPointer on, std::size_t size = 1 << 20) {
    void* const at = take(on, size);
    work(on, at);
    EXPECT_EQ(rt::cudaFreeAsync(at, on), kSuccess);
    return at;
  }
};

TEST_F(CudaRuntimePool, TheSameStreamHasFreedMemoryAtOnce) {
  const StreamPointer on = stream();
  void* const at = freed_behind_work(on);
  EXPECT_EQ(take(on), at);
  EXPECT_EQ(segments(), 1u);
  EXPECT_EQ(rt::cudaStreamQuery(on), kErrorNotReady) << "nothing waited";
}

TEST_F(CudaRuntimePool, AnotherStreamHasItOnceTheFreeIsComplete) {
  const StreamPointer on = stream();
  const StreamPointer other = stream();
  void* const at = freed_behind_work(on);
  void* const apart = take(other);
  EXPECT_NE(apart, at) << "its work is pending";
  EXPECT_EQ(gpu_.drain_all().code(), Code::kOk);
  EXPECT_EQ(take(other), at);
  EXPECT_EQ(segments(), 2u);
  EXPECT_EQ(gpu_.fault_count(), 0u);
}

TEST_F(CudaRuntimePool, ASynchronisationGivesBackWhatIsComplete) {
  const StreamPointer on = stream();
  const StreamPointer other = stream();
  freed_behind_work(on);
  freed_behind_work(other);
  EXPECT_EQ(segments(), 2u);
  EXPECT_EQ(rt::cudaStreamSynchronize(on), kSuccess);
  EXPECT_EQ(segments(), 1u) << "the other's work is pending";
  EXPECT_EQ(rt::cudaDeviceSynchronize(), kSuccess);
  EXPECT_EQ(segments(), 0u);
  EXPECT_EQ(gpu_.ledger().events.count, 0u);
  EXPECT_EQ(gpu_.fault_count(), 0u);
}

TEST_F(CudaRuntimePool, MemoryInUseStaysWhereItIs) {
  const StreamPointer on = stream();
  void* const at = take(on);
  EXPECT_EQ(rt::cudaDeviceSynchronize(), kSuccess);
  EXPECT_EQ(segments(), 1u);
  EXPECT_EQ(rt::cudaFree(at), kSuccess) << "cudaFree takes it too";
  EXPECT_EQ(segments(), 0u);
  EXPECT_EQ(rt::cudaFreeAsync(at, on), kErrorInvalidValue) << "twice";
}

TEST_F(CudaRuntimePool, OnlyThePoolsMemoryIsFreedInOrderOfAStream) {
  void* const at = allocate();
  EXPECT_EQ(rt::cudaFreeAsync(at, nullptr), kErrorInvalidValue);
  EXPECT_EQ(rt::cudaFreeAsync(nullptr, nullptr), kSuccess);
  EXPECT_EQ(segments(), 1u);
}

TEST_F(CudaRuntimePool, ADeviceThatIsFullTakesBackWhatIsComplete) {
  const StreamPointer on = stream();
  const StreamPointer other = stream();
  freed_behind_work(on, 40 << 20);
  void* at = nullptr;
  EXPECT_EQ(rt::cudaMallocAsync(&at, 50 << 20, other), kErrorOutOfMemory) << "it is in use";
  EXPECT_EQ(gpu_.drain_all().code(), Code::kOk);
  EXPECT_EQ(rt::cudaMallocAsync(&at, 50 << 20, other), kSuccess);
  EXPECT_EQ(segments(), 1u);
}

TEST_F(CudaRuntimePool, ARequestOfAnotherSizeLeavesTheMemory) {
  const StreamPointer on = stream();
  void* const at = freed_behind_work(on, 1 << 20);
  EXPECT_NE(take(on, 512), at);
  EXPECT_NE(take(on, (1 << 20) - 1), at);
  EXPECT_EQ(take(on, 1 << 20), at);
}

TEST_F(CudaRuntimePool, AnotherDevicesMemoryIsNotServed) {
  void* const at = freed_behind_work(nullptr);
  EXPECT_EQ(gpu_.drain_all().code(), Code::kOk);
  rt::cudaSetDevice(1);
  EXPECT_NE(take(nullptr), at);
  EXPECT_EQ(gpu_.ledger(DeviceId{1}).segments.count, 1u);
}

TEST_F(CudaRuntimePool, AStreamsHandleThatComesBackIsAnotherStream) {
  const StreamPointer on = stream();
  void* const at = freed_behind_work(on);
  EXPECT_EQ(rt::cudaStreamDestroy(on), kSuccess);
  const StreamPointer again = stream();
  EXPECT_EQ(again, on) << "the machine gives the value out again";
  EXPECT_NE(take(again), at);
}

TEST_F(CudaRuntimePool, ACapturingStreamIsRefusedAndOthersAreNot) {
  const StreamPointer on = stream();
  const StreamPointer other = stream();
  void* const at = freed_behind_work(other);
  EXPECT_EQ(rt::cudaStreamBeginCapture(on, 0), kSuccess);
  void* made = nullptr;
  EXPECT_EQ(rt::cudaMallocAsync(&made, 512, on), kErrorNotSupported);
  EXPECT_EQ(take(other), at);
  EXPECT_NE(take(other, 8 << 20), nullptr) << "new memory";
  EXPECT_EQ(rt::cudaFreeAsync(at, other), kSuccess);
  Graph graph = nullptr;
  EXPECT_EQ(rt::cudaStreamEndCapture(on, &graph), kSuccess) << "it is whole";
}

TEST_F(CudaRuntimePool, AnotherMachineBeginsWithAnEmptyPool) {
  void* const at = take(nullptr);
  spec::SimGpu other(options());
  spec::cuda_face::attach(&other);
  EXPECT_EQ(rt::cudaFreeAsync(at, nullptr), kErrorInvalidValue);
  take(nullptr);
  EXPECT_EQ(other.ledger().segments.count, 1u);
  EXPECT_EQ(segments(), 1u);
  spec::cuda_face::attach(nullptr);
}

}  // namespace
}  // namespace ashlar
