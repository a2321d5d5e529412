#include "src/cuda_backend/cuda_gpu.h"

#include <new>
#include <optional>
#include <utility>

#include <ashlar/base/exceptions.h>

#include "src/cuda_backend/kernel_launch.h"

namespace ashlar::cuda_backend {

Result<std::shared_ptr<CudaGpu>> CudaGpu::open(const GpuOptions& options) noexcept {
  // The constructor is private, so std::make_shared cannot be used.
  std::unique_ptr<CudaGpu> made(new (std::nothrow) CudaGpu);
  std::shared_ptr<CudaGpu> gpu;
  if (made == nullptr || !with_host_memory([&] { gpu = std::move(made); }))
    return {Code::kHostOutOfMemory, "no host memory for a GPU's records"};
  if (const Status status = gpu->set_up(options); !status.is_ok()) return status;
  return gpu;
}

Status CudaGpu::set_up(const GpuOptions& options) noexcept {
  auto device = cuda::CudaDevice::open(options.ordinal, DeviceId{0}, options.driver);
  if (!device.is_ok()) return device.status();
  device_ = std::move(device).value();
  if (const Status opened = context_.open(options.ordinal, options.driver); !opened.is_ok())
    return opened;
  if (const Status found = load_work_functions(options.driver, &work_); !found.is_ok())
    return found;
  if (const Status loaded = load_kernels(options.image); !loaded.is_ok()) return loaded;
  choose_blas(options);
  cache::Config config;
  config.backing = cache::Backing::kSegments;
  device::Device* const devices[] = {device_.get()};
  auto allocator = cache::CachingAllocator::create(devices, config);
  if (!allocator.is_ok()) return allocator.status();
  allocator_ = std::move(allocator).value();
  const Result<Stream> owner = make_stream();
  if (!owner.is_ok()) return owner.status();
  owner_ = owner.value();
  return Status::ok();
}

void CudaGpu::choose_blas(const GpuOptions& options) noexcept {
  if (options.blas) return static_cast<void>(take_blas(*options.blas));
  for (const char* const library : kBlasLibraries) {
    if (take_blas(load_blas(library))) return;
  }
}

bool CudaGpu::take_blas(const BlasFunctions& found) noexcept {
  if (!found.is_there()) return false;
  BlasHandle handle = nullptr;
  BlasResult result = 0;
  const Status called = context_.call([&] {
    result = found.create(&handle);
    if (result == 0) static_cast<void>(found.destroy(handle));
    return CallResult{cuda::kSuccess};
  });
  if (!called.is_ok() || (result != 0 && result != kBlasAllocFailed)) return false;
  blas_ = found;
  return true;
}

Status CudaGpu::load_kernels(std::span<const std::byte> image) noexcept {
  if (image.empty())
    return {Code::kUnsupported,
            "this build has no kernels for a GPU: no nvcc from CUDA 12 on was found"};
  CallResult answer = cuda::kSuccess;
  const Status status = context_.call([&] {
    answer = work_.module_load_data(&module_, image.data());
    if (answer == cuda::kSuccess)
      answer = work_.module_get_function(&by_thread_, module_, kByThreadName);
    if (answer == cuda::kSuccess)
      answer = work_.module_get_function(&by_warp_, module_, kByWarpName);
    return answer;
  });
  return status.code() == Code::kDriverError ? no_kernels(answer) : status;
}

CudaGpu::~CudaGpu() {
  if (allocator_ != nullptr) {
    buffers_.for_each([this](Address base, sched::BufferEntry buffer) {
      if (buffer.is_own) static_cast<void>(allocator_->free(base));
    });
    if (owner_.id.value() != 0) end_stream(owner_);
    allocator_.reset();
  }
  if (module_ != nullptr)
    static_cast<void>(context_.call([this] { return work_.module_unload(module_); }));
}

Result<Stream> CudaGpu::make_stream() noexcept {
  StreamPointer made = nullptr;
  const Status created =
      context_.call([&] { return work_.stream_create(&made, kStreamNonBlocking); });
  if (!created.is_ok()) return created;
  const Result<Stream> stream =
      device_->identify(StreamHandle{reinterpret_cast<std::uintptr_t>(made)});
  if (!stream.is_ok()) static_cast<void>(context_.call([&] { return work_.stream_destroy(made); }));
  return stream;
}

void CudaGpu::end_stream(const Stream& stream) noexcept {
  static_cast<void>(synchronize(stream));
  static_cast<void>(allocator_->retire_stream(stream));
  static_cast<void>(context_.call([&] { return work_.stream_destroy(pointer_of(stream)); }));
}

Status CudaGpu::synchronize(const Stream& stream) noexcept {
  return context_.call([&] { return work_.stream_synchronize(pointer_of(stream)); });
}

Result<Address> CudaGpu::make_buffer(Bytes size) noexcept {
  const Result<Address> made = allocator_->allocate(size, owner_);
  if (!made.is_ok()) return made.status();
  const Status added = buffers_.add(made.value(), {size, true});
  if (added.is_ok()) return made.value();
  static_cast<void>(allocator_->free(made.value()));
  return added;
}

Result<Address> CudaGpu::adopt_buffer(void* pointer, Bytes size) noexcept {
  return buffers_.adopt(pointer, size, kAlignment);
}

Status CudaGpu::release_buffer(Address base) noexcept {
  const std::optional<sched::BufferEntry> buffer = buffers_.remove(base);
  if (!buffer) return {Code::kUnknownPointer, "no buffer begins there"};
  return buffer->is_own ? allocator_->free(base) : Status::ok();
}

}  // namespace ashlar::cuda_backend
