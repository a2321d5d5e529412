// A user's first program: it allocates memory on a host device, writes to it and frees it, and uses
// the generated version header.
#include <cstdio>
#include <cstring>
#include <memory>
#include <utility>

#include <ashlar/ashlar.h>

static_assert(ASHLAR_ASSERTIONS == EXPECTED_ASSERTIONS, "the headers must agree with the library");

int main() {
  if (std::strcmp(ASHLAR_VERSION, EXPECTED_VERSION) != 0) {
    std::printf("version %s, expected %s\n", ASHLAR_VERSION, EXPECTED_VERSION);
    return 1;
  }
  ashlar::HostDevice device;
  ashlar::Device* const devices[] = {&device};
  auto made = ashlar::CachingAllocator::create(devices, ashlar::Config{});
  if (!made.is_ok()) return 2;
  const std::unique_ptr<ashlar::CachingAllocator> allocator = std::move(made).value();
  const ashlar::Stream stream = device.identify(ashlar::HostDevice::kDefaultStream).value();

  const ashlar::Result<ashlar::Address> block = allocator->allocate(ashlar::Bytes{1000}, stream);
  if (!block.is_ok()) return 3;
  std::memset(reinterpret_cast<void*>(block.value().value()), 1, 1000);
  if (!allocator->free(block.value()).is_ok()) return 4;
  return allocator->free(block.value()).is_ok() ? 5 : 0;
}
