#include "spec/lockstep/capture_caller.h"

#include <algorithm>

#include "spec/lockstep/pool_caller.h"
#include "spec/model/body_answers.h"

namespace ashlar::spec {
namespace {

void add_group(std::vector<GraphGroup>* groups, GraphGroup group) {
  if (std::find(groups->begin(), groups->end(), group) == groups->end()) groups->push_back(group);
}

}  // namespace

void CaptureCaller::announce_uses(std::uint32_t s) {
  const auto is_by = [s](const CacheWorld::Unannounced& each) { return each.stream == s; };
  for (const CacheWorld::Unannounced& use : take_if(world_.unannounced_, is_by))
    world_.announce(world_.pointers_[use.pointer], s);
}

bool CaptureCaller::announce(std::uint32_t s, const Stream* joined) {
  announce_uses(s);
  const Stream& stream = world_.stream_at(s);
  Status begun;
  until_host_has_memory(world_.model(), [&] {
    world_.model().begin(stream.device);
    begun = world_.answered(world_.subject().begin_capture(stream));
    world_.model().judge_begin_capture(stream, begun, joined);
    return begun.code();
  });
  return begun.is_ok();
}

void CaptureCaller::announce_end(std::uint32_t s) {
  const Stream& stream = world_.stream_at(s);
  world_.model().begin(stream.device);
  world_.model().judge_end_capture(stream, world_.answered(world_.subject().end_capture(stream)));
}

bool CaptureCaller::order(const Stream& after, const Stream& before) {
  const CallerScope callers_own;
  device::Device& device = world_.gpu().device(before.device);
  const Result<EventHandle> event = device.event_create();
  if (!event.is_ok()) return false;
  const bool is_ordered = device.event_record(event.value(), before.handle).is_ok() &&
                          device.stream_wait(after.handle, event.value()).is_ok();
  static_cast<void>(device.event_destroy(event.value()));
  return is_ordered;
}

void CaptureCaller::begin(std::uint32_t s, device::CaptureMode mode) {
  CacheWorld::StreamSlot& slot = world_.streams_[s];
  if (!announce(s, nullptr) || slot.is_capturing) return;
  if (!world_.gpu().begin_capture(slot.stream, mode).is_ok()) return announce_end(s);
  slot.is_capturing = true;
  slot.origin = s;
  slot.before_tag = world_.next_tag_ - 1;
}

void CaptureCaller::begin_body(std::uint32_t s, std::uint32_t parent) {
  CacheWorld::StreamSlot& slot = world_.streams_[s];
  CacheWorld::StreamSlot& outer = world_.streams_[parent];
  const bool is_elsewhere =
      slot.bodies_of != kNoStream && slot.bodies_of != world_.outermost(parent);
  if (outer.is_capturing && is_elsewhere) return world_.skip();
  announce_uses(s);
  Status begun;
  until_host_has_memory(world_.model(), [&] {
    world_.model().begin(outer.stream.device);
    begun = world_.answered(world_.subject().begin_body(slot.stream, outer.stream));
    BodyAnswers(world_.model()).judge_begin(slot.stream, outer.stream, begun);
    return begun.code();
  });
  if (!begun.is_ok() || !outer.is_capturing || slot.is_capturing || outer.has_body) return;
  if (!world_.gpu().begin_body(slot.stream, outer.stream).is_ok()) return announce_end(s);
  slot.is_capturing = true;
  slot.origin = outer.origin;
  slot.parent = parent;
  slot.bodies_of = world_.outermost(parent);
  outer.has_body = true;
}

void CaptureCaller::wait(std::uint32_t s, std::uint32_t before) {
  CacheWorld::StreamSlot& slot = world_.streams_[s];
  const CacheWorld::StreamSlot& first = world_.streams_[before];
  if (!first.is_capturing || slot.stream.device != first.stream.device) return world_.skip();
  const bool is_of_body = slot.parent != kNoStream || first.parent != kNoStream;
  if (is_of_body || slot.has_body || first.has_body) return world_.skip();
  if (slot.is_capturing) {
    if (slot.origin != first.origin) return world_.skip();
    static_cast<void>(order(slot.stream, first.stream));
    return;
  }
  if (slot.bodies_of != kNoStream && world_.streams_[slot.bodies_of].origin == first.origin)
    return world_.skip();
  if (!announce(s, &first.stream)) return;
  if (!order(slot.stream, first.stream)) return announce_end(s);
  slot.is_capturing = true;
  slot.origin = first.origin;
}

void CaptureCaller::end_body(std::uint32_t s) {
  CacheWorld::StreamSlot& slot = world_.streams_[s];
  CacheWorld::StreamSlot& outer = world_.streams_[slot.parent];
  announce_uses(s);
  static_cast<void>(world_.gpu().end_body(slot.stream));
  announce_end(s);
  for (const GraphGroup group : slot.captured) add_group(&outer.captured, group);
  for (const AllocationTag tag : slot.made) world_.gpu().on_pass(tag, outer.stream);
  if (outer.parent != kNoStream)
    outer.made.insert(outer.made.end(), slot.made.begin(), slot.made.end());
  slot.captured.clear();
  slot.made.clear();
  slot.is_capturing = false;
  slot.parent = kNoStream;
  outer.has_body = false;
}

void CaptureCaller::end_whole(std::uint32_t s) {
  for (bool goes_on = true; goes_on;) {
    goes_on = false;
    for (std::uint32_t i = 0; i < world_.streams_.size(); ++i) {
      const CacheWorld::StreamSlot& each = world_.streams_[i];
      if (each.origin != s || each.parent == kNoStream || each.has_body) continue;
      end_body(i);
      goes_on = true;
    }
  }
  end(s);
}

void CaptureCaller::end(std::uint32_t s) {
  CacheWorld::StreamSlot& slot = world_.streams_[s];
  if (!slot.is_capturing || slot.has_body) return announce_end(s);
  if (slot.parent != kNoStream) return end_body(s);
  const bool any_body = std::any_of(world_.streams_.begin(), world_.streams_.end(),
                                    [s](const CacheWorld::StreamSlot& each) {
                                      return each.is_capturing && each.origin == s && each.has_body;
                                    });
  if (slot.origin != s || any_body) return world_.skip();
  std::vector<std::uint32_t> members;
  for (std::uint32_t i = 0; i < world_.streams_.size(); ++i) {
    CacheWorld::StreamSlot& each = world_.streams_[i];
    if (i == s || !each.is_capturing || each.origin != s) continue;
    members.push_back(i);
    static_cast<void>(order(slot.stream, each.stream));
    for (const GraphGroup group : each.captured) add_group(&slot.captured, group);
    each.captured.clear();
    each.is_capturing = false;
  }
  for (CacheWorld::StreamSlot& each : world_.streams_) {
    if (each.bodies_of != kNoStream && world_.streams_[each.bodies_of].origin == s)
      each.bodies_of = kNoStream;
  }
  const Result<GraphId> graph = world_.gpu().end_capture(slot.stream);
  if (graph.is_ok()) PoolCaller(world_).keep_graph(graph.value(), s);
  slot.is_capturing = false;
  slot.captured.clear();
  for (const std::uint32_t member : members) announce_end(member);
  announce_end(s);
}

}  // namespace ashlar::spec
