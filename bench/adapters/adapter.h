// What a benchmark asks of an allocator: the same three members of every one, resolved at compile
// time.
//
//   struct SomeAdapter {
//     static constexpr const char* kName;
//     using Handle;  // what free needs; default-constructed, it names no block
//     Handle allocate(std::uint64_t bytes, unsigned stream);  // aborts where its allocator fails
//     void free(Handle handle);
//   };
//
// No virtual call and no bookkeeping of the adapter's own stands between a benchmark and the
// allocator it times.
// Thread safety: that of the allocator behind it; all but PoolAdapter may be called from any
// thread.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace ashlar::bench {

/// Streams are numbered from 0. Every adapter takes at least this many.
inline constexpr unsigned kStreamsMax = 64;

/// A benchmark over an allocator that failed says nothing: stop.
[[noreturn]] inline void give_up(const char* adapter, const char* why) {
  std::fprintf(stderr, "%s: %s\n", adapter, why);
  std::abort();
}

/// Nothing at all: what the harness itself costs.
struct EmptyAdapter {
  static constexpr const char* kName = "empty";
  using Handle = std::uint64_t;
  Handle allocate(std::uint64_t bytes, unsigned) {
    asm volatile("" ::: "memory");
    return bytes;
  }
  void free(Handle handle) { asm volatile("" : : "r"(handle) : "memory"); }
};

/// The C library's: host memory, never touched.
struct MallocAdapter {
  static constexpr const char* kName = "malloc";
  using Handle = void*;
  Handle allocate(std::uint64_t bytes, unsigned) {
    void* p = std::malloc(bytes);
    if (p == nullptr) give_up(kName, "malloc failed");
    asm volatile("" : : "r"(p) : "memory");  // else the compiler may drop the pair
    return p;
  }
  void free(Handle handle) {
    // Else g++ 12 takes a pair's next pointer for the one freed before, and warns.
    asm volatile("" : "+r"(handle));
    std::free(handle);
  }
};

}  // namespace ashlar::bench
