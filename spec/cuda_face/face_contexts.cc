// Devices and primary contexts.
#include "spec/cuda_face/face_calls.h"

#include <array>
#include <atomic>

namespace ashlar::spec::cuda_face {
namespace {

constexpr int kDevicesMax = 8;
constexpr std::uintptr_t kFirstContext = 0x1000;

std::array<std::atomic<int>, kDevicesMax> uses_of_contexts{};
std::atomic<int> pushes{0};

Context context_of(int device) {
  return reinterpret_cast<Context>(kFirstContext + static_cast<std::uintptr_t>(device));
}

CallResult init(unsigned flags) {
  if (flags != 0) return kErrorInvalidValue;
  return machine() == nullptr ? kErrorNoDevice : kSuccess;
}

CallResult device_get_count(int* count) {
  *count = static_cast<int>(machine()->device_count());
  return kSuccess;
}

CallResult device_get(DeviceNumber* device, int ordinal) {
  if (ordinal < 0 || static_cast<std::uint32_t>(ordinal) >= machine()->device_count())
    return kErrorInvalidDevice;
  *device = ordinal;
  return kSuccess;
}

CallResult device_get_attribute(int* value, int which, DeviceNumber device) {
  if (device < 0 || static_cast<std::uint32_t>(device) >= machine()->device_count())
    return kErrorInvalidDevice;
  *value = attribute(which);
  return *value < 0 ? kErrorInvalidValue : kSuccess;
}

CallResult primary_ctx_retain(Context* context, DeviceNumber device) {
  if (const CallResult planned = take_planned(); planned != kSuccess) return planned;
  ++uses_of_contexts[static_cast<std::size_t>(device)];
  *context = context_of(device);
  return kSuccess;
}

CallResult primary_ctx_release(DeviceNumber device) {
  --uses_of_contexts[static_cast<std::size_t>(device)];
  return kSuccess;
}

CallResult ctx_get_current(Context* context) {
  *context = contexts().empty() ? nullptr : contexts().back();
  return kSuccess;
}

CallResult ctx_push_current(Context context) {
  ++pushes;
  contexts().push_back(context);
  return kSuccess;
}

CallResult ctx_pop_current(Context* context) {
  if (contexts().empty()) return kErrorInvalidContext;
  *context = contexts().back();
  contexts().pop_back();
  return kSuccess;
}

CallResult ctx_get_api_version(Context context, unsigned* version) {
  if (const CallResult planned = take_planned(); planned != kSuccess) return planned;
  if (device_of(context) < 0) return kErrorInvalidContext;
  *version = 3020;
  return kSuccess;
}

CallResult ctx_synchronize() {
  return on_current([](device::Device& on) {
    const Status done = until_possible([&] { return on.synchronize(); });
    if (done.is_ok()) trim_at_synchronization();
    return result_of(done);
  });
}

}  // namespace

std::vector<Context>& contexts() {
  thread_local std::vector<Context> stack;
  return stack;
}

std::int32_t device_of(Context context) {
  const std::uintptr_t number = reinterpret_cast<std::uintptr_t>(context) - kFirstContext;
  const bool is_one = machine() != nullptr && number < machine()->device_count();
  return is_one ? static_cast<std::int32_t>(number) : -1;
}

std::int32_t current_device() { return device_of(contexts().back()); }

int context_uses(int device) { return uses_of_contexts[static_cast<std::size_t>(device)]; }

void make_current(int device) {
  if (device < 0) contexts().pop_back();
  else contexts().push_back(context_of(device));
}

int context_pushes() { return pushes; }

std::size_t context_depth() { return contexts().size(); }

std::span<const FaceFunction> context_functions() {
  static const FaceFunction kFunctions[] = {
      {"cuInit", 2000, pointer_of(init)},
      {"cuDeviceGet", 2000, pointer_of(device_get)},
      {"cuDeviceGetCount", 2000, pointer_of(device_get_count)},
      {"cuDeviceGetAttribute", 2000, pointer_of(device_get_attribute)},
      {"cuDevicePrimaryCtxRetain", 7000, pointer_of(primary_ctx_retain)},
      {"cuDevicePrimaryCtxRelease", 11000, pointer_of(primary_ctx_release)},
      {"cuCtxGetCurrent", 4000, pointer_of(ctx_get_current)},
      {"cuCtxPushCurrent", 4000, pointer_of(ctx_push_current)},
      {"cuCtxPopCurrent", 4000, pointer_of(ctx_pop_current)},
      {"cuCtxSynchronize", 2000, pointer_of(ctx_synchronize)},
      {"cuCtxGetApiVersion", 3020, pointer_of(ctx_get_api_version)},
  };
  return kFunctions;
}

}  // namespace ashlar::spec::cuda_face
