// Canaries: words that say whose bytes these are, and the kernel that writes and checks them.
//
// Purpose: memory that the allocator hands out too early holds another owner's words, or gets them while they are checked. The
// kernel spins before it touches anything, so that whoever gets the bytes too early gets there first.
// Thread safety: plain values; each worker has words of its own.
//
// Included by the kernel (canary_kernels.cu), and by the host where the GPU is simulated: both run run_canary().
#pragma once

#include <cstdint>

#include "src/cuda_backend/on_device.h"

namespace ashlar::props {

/// Of the kernels in the image.
inline constexpr const char* kCanaryName = "ashlar_canary";
/// `ashlar_gate(word)`: holds its stream until the 4-byte word of host memory is not zero, for a minute at most.
inline constexpr const char* kGateName = "ashlar_gate";
/// `ashlar_fault()`: writes to an address that nothing is at, an error that stays.
inline constexpr const char* kFaultName = "ashlar_fault";
inline constexpr std::uint64_t kCanaryWord = 8;  ///< bytes

/// What a check found. It lies in memory of the GPU, all zeros before.
struct CanaryResult {
  std::uint64_t mismatches = 0;
  std::uint64_t first_at = 0;  ///< the address of the first in time
  std::uint64_t found = 0;     ///< the word that was there
};

/// One launch. Access as in spec::Access: 1 checks, 2 writes, 3 checks and then writes.
struct CanaryCall {
  std::uint64_t begin = 0;
  std::uint64_t bytes = 0;   ///< a multiple of kCanaryWord
  std::uint64_t stride = 8;  ///< from one word that is looked at to the next, in bytes
  std::uint64_t owner = 0;   ///< not 0; below 2^32
  // What the simulated GPU's detector is told (spec::Touch); 0: nothing.
  std::uint64_t tag = 0;
  std::uint64_t group = 0;
  std::uint64_t spin_ticks = 0;
  CanaryResult* result = nullptr;  ///< of a check
  std::uint32_t access = 0;
};

/// The word at that many bytes from the owner's first.
ASHLAR_ON_DEVICE inline std::uint64_t canary_word(std::uint64_t owner, std::uint64_t offset) {
  return owner << 32 | offset / kCanaryWord % (std::uint64_t{1} << 32);
}

/// The part of one of `workers` workers. `report(result, address, found)` is told of each wrong word.
template <class Report>
ASHLAR_ON_DEVICE void run_canary(const CanaryCall& call, std::uint64_t worker,
                                 std::uint64_t workers, const Report& report) {
  for (std::uint64_t at = worker * call.stride; at < call.bytes; at += workers * call.stride) {
    auto* const word = reinterpret_cast<volatile std::uint64_t*>(call.begin + at);
    const std::uint64_t right = canary_word(call.owner, at);
    if ((call.access & 1) != 0) {
      const std::uint64_t found = *word;
      if (found != right) report(call.result, call.begin + at, found);
    }
    if ((call.access & 2) != 0) *word = right;
  }
}

}  // namespace ashlar::props
