// The first program of a user: memory is allocated, freed, and allocated again.
//
// Shows: an allocator over a device; a stream; a hit, which makes no call to the device; statistics.
// Prints:
//   10 MiB allocated, 10 MiB reserved
//   after the free: 0 MiB allocated, 10 MiB reserved
//   the same address again: yes; calls to the device for it: 0
//   given back: 0 MiB reserved
#include <cstring>
#include <iostream>
#include <memory>
#include <utility>

#include <ashlar/ashlar.h>

using namespace ashlar;

namespace {

// Each figure comes three times: for all blocks, small ones and large ones (StatPool).
std::uint64_t mib(const StatByPool& figure) { return Bytes{figure[0].current} / 1_MiB; }

std::uint64_t calls(const DeviceStats& stats) {
  std::uint64_t sum = 0;
  for (const std::uint64_t kind : stats.device_calls) sum += kind;
  return sum;
}

}  // namespace

int main() {
  HostDevice device;  // this computer's memory; for a GPU, CudaDevice::open(0, DeviceId{0})
  Device* const devices[] = {&device};
  auto created = CachingAllocator::create(devices, Config{});
  if (!created.is_ok()) {
    std::cerr << created.status().why() << '\n';
    return 1;
  }
  const std::unique_ptr<CachingAllocator> allocator = std::move(created).value();
  const DeviceId id = device.traits().id;
  const Stream stream = device.identify(HostDevice::kDefaultStream).value();

  // A miss: no free block fits, so the allocator takes memory from the device.
  const Result<Address> first = allocator->allocate(10_MiB, stream);
  if (!first.is_ok()) {
    std::cerr << first.status().why() << '\n';
    return 1;
  }
  std::memset(first.value().pointer(), 0, (10_MiB).count());  // the work, done at once on a CPU
  DeviceStats stats = allocator->stats(id).value();
  std::cout << mib(stats.allocated_bytes) << " MiB allocated, " << mib(stats.reserved_bytes)
            << " MiB reserved\n";

  // The block is free for the stream at once, and its memory stays with the allocator.
  if (!allocator->free(first.value()).is_ok()) return 1;
  stats = allocator->stats(id).value();
  std::cout << "after the free: " << mib(stats.allocated_bytes) << " MiB allocated, "
            << mib(stats.reserved_bytes) << " MiB reserved\n";

  // A hit: the best fitting free block.
  const std::uint64_t calls_before = calls(stats);
  const Result<Address> second = allocator->allocate(10_MiB, stream);
  if (!second.is_ok()) return 1;
  const std::uint64_t calls_made = calls(allocator->stats(id).value()) - calls_before;
  std::cout << "the same address again: " << (second.value() == first.value() ? "yes" : "no")
            << "; calls to the device for it: " << calls_made << '\n';

  // What no allocation uses goes back to the device: here, before another library needs it.
  if (!allocator->free(second.value()).is_ok() || !allocator->trim(id).is_ok()) return 1;
  std::cout << "given back: " << mib(allocator->stats(id).value().reserved_bytes)
            << " MiB reserved\n";
  return 0;
}
