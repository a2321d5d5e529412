#include <ashlar/cuda/driver_table.h>

#include <dlfcn.h>

namespace ashlar::inline v0::cuda {
namespace {

using GetAddress = CallResult (*)(const char* name, void** found, int version, std::uint64_t flags,
                                  int* status);

/// Looks functions up in the driver.
class Lookup {
 public:
  explicit Lookup(GetAddress get_address) noexcept : get_address_(get_address) {}
  /// The function `name` as the interface of `version` (11030 is CUDA 11.3) has it.
  template <class Function>
  bool find(Function*& into, const char* name, int version) noexcept {
    void* found = nullptr;
    int status = 0;
    static_cast<void>(get_address_(name, &found, version, 0, &status));  // null if there is none
    into = reinterpret_cast<Function*>(found);
    return found != nullptr;
  }

 private:
  const GetAddress get_address_;
};

/// Null, or the text of what is lacking.
const char* find_basics(Lookup& in, DriverTable& cu) noexcept {
  if (!in.find(cu.contexts.init, "cuInit", 2000)) return "the CUDA driver lacks cuInit";
  if (!in.find(cu.contexts.device_get, "cuDeviceGet", 2000))
    return "the CUDA driver lacks cuDeviceGet";
  if (!in.find(cu.contexts.device_get_attribute, "cuDeviceGetAttribute", 2000))
    return "the CUDA driver lacks cuDeviceGetAttribute";
  if (!in.find(cu.contexts.primary_retain, "cuDevicePrimaryCtxRetain", 7000))
    return "the CUDA driver lacks cuDevicePrimaryCtxRetain";
  if (!in.find(cu.contexts.primary_release, "cuDevicePrimaryCtxRelease", 11000))
    return "the CUDA driver lacks cuDevicePrimaryCtxRelease";
  if (!in.find(cu.contexts.get_current, "cuCtxGetCurrent", 4000))
    return "the CUDA driver lacks cuCtxGetCurrent";
  if (!in.find(cu.contexts.push_current, "cuCtxPushCurrent", 4000))
    return "the CUDA driver lacks cuCtxPushCurrent";
  if (!in.find(cu.contexts.pop_current, "cuCtxPopCurrent", 4000))
    return "the CUDA driver lacks cuCtxPopCurrent";
  return in.find(cu.contexts.synchronize, "cuCtxSynchronize", 2000)
             ? nullptr
             : "the CUDA driver lacks cuCtxSynchronize";
}

const char* find_memory(Lookup& in, DriverTable& cu) noexcept {
  if (!in.find(cu.memory.get_info, "cuMemGetInfo", 3020))
    return "the CUDA driver lacks cuMemGetInfo";
  if (!in.find(cu.memory.alloc, "cuMemAlloc", 3020)) return "the CUDA driver lacks cuMemAlloc";
  if (!in.find(cu.memory.free, "cuMemFree", 3020)) return "the CUDA driver lacks cuMemFree";
  if (!in.find(cu.memory.host_alloc, "cuMemHostAlloc", 2020))
    return "the CUDA driver lacks cuMemHostAlloc";
  if (!in.find(cu.memory.free_host, "cuMemFreeHost", 2000))
    return "the CUDA driver lacks cuMemFreeHost";
  if (!in.find(cu.memory.host_register, "cuMemHostRegister", 6050))
    return "the CUDA driver lacks cuMemHostRegister";
  return in.find(cu.memory.host_unregister, "cuMemHostUnregister", 4000)
             ? nullptr
             : "the CUDA driver lacks cuMemHostUnregister";
}

const char* find_streams(Lookup& in, DriverTable& cu) noexcept {
  if (!in.find(cu.streams.wait_event, "cuStreamWaitEvent", 3020))
    return "the CUDA driver lacks cuStreamWaitEvent";
  if (!in.find(cu.streams.is_capturing, "cuStreamIsCapturing", 10000))
    return "the CUDA driver lacks cuStreamIsCapturing";
  if (!in.find(cu.streams.exchange_capture_mode, "cuThreadExchangeStreamCaptureMode", 10010))
    return "the CUDA driver lacks cuThreadExchangeStreamCaptureMode";
  if (!in.find(cu.streams.event_create, "cuEventCreate", 2000))
    return "the CUDA driver lacks cuEventCreate";
  if (!in.find(cu.streams.event_destroy, "cuEventDestroy", 4000))
    return "the CUDA driver lacks cuEventDestroy";
  if (!in.find(cu.streams.event_record, "cuEventRecord", 2000))
    return "the CUDA driver lacks cuEventRecord";
  if (!in.find(cu.streams.event_query, "cuEventQuery", 2000))
    return "the CUDA driver lacks cuEventQuery";
  if (!in.find(cu.streams.event_synchronize, "cuEventSynchronize", 2000))
    return "the CUDA driver lacks cuEventSynchronize";
  return in.find(cu.streams.get_id, "cuStreamGetId", 12000) ? nullptr
                                                            : "the CUDA driver lacks cuStreamGetId";
}

void find_virtual_memory(Lookup& in, DriverTable& cu) noexcept {
  // The last one is found only if all others are (DriverTable::has_virtual_memory).
  static_cast<void>(in.find(cu.pages.get_granularity, "cuMemGetAllocationGranularity", 10020) &&
                    in.find(cu.pages.address_reserve, "cuMemAddressReserve", 10020) &&
                    in.find(cu.pages.address_free, "cuMemAddressFree", 10020) &&
                    in.find(cu.pages.create, "cuMemCreate", 10020) &&
                    in.find(cu.pages.release, "cuMemRelease", 10020) &&
                    in.find(cu.pages.map, "cuMemMap", 10020) &&
                    in.find(cu.pages.unmap, "cuMemUnmap", 10020) &&
                    in.find(cu.pages.set_access, "cuMemSetAccess", 10020));
}

void find_capture_order(Lookup& in, DriverTable& cu) noexcept {
  // As above (DriverTable::has_capture_order).
  static_cast<void>(
      in.find(cu.captures.get_info, "cuStreamGetCaptureInfo", 11030) &&
      in.find(cu.captures.update_dependencies, "cuStreamUpdateCaptureDependencies", 11030) &&
      in.find(cu.captures.add_empty_node, "cuGraphAddEmptyNode", 10000) &&
      in.find(cu.captures.node_get_dependencies, "cuGraphNodeGetDependencies", 10000));
}

}  // namespace

Status load_driver(const char* library, DriverTable* table) noexcept {
  void* const loaded = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  ASHLAR_REQUIRE(loaded != nullptr, Code::kNotFound, "no CUDA driver: libcuda was not found");
  const auto get_address = reinterpret_cast<GetAddress>(dlsym(loaded, "cuGetProcAddress_v2"));
  ASHLAR_REQUIRE(get_address != nullptr, Code::kUnsupported,
                 "the CUDA driver is older than CUDA 12.0");
  Lookup in(get_address);
  DriverTable cu;
  const char* lacks = find_basics(in, cu);
  if (lacks == nullptr) lacks = find_memory(in, cu);
  if (lacks == nullptr) lacks = find_streams(in, cu);
  if (lacks != nullptr) return {Code::kUnsupported, lacks};
  find_virtual_memory(in, cu);
  find_capture_order(in, cu);
  *table = cu;
  return Status::ok();
}

}  // namespace ashlar::inline v0::cuda
