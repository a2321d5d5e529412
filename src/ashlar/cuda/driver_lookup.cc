#include <ashlar/cuda/driver_lookup.h>

#include <dlfcn.h>

namespace ashlar::inline v0::cuda {

Status DriverLookup::open(const char* library) noexcept {
  void* const loaded = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  ASHLAR_REQUIRE(loaded != nullptr, Code::kNotFound,
                 "no CUDA driver: libcuda was not found, or is no library");
  get_address_ = reinterpret_cast<GetAddress>(dlsym(loaded, "cuGetProcAddress_v2"));
  ASHLAR_REQUIRE(get_address_ != nullptr, Code::kUnsupported,
                 "the CUDA driver is older than CUDA 12.0");
  return Status::ok();
}

void* DriverLookup::find(const char* name, int version) noexcept {
  void* found = nullptr;
  int status = 0;
  static_cast<void>(get_address_(name, &found, version, 0, &status));  // null if there is none
  return found;
}

}  // namespace ashlar::inline v0::cuda
