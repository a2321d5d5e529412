#include "spec/cuda_face/cuda_face.h"

#include <atomic>
#include <map>
#include <mutex>
#include <string>

#include "spec/cuda_face/face_calls.h"
#include "spec/cuda_face/page_bytes.h"

namespace ashlar::spec::cuda_face {
namespace {

constexpr CallResult kErrorIllegalState = 401;  // CUDA_ERROR_ILLEGAL_STATE
constexpr CallResult kErrorUnknown = 999;       // CUDA_ERROR_UNKNOWN
constexpr int kSymbolNotFound = 1;              // CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND

SimGpu* attached = nullptr;
std::atomic<std::uint64_t> attached_times{1};
SimGpu* (*make)() = nullptr;
std::once_flag made;
std::string hidden;
std::atomic<CallResult> next_answer{kSuccess};
std::atomic<int> calls_before{0};
std::atomic<int> answers_left{0};
std::map<int, int> attributes;
Address bytes_begin;
Bytes bytes_size;

/// The newest of that name that the version has, as the driver finds it.
void* find(std::string_view name, int version) {
  if (name == hidden) return nullptr;
  const FaceFunction* newest = nullptr;
  for (const auto functions : {context_functions(), memory_functions(), page_functions(),
                               pool_functions(), stream_functions(), capture_functions(),
                               work_functions(), share_functions(), kernel_functions()}) {
    for (const FaceFunction& function : functions) {
      const bool is_one = function.name == name && function.version <= version;
      if (is_one && (newest == nullptr || function.version > newest->version)) newest = &function;
    }
  }
  return newest == nullptr ? nullptr : newest->function;
}

}  // namespace

void attach(SimGpu* gpu) {
  end_host_functions();
  forget_captures();
  forget_peers();
  forget_page_bytes();
  attached = gpu;
  ++attached_times;
  contexts().clear();
  answer_next(kSuccess);
  hidden.clear();
  give_bytes(Address{}, Bytes{});
  attributes = {{kAttributeVirtualMemory, 1},
                {kAttributeDirectRdma, 1},
                {kAttributeDescriptorHandles, 1},
                {kAttributeFabricHandles, 1},
                {kAttributeMemoryPools, 1}};
}

void hide(const char* name) { hidden = name; }

void answer_next(CallResult answer, int after, int times) {
  next_answer = answer;
  calls_before = after;
  answers_left = times;
}

void give_bytes(Address begin, Bytes size) {
  bytes_begin = begin;
  bytes_size = size;
}

bool is_of_machine(std::uint64_t address) {
  if (!has_bytes()) return true;
  return address >= bytes_begin.value() && address - bytes_begin.value() < bytes_size.count();
}

bool has_bytes() { return bytes_size != Bytes{}; }

std::uint64_t attachment() { return attached_times; }

bool is_answer_due() { return next_answer != kSuccess; }

void set_attribute(int attribute, int value) { attributes[attribute] = value; }

int attribute(int which) {
  const auto known = attributes.find(which);
  return known == attributes.end() ? -1 : known->second;
}

void make_when_needed(SimGpu* (*how)()) { make = how; }

SimGpu* machine() {
  if (make != nullptr) {
    std::call_once(made, [] {
      if (attached == nullptr) make();
    });
  }
  return attached;
}

CallResult take_planned() {
  if (next_answer == kSuccess || calls_before-- > 0) return kSuccess;
  return --answers_left > 0 ? next_answer.load() : next_answer.exchange(kSuccess);
}

CallResult result_of(const Status& status) {
  switch (status.code()) {
    case Code::kOk: return kSuccess;
    case Code::kNotReady: return kErrorNotReady;
    case Code::kOutOfMemory:
    case Code::kOutOfAddresses:
    case Code::kHostOutOfMemory: return kErrorOutOfMemory;
    case Code::kUnsupported: return kErrorNotSupported;
    case Code::kCaptureUnsafe: return kErrorCaptureUnsupported;
    case Code::kCaptureInvalidated: return kErrorCaptureInvalidated;
    case Code::kDeviceLost: return kErrorLaunchFailed;
    case Code::kTornDown: return kErrorDeinitialized;
    case Code::kInvalidArgument: return kErrorInvalidValue;
    case Code::kInvalidHandle:
    case Code::kWrongDevice: return kErrorInvalidHandle;
    case Code::kBusy: return kErrorIllegalState;
    default: return kErrorUnknown;
  }
}

}  // namespace ashlar::spec::cuda_face

/// What the library looks for in libcuda; the rest is found by it.
extern "C" [[gnu::visibility("default")]] ashlar::cuda::CallResult cuGetProcAddress_v2(
    const char* name, void** found, int version, std::uint64_t flags, int* status) {
  namespace face = ashlar::spec::cuda_face;
  if (flags != 0) return ashlar::cuda::kErrorInvalidValue;
  *found = face::find(name, version);
  *status = *found == nullptr ? face::kSymbolNotFound : 0;
  return *found == nullptr ? ashlar::spec::cuda_face::kErrorNotFound : ashlar::cuda::CallResult{0};
}
