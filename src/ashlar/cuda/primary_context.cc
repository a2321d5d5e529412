#include <ashlar/cuda/primary_context.h>

namespace ashlar::inline v0::cuda {
namespace {

/// Why there is no GPU to use, with the driver's number where people look for it; `otherwise` for the other answers.
Status status_at_start(CallResult answer, const Status& otherwise) noexcept {
  switch (answer) {
    case kErrorDeviceUnavailable:
      return {Code::kDriverError, "another process has the GPU for itself (CUDA error 46)"};
    case kErrorSystemNotReady:
      return {Code::kDriverError, "the GPU's services have not started yet (CUDA error 802)"};
    case kErrorDriverMismatch:
      return {Code::kDriverError,
              "the CUDA driver's library is of another version than its kernel module (CUDA error "
              "803)"};
    case kErrorNotCompatible:
      return {Code::kDriverError,
              "the GPU does not run with this newer CUDA driver library (CUDA error 804)"};
    default: return otherwise;
  }
}

}  // namespace

Status PrimaryContext::open(int ordinal, const char* library) noexcept {
  constexpr Status kNoGpu{Code::kNotFound, "the CUDA driver has no GPU of that ordinal"};
  if (const Status loaded = load_driver(library, &cu_); !loaded.is_ok()) return loaded;
  const CallResult begun = cu_.contexts.init(0);
  if (begun == kErrorNoDevice) return kNoGpu;
  if (begun != kSuccess)
    return status_at_start(begun, {Code::kDriverError, "the CUDA driver cannot be initialised"});
  const CallResult found = cu_.contexts.device_get(&device_, ordinal);
  if (found == kErrorInvalidDevice) return kNoGpu;
  if (found != kSuccess) return status_of(found);
  Context made = nullptr;
  const CallResult retained = cu_.contexts.primary_retain(&made, device_);
  if (retained == kSuccess) context_ = made;
  return status_at_start(retained, status_of(retained));
}

PrimaryContext::~PrimaryContext() {
  if (context_ != nullptr && !birth_.is_forked())
    static_cast<void>(cu_.contexts.primary_release(device_));
}

int PrimaryContext::attribute(int which) const noexcept {
  int value = 0;
  return cu_.contexts.device_get_attribute(&value, which, device_) == kSuccess ? value : 0;
}

CallResult PrimaryContext::enter(bool* is_pushed) const noexcept {
  // It stays null if the driver answers with an error, which the next call meets too.
  Context now = nullptr;
  static_cast<void>(cu_.contexts.get_current(&now));
  if (now == context_) return kSuccess;
  const CallResult answer = cu_.contexts.push_current(context_);
  *is_pushed = answer == kSuccess;
  return answer;
}

void PrimaryContext::leave() const noexcept {
  Context popped = nullptr;
  static_cast<void>(cu_.contexts.pop_current(&popped));
}

bool PrimaryContext::is_there() const noexcept {
  unsigned version = 0;
  return cu_.contexts.get_api_version(context_, &version) == kSuccess;
}

Status PrimaryContext::note(CallResult answer) noexcept {
  if (answer == kErrorContextIsDestroyed && is_there()) [[unlikely]]
    return {Code::kInvalidHandle, "the driver says that the context of the handle is destroyed"};
  // A context that cannot be made current has been destroyed (cuDevicePrimaryCtxReset), whichever of the two says so.
  if (answer == kErrorInvalidContext && !is_there()) [[unlikely]]
    answer = kErrorContextIsDestroyed;
  const Status outcome = status_of(answer);
  if (outcome.code() == Code::kDeviceLost || outcome.code() == Code::kTornDown) [[unlikely]] {
    CallResult none = kSuccess;
    lost_by_.compare_exchange_strong(none, answer, std::memory_order_relaxed);
  }
  return outcome;
}

}  // namespace ashlar::inline v0::cuda
