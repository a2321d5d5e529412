// Answers: the thread's last error, and names.
//
// An error stays the thread's last one until cudaGetLastError takes it; success does not clear it. cudaErrorNotReady is no
// error and is not kept. Nobody has asked a driver; but CUB's allocator polls without clearing it, and takes a last error
// for the failure of its next call.
#include "spec/cuda_face/runtime_calls.h"

namespace ashlar::spec::cuda_runtime {
namespace {

struct ErrorText {
  CallResult error;
  const char* name;
  const char* text;
};

constexpr ErrorText kTexts[] = {
    {kSuccess, "cudaSuccess", "no error"},
    {kErrorInvalidValue, "cudaErrorInvalidValue", "an argument is not permitted"},
    {kErrorOutOfMemory, "cudaErrorMemoryAllocation", "out of memory"},
    {kErrorDeinitialized, "cudaErrorCudartUnloading", "the driver is being unloaded"},
    {kErrorNoDevice, "cudaErrorNoDevice", "there is no GPU"},
    {kErrorInvalidDevice, "cudaErrorInvalidDevice", "there is no such GPU"},
    {kErrorInvalidHandle, "cudaErrorInvalidResourceHandle", "a handle names nothing that is there"},
    {kErrorNotReady, "cudaErrorNotReady", "work is not done yet"},
    {kErrorAlreadyRegistered, "cudaErrorHostMemoryAlreadyRegistered", "registered already"},
    {kErrorNotRegistered, "cudaErrorHostMemoryNotRegistered", "memory that is not registered"},
    {kErrorLaunchFailed, "cudaErrorLaunchFailure", "a kernel failed, and the GPU is lost"},
    {kErrorNotSupported, "cudaErrorNotSupported", "the GPU cannot do that"},
    {kErrorCaptureUnsupported, "cudaErrorStreamCaptureUnsupported",
     "not permitted while a stream captures"},
    {kErrorCaptureInvalidated, "cudaErrorStreamCaptureInvalidated", "the capture is lost"},
    {kCaptureUnmatched, "cudaErrorStreamCaptureUnmatched", "the capture began elsewhere"},
    {kErrorCaptureImplicit, "cudaErrorStreamCaptureImplicit",
     "the default stream would wait for a stream that captures"},
    {kErrorCapturedEvent, "cudaErrorCapturedEvent", "the event was recorded in a capture"},
    {kErrorCaptureWrongThread, "cudaErrorStreamCaptureWrongThread",
     "the capture began on another thread"},
    {kUnknown, "cudaErrorUnknown", "unknown error"},
};

const ErrorText* find(CallResult error) {
  for (const ErrorText& each : kTexts)
    if (each.error == error) return &each;
  return nullptr;
}

}  // namespace

RuntimeThread& runtime_thread() {
  thread_local RuntimeThread state;
  if (state.attachment != cuda_face::attachment()) state = {cuda_face::attachment(), 0, kSuccess};
  return state;
}

CallResult answer(CallResult result) {
  if (result != kSuccess && result != kErrorNotReady) runtime_thread().last_error = result;
  return result;
}

CallResult cudaGetLastError() {
  const CallResult last = runtime_thread().last_error;
  runtime_thread().last_error = kSuccess;
  return last;
}

CallResult cudaPeekAtLastError() { return runtime_thread().last_error; }

const char* cudaGetErrorName(CallResult error) {
  const ErrorText* const known = find(error);
  return known == nullptr ? "unrecognized error code" : known->name;
}

const char* cudaGetErrorString(CallResult error) {
  const ErrorText* const known = find(error);
  return known == nullptr ? "unrecognized error code" : known->text;
}

}  // namespace ashlar::spec::cuda_runtime
