// Captures: streams whose work is recorded instead of run, with CUDA's modes and errors (D6).
//
// Purpose: the capture half of the machine, by lanes; CaptureCalls knows the handles.
// Thread safety: none (the machine's lock). Cost: O(1) while no capture is open; captures are rare.
// Invariants:
//   (1) A stream is in at most one open capture; a capture's first stream is the one it began on
//       (its origin).
//   (2) A member's clock says, for every member, up to which of its nodes the member's next node
//       depends.
//   (3) The body of a conditional is captured on a stream of its own, as a member that comes after what its
//       parent's stream has captured so far; all that the parent's stream captures later comes after the body,
//       however often it runs. A stream in a second body is another member.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "spec/gpu/captured_graph.h"
#include "spec/gpu/clocks.h"
#include "spec/gpu/fault.h"
#include "spec/gpu/sim_types.h"

namespace ashlar::spec {

/// The place in a capture that an event stands for.
struct CapturePoint {
  std::uint32_t capture = 0;  // its number, from 1; 0: none
  std::uint32_t body = 0;     // of that capture, from 1; 0: none
  Clock depends;              // by member
};

/// A node of a capture: the member stream that added it, and its place among that stream's nodes, from 1.
struct CaptureNode {
  std::uint32_t capture = 0;
  std::uint32_t member = 0;
  std::uint64_t place = 0;
};

class Captures {
 public:
  explicit Captures(FaultLog& faults) : faults_(faults) {}

  bool none_open() const { return open_ == 0; }
  /// The open capture (valid or invalidated) that the lane is in, from 1; 0 if none. O(1).
  std::uint32_t of_lane(std::uint32_t lane) const { return lane < lane_.size() ? lane_[lane] : 0; }
  device::CaptureStatus status(std::uint32_t lane) const;

  Status begin(std::uint32_t lane, std::uint32_t thread, device::CaptureMode mode);
  /// Ends the lane's capture and gives what its kernels touch to `graph`. An error ends it
  /// too, except an end on the wrong stream or thread, or before that of a body.
  Status end(std::uint32_t lane, std::uint32_t thread, CapturedGraph& graph);
  /// The lane begins to capture the body of a conditional, which is the next node of `parent`.
  /// kInvalidArgument if `parent` does not capture; kBusy if the lane does; kCaptureInvalidated.
  Status begin_body(std::uint32_t lane, std::uint32_t parent);
  /// Ends that; the capture of the parent goes on. kInvalidArgument if no body began on the lane; other errors
  /// as end().
  Status end_body(std::uint32_t lane);

  /// Ends the capture that the lane is in, if any: its device is gone.
  void abandon(std::uint32_t lane);

  // The order of nodes (HappensBefore).
  bool is_open(std::uint32_t capture) const { return capture != 0 && at(capture).open; }
  /// The node that the lane adds next. REQUIRES: the lane is in an open capture.
  CaptureNode next_node(std::uint32_t lane) const;
  /// Does that node come before the node that the lane adds next to the same, open capture?
  bool before_next_of(const CaptureNode& node, std::uint32_t lane) const;

  /// A mark of what the lane has captured so far.
  Result<device::CaptureMark> mark(std::uint32_t lane);
  /// Ok if the lane's next node comes after it; kNotReady.
  Status covers(std::uint32_t lane, device::CaptureMark mark) const;

  // The next three are for a lane in an open capture (wait: also for one outside). They fail with
  // kCaptureInvalidated if the capture is invalidated.
  Status add_node(std::uint32_t lane, std::span<const Touch> touches);
  Status record(std::uint32_t lane, CapturePoint& point);
  /// The lane waits for a captured event, and so joins the event's capture.
  Status wait(std::uint32_t lane, const CapturePoint& point);

  /// Does an open capture forbid that thread, in that capture mode, calls that are unsafe while
  /// capturing? Such captures are invalidated, and the call is reported under CUDA's name for it.
  bool forbids_unsafe_call(std::uint32_t thread, device::CaptureMode mode, const char* call);
  /// A query of an event that a capture recorded: invalidates the capture if it is still open.
  /// Always kCaptureUnsafe.
  Status query_captured(const CapturePoint& point);
  /// Work on the legacy default stream: refused while one of the `blocking` lanes captures.
  Status refuse_implicit(std::span<const std::uint32_t> blocking);
  /// Invalidates the capture for that reason.
  Status violate(std::uint32_t capture, const char* why);
  /// The number of an open capture; 0 if none is open.
  std::uint32_t any_open() const;

 private:
  struct Member {
    std::uint32_t lane;
    std::uint32_t body = 0;  // that it captures for, from 1; 0: the graph
    bool is_open = true;     // if not, its body has ended
    std::uint64_t nodes = 0;
    Clock depends;
  };
  struct Body {
    std::uint32_t origin;  // members
    std::uint32_t parent;
    bool is_open = true;
  };
  struct Mark {
    std::uint32_t body;
    Clock depends;  // the member's, when it was made
  };
  struct Capture {
    bool open = false;
    bool invalidated = false;
    device::CaptureMode mode = device::CaptureMode::kGlobal;
    std::uint32_t thread = 0;
    std::vector<Member> members;
    std::vector<Body> bodies;  // by their number minus 1
    CapturedGraph graph;
    std::vector<Mark> marks;  // by their number minus 1
  };

  Capture& at(std::uint32_t number) { return captures_[number - 1]; }
  const Capture& at(std::uint32_t number) const { return captures_[number - 1]; }
  /// The lane's open member; made, for that body, if it has none.
  std::uint32_t member_of(Capture& capture, std::uint32_t lane, std::uint32_t body = 0);
  /// REQUIRES: the lane is in the capture.
  std::uint32_t open_member(const Capture& capture, std::uint32_t lane) const;
  /// Has every member of the body, or with 0 of the graph, joined that origin?
  static bool is_joined(const Capture& capture, std::uint32_t origin, std::uint32_t body);
  Status refuse_unjoined();
  void close(Capture& capture);

  FaultLog& faults_;
  std::vector<Capture> captures_;
  std::vector<std::uint32_t> lane_;  // by lane: number of its open capture, or 0
  std::uint32_t open_ = 0;
};

}  // namespace ashlar::spec
