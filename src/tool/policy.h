// A policy: how a caching allocator of another project places and keeps memory, over the block pool.
//
// Purpose: `ashlar replay --policy` shows what a trace costs under the policies that people have
// today. Two of PyTorch's are here: its segments of fixed sizes (policy_segments.cc) and its
// expandable segments (policy_expandable.cc). They are written from a description of its rules; only
// the rules for one thread, without recorded uses and captures, are needed for a trace.
// Thread safety: none. Cost of a call that needs no device: about 100 ns.
//
// Rules of both:
//   (1) A request becomes a multiple of 512 bytes. Up to 1 MiB it is served from the small pool of its
//       stream, else from the large one; memory never changes its stream or pool.
//   (2) Best fit: the smallest free block that is large enough, the lowest address among equals.
//   (3) A block that is larger than the request is split where enough remains; a freed block merges
//       with free neighbours of the same segment.
//   (4) Memory goes back to the device only when it has refused more: then all of it that is wholly
//       free does, after a wait for the device, and the device is asked once more.
#pragma once

#include <cstdint>
#include <memory>

#include <ashlar/base/status.h>
#include <ashlar/base/types.h>
#include <ashlar/device/device.h>

namespace ashlar::tool {

struct PolicyFigures {
  Bytes reserved;           ///< device memory held now
  Bytes reserved_peak;      ///< the most that was held at once
  std::uint64_t waits = 0;  ///< for the device, before memory was given back
  std::uint64_t ooms = 0;   ///< requests that failed
};

class Policy {
 public:
  virtual ~Policy() = default;

  /// Allocates on the stream with that number. kOutOfMemory if the device has too little memory,
  /// kHostOutOfMemory if the host has no memory for a record. REQUIRES: 0 < size <= 1 EiB.
  virtual Result<Address> allocate(Bytes size, std::uint32_t stream) = 0;
  /// Frees. REQUIRES: `address` is live, and was allocated on `stream`.
  virtual void free(Address address, std::uint32_t stream) = 0;
  virtual const PolicyFigures& figures() const = 0;
  /// Walks everything. Returns nullptr, or the text of what is broken. Cost: O(blocks).
  virtual const char* validate() const = 0;
};

/// PyTorch's default: segments of 2 MiB (small), 20 MiB (requests under 10 MiB) or the request rounded up
/// to 2 MiB. The device outlives the policy, which returns nothing to it when it is destroyed.
std::unique_ptr<Policy> make_segment_policy(device::Device& device);
/// PyTorch's expandable segments: for each stream and pool a reservation of addresses of 9/8 of
/// `memory`, the device's, and pages of 2 MiB (small) or 20 MiB mapped there as needed. On a
/// device without virtual memory it is make_segment_policy().
std::unique_ptr<Policy> make_expandable_policy(device::Device& device, Bytes memory);

}  // namespace ashlar::tool
