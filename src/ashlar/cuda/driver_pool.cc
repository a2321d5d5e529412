#include <ashlar/cuda/driver_pool.h>

namespace ashlar::inline v0::cuda {

DriverPool::~DriverPool() {
  MemoryPool const pool = pool_;
  if (pool != nullptr && !gpu_.is_forked())
    static_cast<void>(gpu_.call([&] { return gpu_.driver().pools.destroy(pool); }));
}

Result<MemoryPool> DriverPool::get() noexcept {
  const MutexGuard guard(lock_);
  if (pool_ != nullptr) return pool_;
  PoolProperties properties;
  properties.location.id = gpu_.device();
  MemoryPool made = nullptr;
  const Status created = gpu_.call([&] { return gpu_.driver().pools.create(&made, &properties); });
  if (!created.is_ok()) return created;
  const auto give = [&](int attribute, void* value) {
    return gpu_.call([&] { return gpu_.driver().pools.set_attribute(made, attribute, value); });
  };
  // Without it each synchronisation, anybody's, would give the pool's free memory back.
  std::uint64_t keep = ~std::uint64_t{0};
  Status set = give(kPoolReleaseThreshold, &keep);
  // By default the driver may have a stream wait for another one whose memory it reuses: collectives that wait for
  // each other would stand still.
  int adds_waits = 0;
  if (set.is_ok()) set = give(kPoolAddsWaits, &adds_waits);
  if (!set.is_ok()) {
    static_cast<void>(gpu_.call([&] { return gpu_.driver().pools.destroy(made); }));
    return set;
  }
  return pool_ = made;
}

}  // namespace ashlar::inline v0::cuda
