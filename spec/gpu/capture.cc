#include "spec/gpu/capture.h"

#include <algorithm>

namespace ashlar::spec {

device::CaptureStatus Captures::status(std::uint32_t lane) const {
  const std::uint32_t number = of_lane(lane);
  if (number == 0) return device::CaptureStatus::kNone;
  return at(number).invalidated ? device::CaptureStatus::kInvalidated
                                : device::CaptureStatus::kActive;
}

std::uint32_t Captures::member_of(Capture& capture, std::uint32_t lane) {
  for (std::uint32_t i = 0; i < capture.members.size(); ++i) {
    if (capture.members[i].lane == lane) return i;
  }
  capture.members.push_back(Member{lane, 0, {}});
  return static_cast<std::uint32_t>(capture.members.size() - 1);
}

CaptureNode Captures::next_node(std::uint32_t lane) const {
  const std::uint32_t number = of_lane(lane);
  const std::vector<Member>& members = at(number).members;
  const auto member = std::find_if(members.begin(), members.end(),
                                   [lane](const Member& each) { return each.lane == lane; });
  ASHLAR_ASSERT(member != members.end(),
                "capture(1): a lane is in a capture without being a member");
  return {number, static_cast<std::uint32_t>(member - members.begin()), member->nodes + 1};
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
  capture.marks.push_back(capture.members[member_of(capture, lane)].depends);
  return device::CaptureMark{number, capture.marks.size()};
}

Status Captures::covers(std::uint32_t lane, device::CaptureMark mark) const {
  const std::uint32_t number = of_lane(lane);
  ASHLAR_REQUIRE(number != 0 && number == mark.capture, Code::kNotReady,
                 "the stream is not in the mark's capture");
  const Capture& capture = at(number);
  ASHLAR_REQUIRE(!capture.invalidated, Code::kCaptureInvalidated, "the capture was invalidated");
  const Clock& marked = capture.marks[mark.node - 1];
  const Clock& depends = capture.members[next_node(lane).member].depends;
  for (std::uint32_t member = 0; member < marked.size(); ++member) {
    ASHLAR_REQUIRE(place_in(depends, member) >= marked[member], Code::kNotReady,
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
  if (lane_.size() <= lane) lane_.resize(lane + 1, 0);
  lane_[lane] = static_cast<std::uint32_t>(captures_.size());
  ++open_;
  return Status::ok();
}

void Captures::close(Capture& capture) {
  for (const Member& member : capture.members) lane_[member.lane] = 0;
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

Status Captures::end(std::uint32_t lane, std::uint32_t thread, std::vector<Touch>& touches) {
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
  const bool invalidated = capture.invalidated;
  bool joined = true;
  const Clock& origin = capture.members.front().depends;
  for (std::uint32_t i = 1; i < capture.members.size(); ++i) {
    if (place_in(origin, i) < capture.members[i].nodes) joined = false;
  }
  touches.swap(capture.touches);
  close(capture);
  if (invalidated) return Status{Code::kCaptureInvalidated, "the capture was invalidated"};
  if (!joined) {
    faults_.misuse(FaultKind::kCaptureUnsafe,
                   "D6: a forked stream was not joined (cudaErrorStreamCaptureUnjoined)");
    return Status{Code::kCaptureUnsafe, "a forked stream was not joined"};
  }
  return Status::ok();
}

Status Captures::add_node(std::uint32_t lane, std::span<const Touch> touches) {
  Capture& capture = at(of_lane(lane));
  ASHLAR_REQUIRE(!capture.invalidated, Code::kCaptureInvalidated, "the capture was invalidated");
  const std::uint32_t index = member_of(capture, lane);
  Member& member = capture.members[index];
  member.depends.extend(index + 1);
  member.depends[index] = ++member.nodes;
  capture.touches.insert(capture.touches.end(), touches.begin(), touches.end());
  return Status::ok();
}

Status Captures::record(std::uint32_t lane, CapturePoint& point) {
  const std::uint32_t number = of_lane(lane);
  Capture& capture = at(number);
  ASHLAR_REQUIRE(!capture.invalidated, Code::kCaptureInvalidated, "the capture was invalidated");
  point.capture = number;
  point.depends = capture.members[member_of(capture, lane)].depends;
  return Status::ok();
}

Status Captures::wait(std::uint32_t lane, const CapturePoint& point) {
  Capture& capture = at(point.capture);
  const std::uint32_t own = of_lane(lane);
  if (own != 0 && at(own).invalidated)
    return Status{Code::kCaptureInvalidated, "the capture was invalidated"};
  if (!capture.open) {
    if (own != 0)
      return violate(own,
                     "a wait for an event of an ended capture (cudaErrorStreamCaptureIsolation)");
    faults_.misuse(FaultKind::kCaptureUnsafe,
                   "D6: a wait for an event of an ended capture (cudaErrorCapturedEvent)");
    return Status{Code::kCaptureUnsafe, "an event of an ended capture"};
  }
  if (own != 0 && own != point.capture) {
    capture.invalidated = true;
    return violate(own, "two captures would merge (cudaErrorStreamCaptureMerge)");
  }
  ASHLAR_REQUIRE(!capture.invalidated, Code::kCaptureInvalidated, "the capture was invalidated");
  Member& member = capture.members[member_of(capture, lane)];
  if (lane_.size() <= lane) lane_.resize(lane + 1, 0);
  lane_[lane] = point.capture;
  member.depends.extend(point.depends.size());
  for (std::size_t i = 0; i < point.depends.size(); ++i) {
    member.depends[i] = std::max(member.depends[i], point.depends[i]);
  }
  return Status::ok();
}

// CUDA's rule of the thread's mode and the modes that captures were begun with
// (cudaThreadExchangeStreamCaptureMode).
bool Captures::forbids_unsafe_call(std::uint32_t thread, device::CaptureMode mode) {
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
    faults_.misuse(FaultKind::kCaptureUnsafe,
                   "D6: an unsafe call while capturing (cudaErrorStreamCaptureUnsupported)");
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
