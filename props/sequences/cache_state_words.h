// The state of a caching allocator and of its simulated machine as numbers: worlds with equal
// numbers go on alike, so that an exhaustive search visits one of them.
//
// What is in them: every segment and block, with who uses it and what its stamp is worth; every
// heap's epochs, marks, queues of uses and back-off of polls, in their order; events in hand and how
// far each is from being complete; the limit, captures, pending entries of every stream. What only
// grows (epochs, sequences, hits) is taken relative to what it is compared with. Left out, because
// nothing that follows depends on them: statistics; the order of records that no call can tell apart
// (slabs, the tables' places); how often forgotten heaps were looked for, as streams are not retired
// in the searched alphabet; whether a use was announced in a capture, as that matters to memory pools. The judge's own history (peaks, DEV-13's order of releases) is not part
// of it either: in a merged world those two are judged by the history of the word that is kept.
// Thread safety: none.
#pragma once

#include <cstdint>
#include <vector>

#include <ashlar/cache/caching_allocator.h>

#include "spec/gpu/sim_gpu.h"

namespace ashlar::props {

/// Appends the words of one device. REQUIRES: no stream was retired.
void append_state(cache::CachingAllocator& allocator, DeviceId device, const spec::SimGpu& gpu,
                  std::vector<std::uint64_t>* words);

}  // namespace ashlar::props
