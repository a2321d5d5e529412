// Use nodes beyond need back to the host, and their events to the driver (C29).
//
// Thread safety: by the role `reclaiming`; one shrink of a heap runs at a time, also while it lets
// other threads have the reclaim lock. C18: events
// are destroyed with no heap lock held. C31: the heap's lock is held for a few nodes at a time.
#pragma once

#include <ashlar/cache/reclaim_lock.h>
#include <ashlar/cache/shared_state.h>
#include <ashlar/cache/stream_heap.h>

namespace ashlar::inline v0::cache {

/// Destroys the events of the heap's spare nodes beyond its live blocks and one slab, and frees the
/// slabs all of whose nodes are such. No effect while another thread's is under way. Ends early, and what is left stays, if a thread waits for an
/// event (it may be one of these), or a capture is announced. An event that the driver does not
/// destroy stays with its node.
void shrink_nodes(StreamHeap& heap, const SharedState& shared, ReclaimLock& lock) noexcept
    ASHLAR_REQUIRES(reclaiming) ASHLAR_EXCLUDES(heap.lock);

}  // namespace ashlar::inline v0::cache
