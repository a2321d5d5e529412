// DriverPool: a pool of stream-ordered memory of one GPU (CUmemoryPool), made when it is first needed.
//
// Source: "CUDA Driver API", version 13.0, "Stream Ordered Memory Allocator".
// Thread safety: any thread; the destructor alone.
//
// Invariants:
//   (1) the pool that get() returns keeps what is freed until it is trimmed.
#pragma once

#include <ashlar/base/mutex.h>
#include <ashlar/cuda/primary_context.h>

namespace ashlar::inline v0::cuda {

class DriverPool {
 public:
  /// `gpu` must outlive this, and be able to have pools. Makes no driver call.
  explicit DriverPool(PrimaryContext& gpu) noexcept : gpu_(gpu) {}
  /// What allocations still have of the pool goes back with them. In a forked child nothing is done (C25).
  ~DriverPool();
  DriverPool(const DriverPool&) = delete;
  DriverPool& operator=(const DriverPool&) = delete;

  /// The pool. After an error there is none, and the next call asks again.
  Result<MemoryPool> get() noexcept ASHLAR_EXCLUDES(lock_);

 private:
  PrimaryContext& gpu_;
  Mutex lock_;
  MemoryPool pool_ ASHLAR_GUARDED_BY(lock_) = nullptr;
};

}  // namespace ashlar::inline v0::cuda
