// Captures: streams whose work is recorded instead of run, with CUDA's modes and errors (D6).
//
// Purpose: the capture half of the machine.
// Thread safety: none (the machine's lock). Cost: nothing while no capture is open; captures are
// rare.
// Invariants:
//   (1) A stream is in at most one open capture; a capture's first stream is the one it began on
//       (its origin).
//   (2) A member's clock says, for every member, up to which of its nodes the member's next node
//       depends.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "spec/gpu/clocks.h"
#include "spec/gpu/fault.h"
#include "spec/gpu/sim_gpu.h"

namespace ashlar::spec {

/// A place in a capture that an event stands for.
struct CapturePoint {
  std::uint32_t capture = 0;  // its number, from 1; 0: none
  Clock depends;              // by member
};

class Captures {
 public:
  explicit Captures(FaultLog& faults) : faults_(faults) {}

  bool none_open() const { return open_ == 0; }
  /// The open capture (valid or invalidated) that the lane is in, from 1; 0 if none. O(1).
  std::uint32_t of_lane(std::uint32_t lane) const { return lane < lane_.size() ? lane_[lane] : 0; }
  device::CaptureStatus status(std::uint32_t lane) const;

  Status begin(std::uint32_t lane, std::uint32_t thread, device::CaptureMode mode);
  /// Ends it and gives the touches of its kernels to `touches`. An error ends it all the same, but
  /// for the wrong stream or thread.
  Status end(std::uint32_t lane, std::uint32_t thread, std::vector<Touch>& touches);

  /// Ends the capture that the lane is in, if any: its device is gone.
  void abandon(std::uint32_t lane);

  /// The calls below are for a lane in an open capture; all fail with kCaptureInvalidated if it is
  /// invalidated.
  Status add_node(std::uint32_t lane, std::span<const Touch> touches);
  Status record(std::uint32_t lane, CapturePoint& point);
  /// The lane (in a capture or not) is to depend on a captured event: it joins the capture.
  Status wait(std::uint32_t lane, const CapturePoint& point);

  /// Marks every open capture that answers `thread` and `mode` as one that forbids unsafe calls
  /// there. Is there one?
  bool forbids_unsafe_call(std::uint32_t thread, device::CaptureMode mode);
  /// A query of what a capture recorded: the capture, if it is still open, is invalidated. Always
  /// kCaptureUnsafe.
  Status query_captured(const CapturePoint& point);
  /// Work on the legacy default stream while some of `blocking` lanes capture: forbidden.
  Status refuse_implicit(std::span<const std::uint32_t> blocking);
  /// Invalidates the lane's capture for that reason.
  Status violate(std::uint32_t capture, const char* why);
  /// Any open capture in that set of lanes? (synchronize)
  std::uint32_t any_open() const;

 private:
  struct Member {
    std::uint32_t lane;
    std::uint64_t nodes = 0;
    Clock depends;
  };
  struct Capture {
    bool open = false;
    bool invalidated = false;
    device::CaptureMode mode = device::CaptureMode::kGlobal;
    std::uint32_t thread = 0;
    std::vector<Member> members;
    std::vector<Touch> touches;
  };

  Capture& at(std::uint32_t number) { return captures_[number - 1]; }
  const Capture& at(std::uint32_t number) const { return captures_[number - 1]; }
  std::uint32_t member_of(Capture& capture, std::uint32_t lane);
  void close(Capture& capture);

  FaultLog& faults_;
  std::vector<Capture> captures_;
  std::vector<std::uint32_t> lane_;  // by lane: number of its open capture, or 0
  std::uint32_t open_ = 0;
};

}  // namespace ashlar::spec
