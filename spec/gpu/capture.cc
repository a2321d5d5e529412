#include "spec/gpu/capture.h"

#include <algorithm>

namespace ashlar::spec {

device::CaptureStatus Captures::status(std::uint32_t lane) const {
  const std::uint32_t number = of_lane(lane);
  if (number == 0) return device::CaptureStatus::kNone;
  return at(number).invalidated ? device::CaptureStatus::kInvalidated
                                : device::CaptureStatus::kActive;
}

std::uint32_t Captures::member_of(Capture& capture, std::uint32_t lane, std::uint32_t body) {
  for (std::uint32_t i = 0; i < capture.members.size(); ++i) {
    if (capture.members[i].lane == lane && capture.members[i].is_open) return i;
  }
  capture.members.push_back(Member{lane, body, true, 0, {}});
  if (lane_.size() <= lane) lane_.resize(lane + 1, 0);
  return static_cast<std::uint32_t>(capture.members.size() - 1);
}

std::uint32_t Captures::open_member(const Capture& capture, std::uint32_t lane) const {
  const std::vector<Member>& members = capture.members;
  const auto member = std::find_if(members.begin(), members.end(), [lane](const Member& each) {
    return each.lane == lane && each.is_open;
  });
  ASHLAR_ASSERT(member != members.end(),
                "capture(1): a lane is in a capture without being a member");
  return static_cast<std::uint32_t>(member - members.begin());
}

CaptureNode Captures::next_node(std::uint32_t lane) const {
  const std::uint32_t number = of_lane(lane);
  const std::uint32_t member = open_member(at(number), lane);
  return {number, member, at(number).members[member].nodes + 1};
}

bool Captures::before_next_of(const CaptureNode& node, std::uint32_t lane) const {
  if (node.capture == 0 || of_lane(lane) != node.capture) return false;
  const std::vector<Member>& members = at(node.capture).members;
  return place_in(members[next_node(lane).member].depends, node.member) >= node.place;
}

Result<device::CaptureMark> Captures::mark(std::uint32_t lane) {
  const std::uint32_t number = of_lane(lane);
  ASHLAR_REQUIRE(number != 0, Code::kInvalidArgument, "the stream does not capture");
  Capture& capture = at(number);
  ASHLAR_REQUIRE(!capture.invalidated, Code::kCaptureInvalidated, "the capture was invalidated");
  const Member& member = capture.members[open_member(capture, lane)];
  capture.marks.push_back({member.body, member.depends});
  return device::CaptureMark{number, capture.marks.size()};
}

// To CUDA the body of a conditional is a graph of its own: a mark in one says nothing in another.
Status Captures::covers(std::uint32_t lane, device::CaptureMark mark) const {
  const std::uint32_t number = of_lane(lane);
  ASHLAR_REQUIRE(number != 0 && number == mark.capture, Code::kNotReady,
                 "the stream is not in the mark's capture");
  const Capture& capture = at(number);
  ASHLAR_REQUIRE(!capture.invalidated, Code::kCaptureInvalidated, "the capture was invalidated");
  const Mark& marked = capture.marks[mark.node - 1];
  const Member& member = capture.members[open_member(capture, lane)];
  ASHLAR_REQUIRE(member.body == marked.body, Code::kNotReady,
                 "the stream is not in the mark's graph");
  for (std::uint32_t i = 0; i < marked.depends.size(); ++i) {
    ASHLAR_REQUIRE(place_in(member.depends, i) >= marked.depends[i], Code::kNotReady,
                   "a node of the mark is not ordered before");
  }
  return Status::ok();
}

Status Captures::begin(std::uint32_t lane, std::uint32_t thread, device::CaptureMode mode) {
  ASHLAR_REQUIRE(of_lane(lane) == 0, Code::kBusy, "the stream captures already");
  Capture& made = captures_.emplace_back();
  made.open = true;
  made.mode = mode;
  made.thread = thread;
  member_of(made, lane);
  lane_[lane] = static_cast<std::uint32_t>(captures_.size());
  ++open_;
  return Status::ok();
}

void Captures::close(Capture& capture) {
  for (const Member& member : capture.members) {
    if (member.is_open) lane_[member.lane] = 0;
  }
  capture.open = false;
  --open_;
}

void Captures::abandon(std::uint32_t lane) {
  if (of_lane(lane) != 0) close(at(of_lane(lane)));
}

Status Captures::violate(std::uint32_t number, const char* why) {
  at(number).invalidated = true;
  faults_.misuse(FaultKind::kCaptureUnsafe, "D6: ", why);
  return Status{Code::kCaptureUnsafe, why};
}

bool Captures::is_joined(const Capture& capture, std::uint32_t origin, std::uint32_t body) {
  const Clock& joined = capture.members[origin].depends;
  for (std::uint32_t i = 0; i < capture.members.size(); ++i) {
    const Member& member = capture.members[i];
    if (member.body == body && place_in(joined, i) < member.nodes) return false;
  }
  return true;
}

Status Captures::refuse_unjoined() {
  faults_.misuse(FaultKind::kCaptureUnsafe,
                 "D6: a forked stream was not joined (cudaErrorStreamCaptureUnjoined)");
  return Status{Code::kCaptureUnsafe, "a forked stream was not joined"};
}

Status Captures::end(std::uint32_t lane, std::uint32_t thread, CapturedGraph& graph) {
  const std::uint32_t number = of_lane(lane);
  ASHLAR_REQUIRE(number != 0, Code::kInvalidArgument, "the stream does not capture");
  Capture& capture = at(number);
  if (capture.members.front().lane != lane) {
    return violate(
        number, "capture ended on a stream it did not begin on (cudaErrorStreamCaptureUnmatched)");
  }
  if (capture.mode != device::CaptureMode::kRelaxed && capture.thread != thread) {
    return violate(number, "capture ended by another thread (cudaErrorStreamCaptureWrongThread)");
  }
  if (std::any_of(capture.bodies.begin(), capture.bodies.end(),
                  [](const Body& body) { return body.is_open; }))
    return violate(number, "capture ended before that of a conditional's body");
  const bool invalidated = capture.invalidated;
  const bool joined = is_joined(capture, 0, 0);
  std::swap(graph, capture.graph);
  close(capture);
  if (invalidated) return Status{Code::kCaptureInvalidated, "the capture was invalidated"};
  return joined ? Status::ok() : refuse_unjoined();
}

Status Captures::begin_body(std::uint32_t lane, std::uint32_t parent) {
  const std::uint32_t number = of_lane(parent);
  ASHLAR_REQUIRE(number != 0, Code::kInvalidArgument, "the parent's stream does not capture");
  ASHLAR_REQUIRE(of_lane(lane) == 0, Code::kBusy, "the stream captures already");
  Capture& capture = at(number);
  ASHLAR_REQUIRE(!capture.invalidated, Code::kCaptureInvalidated, "the capture was invalidated");
  const std::uint32_t from = open_member(capture, parent);
  capture.graph.bodies.push_back({capture.members[from].body, capture.graph.touches.size()});
  const auto body = static_cast<std::uint32_t>(capture.graph.bodies.size());
  const std::uint32_t made = member_of(capture, lane, body);
  capture.bodies.push_back({made, from});
  capture.members[made].depends = capture.members[from].depends;
  // Of whatever the body captures.
  Clock& later = capture.members[from].depends;
  later.extend(made + 1);
  later[made] = ~std::uint64_t{0};
  lane_[lane] = number;
  return Status::ok();
}

Status Captures::end_body(std::uint32_t lane) {
  const std::uint32_t number = of_lane(lane);
  ASHLAR_REQUIRE(number != 0, Code::kInvalidArgument, "the stream does not capture");
  Capture& capture = at(number);
  const std::uint32_t origin = open_member(capture, lane);
  const std::uint32_t body = capture.members[origin].body;
  ASHLAR_REQUIRE(body != 0 && capture.bodies[body - 1].origin == origin, Code::kInvalidArgument,
                 "no body of a conditional began on the stream");
  for (const Body& each : capture.bodies) {
    if (each.is_open && capture.members[each.parent].body == body)
      return violate(number, "a conditional's body ended before one inside it");
  }
  const bool joined = is_joined(capture, origin, body);
  for (Member& member : capture.members) {
    if (member.body != body) continue;
    if (member.is_open) lane_[member.lane] = 0;
    member.is_open = false;
  }
  capture.bodies[body - 1].is_open = false;
  Clock& later = capture.members[capture.bodies[body - 1].parent].depends;
  const Clock& of_body = capture.members[origin].depends;
  later.extend(of_body.size());
  for (std::size_t i = 0; i < of_body.size(); ++i) later[i] = std::max(later[i], of_body[i]);
  if (capture.invalidated) return Status{Code::kCaptureInvalidated, "the capture was invalidated"};
  if (joined) return Status::ok();
  capture.invalidated = true;
  return refuse_unjoined();
}

Status Captures::add_node(std::uint32_t lane, std::span<const Touch> touches) {
  Capture& capture = at(of_lane(lane));
  ASHLAR_REQUIRE(!capture.invalidated, Code::kCaptureInvalidated, "the capture was invalidated");
  const std::uint32_t index = open_member(capture, lane);
  Member& member = capture.members[index];
  member.depends.extend(index + 1);
  member.depends[index] = ++member.nodes;
  CapturedGraph& graph = capture.graph;
  graph.touches.insert(graph.touches.end(), touches.begin(), touches.end());
  graph.body_of.resize(graph.touches.size(), member.body);
  return Status::ok();
}

Status Captures::record(std::uint32_t lane, CapturePoint& point) {
  const std::uint32_t number = of_lane(lane);
  Capture& capture = at(number);
  ASHLAR_REQUIRE(!capture.invalidated, Code::kCaptureInvalidated, "the capture was invalidated");
  const Member& member = capture.members[open_member(capture, lane)];
  point.capture = number;
  point.body = member.body;
  point.depends = member.depends;
  return Status::ok();
}

Status Captures::wait(std::uint32_t lane, const CapturePoint& point) {
  Capture& capture = at(point.capture);
  const std::uint32_t own = of_lane(lane);
  if (own != 0 && at(own).invalidated)
    return Status{Code::kCaptureInvalidated, "the capture was invalidated"};
  if (!capture.open || (point.body != 0 && !capture.bodies[point.body - 1].is_open)) {
    if (own != 0)
      return violate(own,
                     "a wait for an event of an ended capture (cudaErrorStreamCaptureIsolation)");
    faults_.misuse(FaultKind::kCaptureUnsafe,
                   "D6: a wait for an event of an ended capture (cudaErrorCapturedEvent)");
    return Status{Code::kCaptureUnsafe, "an event of an ended capture"};
  }
  const bool is_of_other_graph =
      own != point.capture || capture.members[open_member(capture, lane)].body != point.body;
  if (own != 0 && is_of_other_graph) {
    capture.invalidated = true;
    return violate(own, "two captures would merge (cudaErrorStreamCaptureMerge)");
  }
  ASHLAR_REQUIRE(!capture.invalidated, Code::kCaptureInvalidated, "the capture was invalidated");
  Member& member = capture.members[member_of(capture, lane, point.body)];
  lane_[lane] = point.capture;
  member.depends.extend(point.depends.size());
  for (std::size_t i = 0; i < point.depends.size(); ++i) {
    member.depends[i] = std::max(member.depends[i], point.depends[i]);
  }
  return Status::ok();
}

// CUDA's rule of the thread's mode and the modes that captures were begun with
// (cudaThreadExchangeStreamCaptureMode).
bool Captures::forbids_unsafe_call(std::uint32_t thread, device::CaptureMode mode,
                                   const char* call) {
  if (open_ == 0 || mode == device::CaptureMode::kRelaxed) return false;
  bool forbidden = false;
  for (Capture& capture : captures_) {
    if (!capture.open || capture.mode == device::CaptureMode::kRelaxed) continue;
    const bool own = capture.thread == thread;
    const bool other =
        mode == device::CaptureMode::kGlobal && capture.mode == device::CaptureMode::kGlobal;
    if (!own && !other) continue;
    capture.invalidated = true;
    forbidden = true;
  }
  if (forbidden) {
    faults_.misuse(FaultKind::kCaptureUnsafe, "D6: ", call,
                   " while capturing (cudaErrorStreamCaptureUnsupported)");
  }
  return forbidden;
}

Status Captures::query_captured(const CapturePoint& point) {
  if (at(point.capture).open) {
    return violate(point.capture, "a query of a captured event (cudaErrorCapturedEvent)");
  }
  faults_.misuse(FaultKind::kCaptureUnsafe,
                 "D6: a query of an event last recorded in a capture (cudaErrorCapturedEvent)");
  return Status{Code::kCaptureUnsafe, "an event last recorded in a capture"};
}

Status Captures::refuse_implicit(std::span<const std::uint32_t> blocking) {
  if (open_ == 0) return Status::ok();
  for (const std::uint32_t lane : blocking) {
    if (of_lane(lane) != 0) {
      return violate(of_lane(lane),
                     "work on the legacy stream while a blocking one captures "
                     "(cudaErrorStreamCaptureImplicit)");
    }
  }
  return Status::ok();
}

std::uint32_t Captures::any_open() const {
  for (std::uint32_t i = 0; i < captures_.size(); ++i) {
    if (captures_[i].open) return i + 1;
  }
  return 0;
}

}  // namespace ashlar::spec
