// The allocator over a GPU, by way of the CUDA driver.
//
// Shows: CudaDevice, which finds the driver when the program runs; an allocation for a stream of the caller's, here CUDA's
// default one; copies of its bytes to and from page-locked memory. Without a GPU it says why and ends with 77. How to run it
// over the simulated driver: the README of src/ashlar/cuda.
// Prints:
//   GPU 0 has ... MiB, ... MiB of them free
//   8 MiB were there and back: as they were
//   8 MiB live; 0 MiB after the free, and ... MiB kept for the next allocation
#include <cstring>
#include <iostream>
#include <memory>
#include <utility>

#include <ashlar/ashlar.h>
#include <ashlar/cuda/cuda_device.h>
#include <ashlar/device/sharing.h>

using namespace ashlar;

namespace {

constexpr Bytes kSize = 8_MiB;
constexpr StreamHandle
    kDefaultStream{};  // CUDA's own default stream; a cudaStream_t is StreamHandle{value} too

// Copies on the default stream, and waits for the copy.
Status copy(CudaDevice& gpu, Address to, Address from) {
  const Status copied = gpu.sharing()->copy(to, from, kSize, kDefaultStream);
  return copied.is_ok() ? gpu.synchronize() : copied;
}

std::uint64_t live_mib(const CachingAllocator& allocator) {
  return Bytes{allocator.stats(DeviceId{0}).value().allocated_bytes[0].current} / 1_MiB;
}

}  // namespace

int main() {
  auto opened = CudaDevice::open(0, DeviceId{0});
  if (!opened.is_ok()) {
    std::cerr << "no GPU to run on: " << opened.status().why() << "\n";
    return 77;
  }
  const std::unique_ptr<CudaDevice> gpu = std::move(opened).value();
  const MemoryInfo memory = gpu->memory_info().value();
  std::cout << "GPU 0 has " << memory.total / 1_MiB << " MiB, " << memory.free / 1_MiB
            << " MiB of them free\n";

  Device* const devices[] = {gpu.get()};
  const auto allocator = CachingAllocator::create(devices, Config{}).value();
  const Stream stream = gpu->identify(kDefaultStream).value();
  const Address block = allocator->allocate(kSize, stream).value();

  const Address host = gpu->pinned_alloc(kSize).value();
  std::memset(host.pointer(), 42, kSize.count());
  if (!copy(*gpu, block, host).is_ok()) return 1;
  std::memset(host.pointer(), 0, kSize.count());
  if (!copy(*gpu, host, block).is_ok()) return 1;
  const auto* const bytes = static_cast<const char*>(host.pointer());
  const bool are_same = bytes[0] == 42 && bytes[kSize.count() - 1] == 42;
  std::cout << "8 MiB were there and back: " << (are_same ? "as they were" : "changed") << "\n";
  if (!gpu->pinned_free(host).is_ok()) return 1;

  std::cout << live_mib(*allocator) << " MiB live; ";
  if (!allocator->free(block).is_ok()) return 1;
  const Bytes kept{allocator->stats(DeviceId{0}).value().reserved_bytes[0].current};
  std::cout << live_mib(*allocator) << " MiB after the free, and " << kept / 1_MiB
            << " MiB kept for the next allocation\n";
  return 0;
}
