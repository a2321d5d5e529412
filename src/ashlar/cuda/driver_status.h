// What the driver's answers mean to the library.
//
// Thread safety: a pure function.
#pragma once

#include <ashlar/base/status.h>
#include <ashlar/cuda/driver_abi.h>

namespace ashlar::inline v0::cuda {

/// The library's outcome for a driver's answer. A fault of a kernel, or of the hardware, loses the context: the driver
/// answers every later call with the same error, so it is kDeviceLost (D8). Any answer that is not named is
/// kDriverError.
constexpr Status status_of(CallResult answer) noexcept {
  switch (answer) {
    case kSuccess: return Status::ok();
    case kErrorNotReady: return {Code::kNotReady, "the work is not done"};
    case kErrorOutOfMemory: return {Code::kOutOfMemory, "the driver has no more memory"};
    case kErrorInvalidValue: return {Code::kInvalidArgument, "the driver refuses an argument"};
    case kErrorAlreadyRegistered:
      return {Code::kInvalidArgument, "some of the bytes are page-locked already"};
    case kErrorNotRegistered:
      return {Code::kInvalidArgument, "not the start of a registered range"};
    case kErrorInvalidHandle: return {Code::kInvalidHandle, "the driver knows no such handle"};
    case kErrorInvalidDevice:
    case kErrorPeerUnsupported:
    case kErrorTooManyPeers: return {Code::kUnsupported, "the GPUs cannot use each other's memory"};
    case kErrorNotPermitted:
      return {Code::kUnsupported, "this process may not use what the call needs"};
    case kErrorNotSupported: return {Code::kUnsupported, "the driver does not support the call"};
    case kErrorCaptureInvalidated:
      return {Code::kCaptureInvalidated, "an earlier call invalidated the capture"};
    case kErrorCaptureUnsupported:
    case kErrorCaptureMerge:
    case kErrorCaptureUnmatched:
    case kErrorCaptureUnjoined:
    case kErrorCaptureIsolation:
    case kErrorCaptureImplicit:
    case kErrorCapturedEvent:
    case kErrorCaptureWrongThread:
      return {Code::kCaptureUnsafe, "the driver refuses the call during a capture"};
    case kErrorDeinitialized:
      return {Code::kTornDown, "the CUDA driver has been unloaded at the process's end"};
    case kErrorEccUncorrectable:
    case kErrorNvlinkUncorrectable:
    case kErrorContained: return {Code::kDeviceLost, "the hardware reports an error that stays"};
    case kErrorIllegalAddress: return {Code::kDeviceLost, "a kernel used an illegal address"};
    case kErrorLaunchTimeout: return {Code::kDeviceLost, "a kernel ran for too long"};
    case kErrorContextIsDestroyed: return {Code::kDeviceLost, "the primary context is destroyed"};
    case kErrorAssert: return {Code::kDeviceLost, "an assertion of a kernel failed"};
    case kErrorTensorMemoryLeak:
      return {Code::kDeviceLost, "a kernel ended without the release of its tensor memory"};
    case kErrorClientTerminated:
      return {Code::kDeviceLost, "the server that shares the GPU has ended this process's use"};
    case kErrorExternalDevice:
      return {Code::kDeviceLost, "a device outside of CUDA reports an error"};
    case kErrorHardwareStack:
    case kErrorIllegalInstruction:
    case kErrorMisalignedAddress:
    case kErrorInvalidAddressSpace:
    case kErrorInvalidPc:
    case kErrorLaunchFailed: return {Code::kDeviceLost, "a kernel failed"};
    default: return {Code::kDriverError, "the CUDA driver reports an error"};
  }
}

}  // namespace ashlar::inline v0::cuda
