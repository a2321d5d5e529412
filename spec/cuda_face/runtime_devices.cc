// Devices: which one a thread acts on, and which one what it made belongs to.
#include <map>

#include <ashlar/base/mutex.h>

#include "spec/cuda_face/runtime_calls.h"

namespace ashlar::spec::cuda_runtime {
namespace {

/// Devices by the value of a handle, or by an address, of the machine that is attached.
struct MadeOn {
  Mutex lock;
  std::uint64_t attachment ASHLAR_GUARDED_BY(lock) = 0;
  std::map<const void*, int> devices ASHLAR_GUARDED_BY(lock);
};
MadeOn made_on;

// The machine's handles of streams and events are numbers of different tables, told apart by their marks; addresses are above
// them.
int find_device(const void* made) {
  const MutexGuard guard(made_on.lock);
  if (made_on.attachment == cuda_face::attachment()) {
    const auto at = made_on.devices.find(made);
    if (at != made_on.devices.end()) return at->second;
  }
  return runtime_thread().device;
}

struct Attribute {
  int which;
  int value;
};
/// The attributes that callers of an allocator ask for, by cudaDeviceAttr's numbers.
constexpr Attribute kAttributes[] = {
    {1, 1024},           // the most threads of a block
    {10, 32},            // threads of a warp
    {16, 132},           // multiprocessors
    {18, 0},             // is integrated
    {19, 1},             // maps the host's memory
    {41, 1},             // unified addressing
    {75, 9},   {76, 0},  // compute capability
    {115, 1},            // pools of memory
};

}  // namespace

bool has_device(int device) {
  return machine() != nullptr && device >= 0 &&
         static_cast<std::uint32_t>(device) < machine()->device_count();
}

int device_of(StreamPointer stream) { return find_device(stream); }
int device_of(EventPointer event) { return find_device(event); }
int device_of(const void* memory) { return find_device(memory); }

void keep_device(const void* made, int device) {
  const MutexGuard guard(made_on.lock);
  if (made_on.attachment != cuda_face::attachment()) made_on.devices.clear();
  made_on.attachment = cuda_face::attachment();
  made_on.devices[made] = device;
}

void forget_device(const void* made) {
  const MutexGuard guard(made_on.lock);
  made_on.devices.erase(made);
}

CallResult cudaGetDeviceCount(int* count) {
  if (count == nullptr) return answer(kErrorInvalidValue);
  *count = machine() == nullptr ? 0 : static_cast<int>(machine()->device_count());
  return answer(*count == 0 ? kErrorNoDevice : kSuccess);
}

CallResult cudaGetDevice(int* device) {
  if (device == nullptr) return answer(kErrorInvalidValue);
  if (machine() == nullptr) return answer(kErrorNoDevice);
  *device = runtime_thread().device;
  return kSuccess;
}

CallResult cudaSetDevice(int device) {
  if (machine() == nullptr) return answer(kErrorNoDevice);
  if (!has_device(device)) return answer(kErrorInvalidDevice);
  runtime_thread().device = device;
  return kSuccess;
}

CallResult cudaDeviceSynchronize() {
  return on_thread_device([](device::Device& on) {
    const Status done = cuda_face::until_possible([&] { return on.synchronize(); });
    if (done.is_ok()) trim_pools();
    return result_of(done);
  });
}

CallResult cudaDeviceGetAttribute(int* value, int which, int device) {
  if (value == nullptr) return answer(kErrorInvalidValue);
  if (!has_device(device)) return answer(kErrorInvalidDevice);
  for (const Attribute& each : kAttributes) {
    if (each.which != which) continue;
    *value = each.value;
    return kSuccess;
  }
  const int of_driver = cuda_face::attribute(which);
  if (of_driver < 0) return answer(kErrorInvalidValue);
  *value = of_driver;
  return kSuccess;
}

CallResult cudaDriverGetVersion(int* version) {
  if (version == nullptr) return answer(kErrorInvalidValue);
  *version = kRuntimeVersion;
  return kSuccess;
}

CallResult cudaRuntimeGetVersion(int* version) { return cudaDriverGetVersion(version); }

}  // namespace ashlar::spec::cuda_runtime
