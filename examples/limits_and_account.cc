// A memory limit, and the account of an allocation that fails at it.
//
// Shows: a configuration string; a limit; an observer, which sees every out-of-memory of the process;
// the account with its advice, which the failing call fills in; that the allocator goes on after it.
// Prints:
//   observer: 32.0 MiB were requested on device 0, the limit is 64.0 MiB
//   Out of memory on device 0: 32.00 MiB (33554432 bytes) requested, ...
//   ...
//   Advice: the limit is what stands in the way; raise it ...
//   raise the limit? yes
//   with a higher limit: ok
#include <iomanip>
#include <iostream>
#include <memory>
#include <string>
#include <utility>

#include <ashlar/ashlar.h>

using namespace ashlar;

namespace {

double mib(Bytes size) { return static_cast<double>(size.count()) / (1 << 20); }

int fail(const char* why) {
  std::cerr << why << '\n';
  return 1;
}

}  // namespace

int main() {
  // The same text can come from the environment variable ASHLAR_ALLOC_CONF: config_from_environment().
  std::string error;
  const Result<Config> config = parse_config("backing:segments,wait_ms:100", &error);
  if (!config.is_ok()) return fail(error.c_str());

  HostDevice device;
  Device* const devices[] = {&device};
  auto created = CachingAllocator::create(devices, config.value());
  if (!created.is_ok()) return fail(created.status().why());
  const std::unique_ptr<CachingAllocator> allocator = std::move(created).value();
  const DeviceId id = device.traits().id;
  const Stream stream = device.identify(HostDevice::kDefaultStream).value();

  // Observers are added before other threads use the allocator. A monitor counts here, or writes a log.
  allocator->add_out_of_memory_observer([](const OutOfMemory& account) {
    std::cout << std::fixed << std::setprecision(1) << "observer: " << mib(account.requested)
              << " MiB were requested on device " << account.device.value() << ", the limit is "
              << mib(account.limit) << " MiB\n";
  });

  // This process may hold 64 MiB of the device. 48 MiB of them are in use.
  if (const Status limited = allocator->set_memory_limit(id, 64_MiB); !limited.is_ok())
    return fail(limited.why());
  const Result<Address> weights = allocator->allocate(48_MiB, stream);
  if (!weights.is_ok()) return fail(weights.status().why());

  OutOfMemory account;
  const Result<Address> refused = allocator->allocate(32_MiB, stream, &account);
  if (refused.code() != Code::kOutOfMemory) return fail("the limit was not kept");
  std::cout << account.message();
  const bool is_limit = account.advises(Advice::kRaiseLimit);
  std::cout << "raise the limit? " << (is_limit ? "yes" : "no") << '\n';

  // A failed allocation changes nothing but idle memory, so the program can act on the advice.
  if (const Status raised = allocator->set_memory_limit(id, 128_MiB); !raised.is_ok())
    return fail(raised.why());
  const Result<Address> batch = allocator->allocate(32_MiB, stream);
  std::cout << "with a higher limit: " << code_name(batch.code()) << '\n';
  const bool is_done = batch.is_ok() && allocator->free(batch.value()).is_ok() &&
                       allocator->free(weights.value()).is_ok();
  return is_done ? 0 : 1;
}
