#include "spec/lockstep/capture_caller.h"

#include <algorithm>

#include "spec/lockstep/pool_caller.h"

namespace ashlar::spec {

bool CaptureCaller::announce(std::uint32_t s, const Stream* joined) {
  const auto is_by = [s](const CacheWorld::Unannounced& each) { return each.stream == s; };
  for (const CacheWorld::Unannounced& use : take_if(world_.unannounced_, is_by))
    world_.announce(world_.pointers_[use.pointer], s);
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
}

void CaptureCaller::wait(std::uint32_t s, std::uint32_t before) {
  CacheWorld::StreamSlot& slot = world_.streams_[s];
  const CacheWorld::StreamSlot& first = world_.streams_[before];
  if (!first.is_capturing || slot.stream.device != first.stream.device) return world_.skip();
  if (slot.is_capturing) {
    if (slot.origin != first.origin) return world_.skip();
    static_cast<void>(order(slot.stream, first.stream));
    return;
  }
  if (!announce(s, &first.stream)) return;
  if (!order(slot.stream, first.stream)) return announce_end(s);
  slot.is_capturing = true;
  slot.origin = first.origin;
}

void CaptureCaller::end(std::uint32_t s) {
  CacheWorld::StreamSlot& slot = world_.streams_[s];
  if (!slot.is_capturing) return announce_end(s);
  if (slot.origin != s) return world_.skip();
  std::vector<std::uint32_t> members;
  for (std::uint32_t i = 0; i < world_.streams_.size(); ++i) {
    CacheWorld::StreamSlot& each = world_.streams_[i];
    if (i == s || !each.is_capturing || each.origin != s) continue;
    members.push_back(i);
    static_cast<void>(order(slot.stream, each.stream));
    for (const GraphGroup group : each.captured) {
      if (std::find(slot.captured.begin(), slot.captured.end(), group) == slot.captured.end())
        slot.captured.push_back(group);
    }
    each.captured.clear();
    each.is_capturing = false;
  }
  const Result<GraphId> graph = world_.gpu().end_capture(slot.stream);
  if (graph.is_ok()) PoolCaller(world_).keep_graph(graph.value(), s);
  slot.is_capturing = false;
  slot.captured.clear();
  for (const std::uint32_t member : members) announce_end(member);
  announce_end(s);
}

}  // namespace ashlar::spec
