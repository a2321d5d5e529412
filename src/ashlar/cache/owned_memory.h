// OwnedMemory: an allocation that frees itself (row DEV-20).
//
// Purpose: exception-safe ownership, and a deleter for std::unique_ptr and std::shared_ptr. The free is ordered on the
// allocation's stream, as any free is; what other streams do with the memory is named before that by record_use().
// Thread safety: one object is one thread's at a time; the free may happen on any thread.
#pragma once

#include <utility>

#include <ashlar/cache/caching_allocator.h>

namespace ashlar::inline v0::cache {

/// Frees what the allocator gave out. The allocator must outlive it. A failed free is not reported: the free of a live
/// allocation fails only in a forked child (kForked).
class FreeDeleter {
 public:
  /// For an empty smart pointer. REQUIRES: called with null alone.
  FreeDeleter() = default;
  /// Frees on that allocator.
  explicit FreeDeleter(CachingAllocator& allocator) noexcept : allocator_(&allocator) {}
  /// CachingAllocator::free(); null is a no-op.
  void operator()(const void* memory) const noexcept {
    if (memory == nullptr) return;
    static_cast<void>(allocator_->free(Address{reinterpret_cast<std::uintptr_t>(memory)}));
  }

 private:
  CachingAllocator* allocator_ = nullptr;
};

/// A live allocation, or none.
class OwnedMemory {
 public:
  OwnedMemory() = default;
  /// Owns a live allocation of the allocator, which must outlive it.
  OwnedMemory(CachingAllocator& allocator, Address address) noexcept
      : allocator_(&allocator), address_(address) {}
  /// `from` owns nothing afterwards.
  OwnedMemory(OwnedMemory&& from) noexcept
      : allocator_(from.allocator_), address_(std::exchange(from.address_, Address{})) {}
  /// Frees what is owned so far.
  OwnedMemory& operator=(OwnedMemory&& from) noexcept {
    if (this == &from) return *this;
    static_cast<void>(reset());
    allocator_ = from.allocator_;
    address_ = std::exchange(from.address_, Address{});
    return *this;
  }
  OwnedMemory(const OwnedMemory&) = delete;
  OwnedMemory& operator=(const OwnedMemory&) = delete;
  ~OwnedMemory() { static_cast<void>(reset()); }

  /// Null if nothing is owned.
  Address address() const noexcept { return address_; }
  /// The address as a pointer, for kernels.
  void* get() const noexcept { return reinterpret_cast<void*>(address_.value()); }
  /// Is anything owned?
  explicit operator bool() const noexcept { return !address_.is_null(); }

  /// Names another stream that uses the memory before it is freed. Errors as CachingAllocator::record_use();
  /// kUnknownPointer if nothing is owned.
  Status record_use(const Stream& stream) const noexcept {
    ASHLAR_REQUIRE(*this, Code::kUnknownPointer, "nothing is owned");
    return allocator_->record_use(address_, stream);
  }
  /// Frees the memory; ok if nothing is owned. Errors as CachingAllocator::free(): nothing is owned afterwards all
  /// the same.
  Status reset() noexcept {
    const Address address = std::exchange(address_, Address{});
    return address.is_null() ? Status::ok() : allocator_->free(address);
  }
  /// Gives up ownership without a free.
  [[nodiscard]] Address release() noexcept { return std::exchange(address_, Address{}); }

 private:
  CachingAllocator* allocator_ = nullptr;
  Address address_;
};

/// allocator.allocate(), owned. Errors as there. Zero bytes are an allocation that owns nothing.
inline Result<OwnedMemory> allocate_owned(CachingAllocator& allocator, Bytes size,
                                          const Stream& stream,
                                          OutOfMemory* account = nullptr) noexcept {
  const Result<Address> got = allocator.allocate(size, stream, account);
  if (!got.is_ok()) return got.status();
  return OwnedMemory(allocator, got.value());
}

}  // namespace ashlar::inline v0::cache
