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
  /// Owns a live allocation of the allocator, which must outlive it. `size` is what size() says.
  OwnedMemory(CachingAllocator& allocator, Address address, Bytes size = Bytes{}) noexcept
      : allocator_(&allocator), address_(address), size_(size) {}
  /// `from` owns nothing afterwards.
  OwnedMemory(OwnedMemory&& from) noexcept { swap(from); }
  /// Frees what is owned so far. `from` owns nothing afterwards.
  OwnedMemory& operator=(OwnedMemory&& from) noexcept {
    OwnedMemory taken(std::move(from));
    swap(taken);
    return *this;
  }
  OwnedMemory(const OwnedMemory&) = delete;
  OwnedMemory& operator=(const OwnedMemory&) = delete;
  ~OwnedMemory() { static_cast<void>(reset()); }

  /// Null if nothing is owned.
  Address address() const noexcept { return address_; }
  /// The address as a pointer, for kernels.
  void* get() const noexcept { return reinterpret_cast<void*>(address_.value()); }
  /// What was asked for, in bytes; zero if nothing is owned, or if whoever made this did not say.
  Bytes size() const noexcept { return size_; }
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
    const Address address = release();
    return address.is_null() ? Status::ok() : allocator_->free(address);
  }
  /// Frees the memory, which `stream` used last. Errors as CachingAllocator::free(address, stream): the memory stays
  /// owned then.
  Status reset(const Stream& stream) noexcept {
    const Status freed = address_.is_null() ? Status::ok() : allocator_->free(address_, stream);
    if (freed.is_ok()) static_cast<void>(release());
    return freed;
  }
  /// Gives up ownership without a free.
  [[nodiscard]] Address release() noexcept {
    size_ = Bytes{};
    return std::exchange(address_, Address{});
  }
  /// Each owns what the other did.
  void swap(OwnedMemory& other) noexcept {
    std::swap(allocator_, other.allocator_);
    std::swap(address_, other.address_);
    std::swap(size_, other.size_);
  }
  /// The same.
  friend void swap(OwnedMemory& a, OwnedMemory& b) noexcept { a.swap(b); }
  /// Equal if both own nothing: no two own one allocation.
  friend bool operator==(const OwnedMemory& a, const OwnedMemory& b) noexcept {
    return a.address_ == b.address_;
  }

 private:
  CachingAllocator* allocator_ = nullptr;
  Address address_;
  Bytes size_;
};

/// allocator.allocate(), owned. Errors as there. Zero bytes are an allocation that owns nothing.
inline Result<OwnedMemory> allocate_owned(CachingAllocator& allocator, Bytes size,
                                          const Stream& stream,
                                          OutOfMemory* account = nullptr) noexcept {
  const Result<Address> got = allocator.allocate(size, stream, account);
  if (!got.is_ok()) return got.status();
  return OwnedMemory(allocator, got.value(), got.value().is_null() ? Bytes{} : size);
}

}  // namespace ashlar::inline v0::cache
