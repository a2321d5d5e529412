// Faults: misuse that the simulated machine and its happens-before detector saw, and whose fault it
// was.
//
// Purpose: a real driver ignores misuse, or corrupts memory silently; the simulated one reports it.
// Nothing here aborts.
// Thread safety: plain values; SimGpu::take_faults hands them over under the machine's lock.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "spec/gpu/text_parts.h"

namespace ashlar::spec {

/// Append only.
enum class FaultKind : std::uint8_t {
  // Misuse of the Device interface: the fault of the allocator, which calls it.
  /// segment_free or pinned_free of an address not handed out (twice, interior, foreign)
  kBadFree,
  /// virtual memory rule broken: partial unmap, map over a mapping, release of a mapped range, ...
  kBadMapping,
  /// D4: memory returned or unmapped while a kernel that uses it is not known to be done
  kInFlight,
  kDeadStream,              ///< D7: a destroyed stream's handle was used
  kDeadEvent,               ///< a destroyed event's handle was used
  kDeadPage,                ///< a released page's handle was used
  kWrongDevice,             ///< a stream or event of another device where CUDA wants its own
  kCaptureUnsafe,           ///< D6: a call that capture forbids; the capture is invalidated
  kCalledFromHostFunction,  ///< a device call from inside a stream's host function
  kDeadlock,                ///< a blocking call that can never return
  kLeak,                    ///< leak_check: still held
  kCallAfterTeardown,       ///< C25: a device call after tear_down()
  // Found by the detector: the allocator's fault.
  /// C6/C7: bytes handed to a new owner while an earlier owner's use is neither done nor ordered
  /// before
  kEarlyReuse,
  kOverlap,       ///< C2: an allocation overlaps a live one
  kLiveUnmapped,  ///< C1/C21: memory returned or unmapped under a live allocation
  // Found by the detector: the caller's fault.
  /// a first use on another stream, not ordered after the allocation, races with an earlier owner
  kUnorderedUse,
  /// a use on another stream was neither announced (record_use) nor ordered before the free
  kUnannouncedUse,
  kUseAfterFree,  ///< a kernel was launched on an allocation already freed
  kOutOfBounds,   ///< a kernel touches bytes outside of the allocation it names
  // The fault of whoever handed the address out: the allocator, for an address it says is live.
  kTouchUnmapped,  ///< a kernel ran on bytes that were not mapped, or had no access
  // The fault of whoever keeps the registration, or did not tell him.
  kStaleRegistration,  ///< a send through a registration whose memory has gone away
};

/// Whose fault it is.
enum class Blame : std::uint8_t { kAllocator, kCaller };

struct Fault {
  FaultKind kind = FaultKind::kBadFree;
  Blame by = Blame::kAllocator;
  std::string text;
};

/// "bad-free", "early-reuse", ...: static storage.
const char* fault_name(FaultKind kind) noexcept;

/// The list of faults; keeps the first kFaultsMax and counts the rest.
class FaultLog {
 public:
  static constexpr std::size_t kFaultsMax = 256;
  /// Adds a fault whose text is the parts joined.
  template <class... Parts>
  [[gnu::cold, gnu::noinline]] void report(FaultKind kind, Blame by, Parts... parts) {
    add(Fault{kind, by, joined(parts...)});
  }
  /// A misuse of the Device interface, by whoever calls it now: the allocator, or the caller inside
  /// a CallerScope.
  template <class... Parts>
  [[gnu::cold, gnu::noinline]] void misuse(FaultKind kind, Parts... parts) {
    add(Fault{kind, current_blame(), joined(parts...)});
  }
  /// On whose behalf the calling thread makes its calls now.
  static Blame current_blame() { return caller_depth() > 0 ? Blame::kCaller : Blame::kAllocator; }
  /// How many CallerScopes the calling thread is in.
  static unsigned& caller_depth();
  /// Faults reported and not taken yet, those beyond kFaultsMax included.
  std::size_t count() const { return faults_.size() + dropped_; }
  const std::vector<Fault>& faults() const { return faults_; }
  std::vector<Fault> take();

 private:
  void add(Fault fault);

  std::vector<Fault> faults_;
  std::size_t dropped_ = 0;
};

/// While one lives, the calling thread's Device calls are the caller's own (its events, its waits),
/// not the allocator's: they are not in the account, do not fail on purpose, and their misuse is
/// blamed on the caller. Nests.
class CallerScope {
 public:
  CallerScope() { ++FaultLog::caller_depth(); }
  CallerScope(const CallerScope&) = delete;
  CallerScope& operator=(const CallerScope&) = delete;
  ~CallerScope() { --FaultLog::caller_depth(); }
};

}  // namespace ashlar::spec
