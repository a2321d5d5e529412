// Modules and launches. A module's image is not read: it has the kernels that set_kernel() gave.
#include <map>
#include <string>

#include "spec/cuda_face/face_calls.h"

namespace ashlar::spec::cuda_face {
namespace {

constexpr CallResult kErrorInvalidImage = 200;  // CUDA_ERROR_INVALID_IMAGE
constexpr unsigned kBlockThreadsMax = 1024;

std::map<std::string, FaceKernel, std::less<>> kernels;  // by name; entries stay where they are
int modules = 0;

bool is_loaded(Module module) {
  return module == reinterpret_cast<Module>(&modules) && modules > 0;
}

CallResult module_load_data(Module* module, const void* image) {
  return on_current([&](device::Device&) {
    if (image == nullptr) return CallResult{kErrorInvalidImage};
    ++modules;
    *module = reinterpret_cast<Module>(&modules);
    return CallResult{kSuccess};
  });
}

CallResult module_unload(Module module) {
  return on_current([&](device::Device&) {
    if (!is_loaded(module)) return CallResult{kErrorInvalidHandle};
    --modules;
    return CallResult{kSuccess};
  });
}

CallResult module_get_function(Kernel* kernel, Module module, const char* name) {
  return on_current([&](device::Device&) {
    if (!is_loaded(module)) return CallResult{kErrorInvalidHandle};
    const auto found = kernels.find(name);
    if (found == kernels.end()) return kErrorNotFound;
    *kernel = reinterpret_cast<Kernel>(&found->second);
    return CallResult{kSuccess};
  });
}

CallResult launch_kernel(Kernel kernel, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                         unsigned block_x, unsigned block_y, unsigned block_z,
                         unsigned shared_bytes, StreamPointer stream, void** parameters,
                         void** extra) {
  const bool is_flat = grid_y == 1 && grid_z == 1 && block_y == 1 && block_z == 1;
  if (!is_flat || grid_x == 0 || block_x == 0 || block_x > kBlockThreadsMax || shared_bytes != 0 ||
      extra != nullptr)
    return kErrorInvalidValue;
  const auto& launched = *reinterpret_cast<const FaceKernel*>(kernel);
  KernelWork work = launched(std::uint64_t{grid_x} * block_x, parameters);
  if (work.is_faulty) return enqueue_fault(stream);
  return enqueue_work(stream, work.touches, std::move(work.run), work.held_by);
}

}  // namespace

void set_kernel(const char* name, FaceKernel kernel) { kernels[name] = std::move(kernel); }

std::span<const FaceFunction> kernel_functions() {
  static const FaceFunction kFunctions[] = {
      {"cuModuleLoadData", 2000, pointer_of(module_load_data)},
      {"cuModuleUnload", 2000, pointer_of(module_unload)},
      {"cuModuleGetFunction", 2000, pointer_of(module_get_function)},
      {"cuLaunchKernel", 4000, pointer_of(launch_kernel)}};
  return kFunctions;
}

}  // namespace ashlar::spec::cuda_face
