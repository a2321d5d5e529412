// The CUDA runtime's functions over the simulated GPU (spec/cuda_face/runtime_abi.h): each thread's device and last error, memory,
// the order of streams, events, and what a capture refuses. The pool is in runtime_pool_test.cc.
//
// Imitates: a library that calls the runtime. Does not prove: that NVIDIA's runtime answers so (the sources are its
// documentation).
#include <cstring>
#include <string>
#include <thread>

#include "props/cuda/runtime_machine.h"

namespace ashlar {
namespace {

using namespace cuda;  // NOLINT(google-build-using-namespace): the answers
namespace face = spec::cuda_face;
namespace rt = spec::cuda_runtime;

class CudaRuntimeFace : public props::RuntimeMachine {};

TEST_F(CudaRuntimeFace, AThreadActsOnDeviceZeroUntilItSetsAnother) {
  int count = 0;
  EXPECT_EQ(rt::cudaGetDeviceCount(&count), kSuccess);
  EXPECT_EQ(count, 2);
  EXPECT_EQ(rt::cudaSetDevice(1), kSuccess);
  EXPECT_EQ(rt::cudaSetDevice(2), kErrorInvalidDevice);
  EXPECT_EQ(rt::cudaSetDevice(-1), kErrorInvalidDevice);
  int device = 7;
  std::thread([&] { rt::cudaGetDevice(&device); }).join();
  EXPECT_EQ(device, 0) << "another thread's is its own";
  rt::cudaGetDevice(&device);
  EXPECT_EQ(device, 1) << "a refused one changes nothing";
  allocate();
  EXPECT_EQ(gpu_.ledger(DeviceId{1}).segments.count, 1u);
}

TEST_F(CudaRuntimeFace, AnotherMachineBeginsOnDeviceZeroWithoutAnError) {
  rt::cudaSetDevice(1);
  rt::cudaSetDevice(9);
  spec::SimGpu other(options());
  face::attach(&other);
  int device = 7;
  rt::cudaGetDevice(&device);
  EXPECT_EQ(device, 0);
  EXPECT_EQ(rt::cudaPeekAtLastError(), kSuccess);
  face::attach(nullptr);
  EXPECT_EQ(rt::cudaGetDeviceCount(&device), kErrorNoDevice);
  EXPECT_EQ(device, 0);
  EXPECT_EQ(rt::cudaSetDevice(0), kErrorNoDevice);
  EXPECT_EQ(rt::cudaDeviceSynchronize(), kErrorNoDevice);
}

TEST_F(CudaRuntimeFace, TheLastErrorStaysUntilItIsTakenAndIsTheThreadsOwn) {
  EXPECT_EQ(rt::cudaSetDevice(9), kErrorInvalidDevice);
  allocate();
  EXPECT_EQ(rt::cudaPeekAtLastError(), kErrorInvalidDevice) << "success does not clear it";
  EXPECT_EQ(rt::cudaHostAlloc(nullptr, 1, 0), kErrorInvalidValue);
  CallResult elsewhere = 1;
  std::thread([&] { elsewhere = rt::cudaGetLastError(); }).join();
  EXPECT_EQ(elsewhere, kSuccess);
  EXPECT_EQ(rt::cudaGetLastError(), kErrorInvalidValue) << "the latest";
  EXPECT_EQ(rt::cudaGetLastError(), kSuccess) << "it was taken";
  EXPECT_STREQ(rt::cudaGetErrorName(kErrorOutOfMemory), "cudaErrorMemoryAllocation");
  EXPECT_STREQ(rt::cudaGetErrorString(12345), "unrecognized error code");
}

TEST_F(CudaRuntimeFace, ADeviceThatIsLostIsLostForEveryLaterCall) {
  gpu_.lose(DeviceId{0});
  void* at = nullptr;
  EXPECT_EQ(rt::cudaMalloc(&at, 512), kErrorLaunchFailed);
  EXPECT_EQ(rt::cudaGetLastError(), kErrorLaunchFailed);
  EXPECT_EQ(rt::cudaDeviceSynchronize(), kErrorLaunchFailed);
}

TEST_F(CudaRuntimeFace, MemoryIsAllocatedAndFreedOnItsOwnDevice) {
  void* const at = allocate();
  rt::cudaSetDevice(1);
  EXPECT_EQ(rt::cudaFree(at), kSuccess) << "whichever device is the thread's";
  EXPECT_EQ(segments(), 0u);
  EXPECT_EQ(rt::cudaFree(nullptr), kSuccess);
  EXPECT_EQ(rt::cudaFree(at), kErrorInvalidValue) << "twice";
  int some = 0;
  void* none = &some;
  EXPECT_EQ(rt::cudaMalloc(&none, 0), kSuccess);
  EXPECT_EQ(none, nullptr);
  EXPECT_EQ(rt::cudaMalloc(&none, std::size_t{1} << 40), kErrorOutOfMemory);
  void* pinned = nullptr;
  EXPECT_EQ(rt::cudaMallocHost(&pinned, 4096), kSuccess);
  EXPECT_EQ(rt::cudaFreeHost(pinned), kSuccess);
  EXPECT_EQ(rt::cudaHostUnregister(pinned), kErrorNotRegistered);
  std::size_t free = 0;
  std::size_t total = 0;
  EXPECT_EQ(rt::cudaMemGetInfo(&free, &total), kSuccess);
  EXPECT_EQ(total, (64_MiB).count());
}

TEST_F(CudaRuntimeFace, PlannedFailuresOfTheMachineAreSeen) {
  gpu_.fail(device::CallKind::kSegmentAlloc, 1, spec::FailMode::kOnce);
  void* at = nullptr;
  EXPECT_EQ(rt::cudaMalloc(&at, 512), kErrorOutOfMemory);
  EXPECT_EQ(rt::cudaMalloc(&at, 512), kSuccess);
}

TEST_F(CudaRuntimeFace, FreeWaitsForTheWorkOfTheDevice) {
  void* const at = allocate();
  const StreamPointer on = stream();
  work(on, at);
  EXPECT_EQ(rt::cudaStreamQuery(on), kErrorNotReady);
  EXPECT_EQ(rt::cudaFree(at), kSuccess);
  EXPECT_EQ(rt::cudaStreamQuery(on), kSuccess);
  EXPECT_EQ(gpu_.fault_count(), 0u);
}

TEST_F(CudaRuntimeFace, AnEventStandsForTheWorkBeforeItsRecord) {
  void* const at = allocate();
  const StreamPointer on = stream();
  const EventPointer behind = event();
  EXPECT_EQ(rt::cudaEventQuery(behind), kSuccess) << "not recorded";
  work(on, at);
  EXPECT_EQ(rt::cudaEventRecord(behind, on), kSuccess);
  work(on, at);
  EXPECT_EQ(rt::cudaEventQuery(behind), kErrorNotReady);
  EXPECT_EQ(rt::cudaEventSynchronize(behind), kSuccess);
  EXPECT_EQ(rt::cudaEventQuery(behind), kSuccess);
  EXPECT_EQ(rt::cudaStreamQuery(on), kErrorNotReady) << "what came later";
  EXPECT_EQ(rt::cudaStreamSynchronize(on), kSuccess);
  EXPECT_EQ(rt::cudaStreamQuery(on), kSuccess);
  rt::cudaSetDevice(1);
  EXPECT_EQ(rt::cudaEventDestroy(behind), kSuccess);
  EXPECT_EQ(rt::cudaStreamDestroy(on), kSuccess);
  EXPECT_EQ(gpu_.fault_count(), 0u) << "whichever device is the thread's";
}

TEST_F(CudaRuntimeFace, AStreamWaitsForAnotherThroughAnEvent) {
  void* const at = allocate();
  const StreamPointer first = stream();
  const StreamPointer second = stream();
  const EventPointer behind = event();
  work(first, at);
  rt::cudaEventRecord(behind, first);
  EXPECT_EQ(rt::cudaStreamWaitEvent(second, behind, 0), kSuccess);
  work(second, at);
  EXPECT_EQ(rt::cudaStreamSynchronize(second), kSuccess);
  EXPECT_EQ(rt::cudaStreamQuery(first), kSuccess);
}

TEST_F(CudaRuntimeFace, BlockingStreamsAreOrderedWithTheLegacyDefaultStreamOnly) {
  void* const at = allocate();
  const StreamPointer blocking = stream(0);
  const StreamPointer non_blocking = stream(1);
  work(blocking, at);
  work(non_blocking, at);
  work(nullptr, at);
  EXPECT_EQ(rt::cudaStreamSynchronize(nullptr), kSuccess);
  EXPECT_EQ(rt::cudaStreamQuery(blocking), kSuccess);
  EXPECT_EQ(rt::cudaStreamQuery(non_blocking), kErrorNotReady);
}

TEST_F(CudaRuntimeFace, ACaptureRefusesWhatWouldWait) {
  void* const at = allocate();
  const StreamPointer on = stream();
  int status = 7;
  EXPECT_EQ(rt::cudaStreamBeginCapture(on, 0), kSuccess);
  EXPECT_EQ(rt::cudaStreamIsCapturing(on, &status), kSuccess);
  EXPECT_EQ(status, 1);
  work(on, at);
  Graph graph = nullptr;
  EXPECT_EQ(rt::cudaStreamEndCapture(on, &graph), kSuccess);
  EXPECT_NE(graph, nullptr);
  EXPECT_EQ(rt::cudaGraphDestroy(graph), kSuccess);
  for (int refused = 0; refused < 4; ++refused) {
    EXPECT_EQ(rt::cudaStreamBeginCapture(on, 0), kSuccess);
    void* more = nullptr;
    const CallResult answer = refused == 0   ? rt::cudaStreamSynchronize(on)
                              : refused == 1 ? rt::cudaDeviceSynchronize()
                              : refused == 2 ? rt::cudaMalloc(&more, 512)
                                             : rt::cudaStreamQuery(on);
    EXPECT_EQ(answer, kErrorCaptureUnsupported) << refused;
    EXPECT_EQ(rt::cudaStreamEndCapture(on, &graph), kErrorCaptureInvalidated) << refused;
    EXPECT_EQ(graph, nullptr);
  }
}

TEST_F(CudaRuntimeFace, ARelaxedCaptureLivesThroughAllocationAndFree) {
  void* const at = allocate();
  const StreamPointer on = stream();
  EXPECT_EQ(rt::cudaStreamBeginCapture(on, 0), kSuccess);
  int mode = 2;
  EXPECT_EQ(rt::cudaThreadExchangeStreamCaptureMode(&mode), kSuccess);
  EXPECT_EQ(mode, 0);
  EXPECT_EQ(rt::cudaFree(at), kSuccess);
  allocate();
  rt::cudaThreadExchangeStreamCaptureMode(&mode);
  Graph graph = nullptr;
  EXPECT_EQ(rt::cudaStreamEndCapture(on, &graph), kSuccess);
}

}  // namespace
}  // namespace ashlar
