// The history of a device: switched on and off, annotated, read (row DEV-18).
//
// Purpose: who allocated what, when, and from where; written as a file that PyTorch's viewer opens by
// <ashlar/exchange.h>.
// Thread safety: any thread, but for an observer of mappings and the filter of a memory pool, to which
// start_history() and stop_history() are kReentrant.
// Errors of all: as every call of CachingAllocator (kForked; kInvalidArgument for no device of that id).
//
//   ashlar::start_history(*allocator, device, {.events_max = 1'000'000});
//   ...                                                     // the run
//   ashlar::HistorySnapshot taken;
//   ashlar::history_snapshot(*allocator, device, &taken);   // what there is now, and how it came to be
#pragma once

#include <string_view>

#include <ashlar/cache/caching_allocator.h>
#include <ashlar/cache/history.h>

namespace ashlar::inline v0::cache {

/// The device's history begins: every change from now on is an event. What is live already has none.
/// kBusy if it is on; kInvalidArgument if no event, or more than 2^30 events or contexts, are to be kept;
/// kHostOutOfMemory. Cost: the memory that HistoryOptions says, and one short hold of each heap's lock.
/// While it is on, an event costs about 50 ns, and all streams of the device share one lock for it.
ASHLAR_API Status start_history(CachingAllocator& allocator, DeviceId device,
                                const HistoryOptions& options = {}) noexcept;
/// It ends. Its events can be read until the next start. kNotFound if it is not on.
ASHLAR_API Status stop_history(CachingAllocator& allocator, DeviceId device) noexcept;
/// Is it on?
ASHLAR_API Result<bool> has_history(const CachingAllocator& allocator, DeviceId device) noexcept;

/// Puts a text of the user's into the history. kNotFound if it is not on; kHostOutOfMemory.
ASHLAR_API Status annotate(CachingAllocator& allocator, DeviceId device,
                           std::string_view text) noexcept;

/// Replaces `*out` by the events from the one with sequence number `first` on; History::lost says how many of
/// them were overwritten. A tracker reads on from behind the last event that it has. kInvalidArgument for a
/// null `out`; kHostOutOfMemory. Cost: a copy; no lock that an allocation takes is held for more than 32 events, and
/// annotate() waits while texts are copied.
ASHLAR_API Status read_history(const CachingAllocator& allocator, DeviceId device,
                               std::uint64_t first, History* out) noexcept;

/// Replaces `*out` by all memory of the device at one moment, and the history until that moment: the two
/// agree, whatever other threads do meanwhile. Without a history it is snapshot() alone. kInvalidArgument
/// for a null `out`; kBusy if other threads overwrite events faster than they are read, again and again, or
/// as snapshot(); kHostOutOfMemory. After an error `*out` is empty.
/// Cost: as snapshot(), and a copy of the history; more where other threads allocated meanwhile.
ASHLAR_API Status history_snapshot(CachingAllocator& allocator, DeviceId device,
                                   HistorySnapshot* out) noexcept;

}  // namespace ashlar::inline v0::cache
