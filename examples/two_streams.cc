// Memory of one stream that another stream uses too: a recorded use, and when the memory comes back.
//
// Shows: record_use() before the free; that the freed block is pending until the other stream's work is
// complete; that it is free again then. On a GPU the same calls are made while the kernels run. A host
// device has done all work when a call returns, so there the first question finds it complete.
// Prints:
//   allocated on one stream, used on another: 8 MiB live, 0 MiB pending
//   freed without a wait: 0 MiB live, 8 MiB pending
//   the other stream's work is complete: 0 MiB live, 0 MiB pending
//   the next block is the same memory: yes
#include <cstring>
#include <iostream>
#include <memory>
#include <utility>

#include <ashlar/ashlar.h>

using namespace ashlar;

namespace {

void print_memory(const char* when, const CachingAllocator& allocator) {
  const DeviceStats stats = allocator.stats(DeviceId{0}).value();
  const Bytes live{stats.allocated_bytes[0].current};
  const Bytes active{stats.active_bytes[0].current};  // live, or freed and still in use
  std::cout << when << ": " << live / 1_MiB << " MiB live, " << (active - live) / 1_MiB
            << " MiB pending\n";
}

}  // namespace

int main() {
  HostDevice device;
  Device* const devices[] = {&device};
  auto created = CachingAllocator::create(devices, Config{});
  const Result<Stream> made = device.create_stream();
  if (!created.is_ok() || !made.is_ok()) return 1;
  const std::unique_ptr<CachingAllocator> allocator = std::move(created).value();
  const Stream compute = device.identify(HostDevice::kDefaultStream).value();
  const Stream copy = made.value();

  const Result<Address> block = allocator->allocate(8_MiB, compute);
  const Result<EventHandle> written = device.event_create();
  if (!block.is_ok() || !written.is_ok()) return 1;
  std::memset(block.value().pointer(), 1, (8_MiB).count());  // stands for a kernel on `compute`

  // The first use on another stream is ordered behind the work of the first one, as ever.
  if (!device.event_record(written.value(), compute.handle).is_ok()) return 1;
  if (!device.stream_wait(copy.handle, written.value()).is_ok()) return 1;
  // Here a copy out of the block is enqueued on `copy`. The allocator cannot see that; it is told.
  if (!allocator->record_use(block.value(), copy).is_ok()) return 1;
  print_memory("allocated on one stream, used on another", *allocator);

  // The caller waits for nothing. The free records an event on `copy`; until it is complete nobody is
  // given the memory. free(block, copy) is both calls in one.
  if (!allocator->free(block.value()).is_ok()) return 1;
  print_memory("freed without a wait", *allocator);

  // Allocations ask about such events themselves. A thread with time to spare can do it before them.
  if (!process_events(*allocator, device.traits().id).is_ok()) return 1;
  print_memory("the other stream's work is complete", *allocator);

  const Result<Address> next = allocator->allocate(8_MiB, compute);
  if (!next.is_ok()) return 1;
  std::cout << "the next block is the same memory: "
            << (next.value() == block.value() ? "yes" : "no") << '\n';

  // A stream is retired before it is destroyed, so that the allocator never names it again.
  const bool is_done =
      allocator->free(next.value()).is_ok() && allocator->retire_stream(copy).is_ok() &&
      device.destroy_stream(copy.handle).is_ok() && device.event_destroy(written.value()).is_ok();
  return is_done ? 0 : 1;
}
