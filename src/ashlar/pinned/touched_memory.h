// Memory of the host all of whose pages are present: what a device registers quickly.
//
// Purpose: registering memory makes the kernel provide and lock every page, on one thread. Where several
// threads have touched the pages before, the registration finds them present.
// Thread safety: any thread, each on its own ranges.
// Source: PyTorch's pinned_num_register_threads.
#pragma once

#include <ashlar/base/status.h>
#include <ashlar/base/types.h>

namespace ashlar::inline v0::pinned {

/// The largest number of threads that touch one range.
inline constexpr unsigned kTouchThreadsMax = 128;

/// Maps at least `size` bytes, aligned to 2 MiB and all zero, and touches every page with that many threads;
/// with fewer where the host starts no more. The pages come from that NUMA node where it has memory left
/// (thread_numa_policy.h). kOutOfMemory if the host maps no more; kInvalidArgument and kUnsupported as
/// ThreadNumaPolicy. REQUIRES: 0 < size < 2^63; threads in 1..kTouchThreadsMax.
/// Cost: a page fault for each page, spread over the threads.
Result<Address> map_touched(Bytes size, unsigned threads, int node) noexcept;
/// Gives a whole range of map_touched(size) back.
void unmap_touched(Address base, Bytes size) noexcept;
/// The bytes that map_touched(size) maps.
Bytes touched_size(Bytes size) noexcept;

}  // namespace ashlar::inline v0::pinned
