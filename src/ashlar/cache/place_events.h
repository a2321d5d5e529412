// What became of requests at remembered places: how often each thing happened to a thread's requests.
//
// Purpose: random worlds have to reach the loan of pages, and each reason for which a loan fails. No
// statistic tells, so builds with assertions count here (props/cache/steps_test.cc). In release builds
// all of it compiles to nothing.
// Thread safety: the counters are the thread's own.
#pragma once

#include <array>
#include <cstdint>

#include <ashlar/base/assert.h>

namespace ashlar::inline v0::cache {

enum class PlaceEvent : std::uint8_t {
  kLogMade,       ///< a heap was short of pages for the first time
  kPlaceTaken,    ///< a request got its expected place, which was free memory
  kPlaceNotFree,  ///< its expected place was not all free memory
  kPageCame,      ///< a page came home without a device call
  kLoan,          ///< a request got its expected place after pages had come
  // Why a loan failed.
  kReserved,       ///< C8: the heap is of a memory pool in use
  kNotExpected,    ///< the log expects no place
  kNotUnmapped,    ///< no unmapped block is where the place begins
  kStockBusy,      ///< another thread has the stock
  kOccupied,       ///< a block that is neither free nor unmapped is in the place
  kTooManyPages,   ///< more would have to come than may for one request
  kNothingMapped,  ///< nothing usable is mapped at one of the place's pages
  kHomeless,       ///< a page is in the stock
  kHomeInPlace,    ///< a page is at home in the same place
  kOtherHeap,      ///< a page is at home in another heap or pool
  kHomeNotFree,    ///< no free block holds the page's home, or it is wanted twice or pinned
  kNoRecord,       ///< the host has no memory for a record
};
inline constexpr unsigned kPlaceEvents = static_cast<unsigned>(PlaceEvent::kNoRecord) + 1;

#if ASHLAR_ASSERTIONS
inline thread_local std::array<std::uint64_t, kPlaceEvents> place_events{};
#endif

/// Counts the event. Nothing in builds without assertions.
inline void count_place_event([[maybe_unused]] PlaceEvent event) noexcept {
#if ASHLAR_ASSERTIONS
  place_events[static_cast<unsigned>(event)] += 1;
#endif
}

}  // namespace ashlar::inline v0::cache
