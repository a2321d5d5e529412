#include "spec/gpu/fault.h"

#include "spec/gpu/ledger.h"

namespace ashlar::spec {

const char* fault_name(FaultKind kind) noexcept {
  switch (kind) {
    case FaultKind::kBadFree: return "bad-free";
    case FaultKind::kBadMapping: return "bad-mapping";
    case FaultKind::kInFlight: return "in-flight";
    case FaultKind::kDeadStream: return "dead-stream";
    case FaultKind::kDeadEvent: return "dead-event";
    case FaultKind::kDeadPage: return "dead-page";
    case FaultKind::kWrongDevice: return "wrong-device";
    case FaultKind::kCaptureUnsafe: return "capture-unsafe";
    case FaultKind::kCalledFromHostFunction: return "called-from-host-function";
    case FaultKind::kDeadlock: return "deadlock";
    case FaultKind::kLeak: return "leak";
    case FaultKind::kCallAfterTeardown: return "call-after-teardown";
    case FaultKind::kEarlyReuse: return "early-reuse";
    case FaultKind::kOverlap: return "overlap";
    case FaultKind::kLiveUnmapped: return "live-unmapped";
    case FaultKind::kUnorderedUse: return "unordered-use";
    case FaultKind::kUnannouncedUse: return "unannounced-use";
    case FaultKind::kUseAfterFree: return "use-after-free";
    case FaultKind::kOutOfBounds: return "out-of-bounds";
    case FaultKind::kTouchUnmapped: return "touch-unmapped";
    case FaultKind::kStaleRegistration: return "stale-registration";
  }
  return "unknown";
}

void FaultLog::add(Fault fault) {
  if (faults_.size() == kFaultsMax) {
    ++dropped_;
    return;
  }
  faults_.push_back(std::move(fault));
}

unsigned& FaultLog::caller_depth() {
  static thread_local unsigned depth = 0;
  return depth;
}

std::vector<Fault> FaultLog::take() {
  dropped_ = 0;
  return std::exchange(faults_, {});
}

const char* held_name(HeldKind kind) noexcept {
  switch (kind) {
    case HeldKind::kSegment: return "segment";
    case HeldKind::kReservation: return "reservation";
    case HeldKind::kPage: return "page";
    case HeldKind::kMapping: return "mapping";
    case HeldKind::kEvent: return "event";
    case HeldKind::kStream: return "stream";
    case HeldKind::kPinned: return "pinned";
    case HeldKind::kRegistered: return "registered";
    case HeldKind::kOpened: return "opened";
  }
  return "unknown";
}

HeldCount& Ledger::of(HeldKind kind) {
  switch (kind) {
    case HeldKind::kSegment: return segments;
    case HeldKind::kReservation: return reservations;
    case HeldKind::kPage: return pages;
    case HeldKind::kMapping: return mappings;
    case HeldKind::kEvent: return events;
    case HeldKind::kStream: return streams;
    case HeldKind::kPinned: return pinned;
    case HeldKind::kRegistered: return registered;
    case HeldKind::kOpened: return opened;
  }
  return pinned;
}

bool Ledger::nothing_held() const {
  return segments.count + reservations.count + pages.count + mappings.count + events.count +
             pinned.count + registered.count + opened.count ==
         0;
}

}  // namespace ashlar::spec
