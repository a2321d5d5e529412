#include "props/on_gpu/canary_graphs.h"

#include <algorithm>
#include <utility>

namespace ashlar::props {
namespace {

constexpr DeviceId kDevice{0};
constexpr std::uint64_t kNoSplit = 1, kOverflow = 2;  // the op mempool-create's options

}  // namespace

CanaryGraphs::~CanaryGraphs() {
  destroy_dropped();
  for (const auto& [group, event] : launched_)
    static_cast<void>(world_.session().device().event_destroy(event));
}

// Captures.

void CanaryGraphs::begin(std::uint32_t s, device::CaptureMode mode) {
  CanaryWorld::StreamSlot& slot = world_.stream_at(s);
  const Pool* const routed = routed_to(s);
  if (open_capture() != 0 || routed == nullptr || !routed->may_have_graphs) return world_.skip();
  world_.announce_uses_of(s);
  if (!world_.judge("begin_capture", world_.allocator().begin_capture(slot.stream))) return;
  if (!world_.session().begin_capture(slot.stream, mode))
    return world_.fail("driver: a capture does not begin");
  ++captures_;
  origin_ = s;
  slot.is_capturing = true;
}

void CanaryGraphs::wait(std::uint32_t s, std::uint32_t before) {
  CanaryWorld::StreamSlot& slot = world_.stream_at(s);
  const CanaryWorld::StreamSlot& first = world_.stream_at(before);
  if (!first.is_capturing || s == before) return world_.skip();
  if (!slot.is_capturing) {
    world_.announce_uses_of(s);
    if (!world_.judge("begin_capture", world_.allocator().begin_capture(slot.stream))) return;
    members_.push_back(s);
  }
  world_.order(slot.stream, first.stream);
  slot.is_capturing = true;
}

CanaryGraphs::Graph CanaryGraphs::take_captured(cuda::GraphExec graph) {
  Graph made;
  made.graph = graph;
  made.capture = captures_;
  made.slots = std::exchange(slots_, {});
  for (CanaryBlock& each : world_.blocks()) {
    if (each.capture == captures_) {
      made.is_of_many = made.is_of_many || (!made.made.empty() && each.group != made.group);
      made.made.push_back(each);
      made.group = each.group;
      each.capture = 0;
      each.holds_words = false;  // the graph has not run
    }
    if (each.is_live) made.live_at_end.push_back(each.owner);
  }
  return made;
}

void CanaryGraphs::end(std::uint32_t s) {
  if (open_capture() == 0 || s != origin_) return world_.skip();
  CanaryWorld::StreamSlot& origin = world_.stream_at(s);
  for (const std::uint32_t member : members_)
    world_.order(origin.stream, world_.stream_at(member).stream);
  for (const std::uint32_t member : members_) world_.announce_uses_of(member);
  const cuda::GraphExec graph = world_.session().end_capture(origin.stream);
  if (graph == nullptr) world_.fail("driver: C9: a capture is lost");
  for (const std::uint32_t member : std::exchange(members_, {})) {
    CanaryWorld::StreamSlot& slot = world_.stream_at(member);
    slot.is_capturing = false;
    world_.judge("end_capture", world_.allocator().end_capture(slot.stream));
  }
  origin.is_capturing = false;
  world_.judge("end_capture", world_.allocator().end_capture(origin.stream));
  Graph made = take_captured(graph);
  origin_ = CanaryWorld::kNone;
  const auto of_group = std::find_if(std::begin(pools_), std::end(pools_), [&](const Pool& each) {
    return graph != nullptr && each.uses > 0 && each.group == made.group;
  });
  (made.is_of_many || of_group == std::end(pools_) ? dropped_ : of_group->graphs)
      .push_back(std::move(made));
}

std::optional<Canaries::Slot> CanaryGraphs::slot_in_graph() {
  const auto slot = world_.canaries().take_slot(true);
  if (slot) slots_.push_back(*slot);
  return slot;
}

// Memory pools.

const CanaryGraphs::Pool* CanaryGraphs::routed_to(std::uint32_t s) const {
  const Pool* last = nullptr;
  for (const Pool& each : pools_) {
    if (each.routed == s && (last == nullptr || each.routed_at > last->routed_at)) last = &each;
  }
  return last;
}

spec::GraphGroup CanaryGraphs::group_of(std::uint32_t s) const {
  const Pool* const routed = routed_to(s);
  return routed == nullptr ? 0 : routed->group;
}

void CanaryGraphs::count_use(Pool& pool) {
  if (pool.uses++ == 0) pool.group = ++groups_;
}

void CanaryGraphs::create(std::uint64_t name, std::uint64_t options) {
  if (open_capture() != 0) return world_.skip();
  const MemoryPoolOptions wanted{(options & kNoSplit) != 0, (options & kOverflow) != 0, nullptr};
  const Status made = world_.allocator().create_pool(kDevice, id_of(name), wanted);
  if (!world_.judge("create_pool", made)) return;
  count_use(pool(name));
  pool(name).may_have_graphs = !wanted.overflow;
}

void CanaryGraphs::route(std::uint64_t name, std::uint32_t s) {
  if (open_capture() != 0) return world_.skip();
  const StreamId wanted = world_.stream_at(s).stream.id;
  const Status begun = world_.allocator().begin_pool(
      kDevice, id_of(name), [wanted](const Stream& each) { return each.id == wanted; });
  if (!world_.judge("begin_pool", begun)) return;
  Pool& routed = pool(name);
  count_use(routed);
  routed.routed = s;
  routed.routed_at = ++routes_;
}

void CanaryGraphs::end_route(std::uint64_t name) {
  if (open_capture() != 0) return world_.skip();
  const Status ended = world_.allocator().end_pool(kDevice, id_of(name));
  if (world_.judge("end_pool", ended)) pool(name).routed = CanaryWorld::kNone;
}

void CanaryGraphs::retain(std::uint64_t name) {
  if (open_capture() != 0) return world_.skip();
  if (world_.judge("retain_pool", world_.allocator().retain_pool(kDevice, id_of(name))))
    count_use(pool(name));
}

void CanaryGraphs::release(std::uint64_t name) {
  Pool& released = pool(name);
  if (open_capture() != 0 || released.uses == 0) return world_.skip();
  const bool is_last = released.uses == 1 && released.routed == CanaryWorld::kNone;
  if (is_last && world_.planted() != Planted::kLostPool) {
    for (Graph& each : std::exchange(released.graphs, {})) dropped_.push_back(std::move(each));
  }
  const Status done = world_.allocator().release_pool(kDevice, id_of(name));
  if (!world_.judge("release_pool", done)) return;
  if (--released.uses == 0) released.may_have_graphs = true;
}

void CanaryGraphs::launch(std::uint64_t name, std::uint64_t n, std::uint32_t s) {
  Pool& of = pool(name);
  if (open_capture() != 0 || of.graphs.empty()) return world_.skip();
  const Graph& graph = of.graphs[of.graphs.size() - 1 - n % of.graphs.size()];
  const Stream on = world_.stream_at(s).stream;
  world_.order_behind_all(s);
  order_behind_launch(graph.group, s);
  world_.session().launch(graph.graph, on);
  cuda::CudaDevice& device = world_.session().device();
  EventHandle& behind = launched_[graph.group];
  if (behind == EventHandle{}) behind = device.event_create().value();
  static_cast<void>(device.event_record(behind, on.handle));
  note_launch(graph);
}

/// The words of what it made are there again; those of later owners of the same bytes of the pool are lost, lawfully.
void CanaryGraphs::note_launch(const Graph& graph) {
  world_.count_launch();
  for (CanaryBlock& each : world_.blocks()) {
    if (!each.is_live || each.group != graph.group) continue;
    for (const CanaryBlock& made : graph.made) {
      if (made.owner == each.owner) each.holds_words = true;
      const bool was_live = std::find(graph.live_at_end.begin(), graph.live_at_end.end(),
                                      each.owner) != graph.live_at_end.end();
      if (!was_live && made.overlaps(each)) each.holds_words = false;
    }
  }
}

void CanaryGraphs::order_behind_launch(spec::GraphGroup group, std::uint32_t s) {
  const auto last = launched_.find(group);
  if (group == 0 || last == launched_.end()) return;
  const Stream& stream = world_.stream_at(s).stream;
  if (!world_.session().device().stream_wait(stream.handle, last->second).is_ok())
    world_.fail("driver: a stream cannot wait for a launch");
}

void CanaryGraphs::release_all() {
  if (open_capture() != 0) end(origin_);
  for (std::uint64_t name = 0; name < kPools; ++name) {
    if (pool(name).routed != CanaryWorld::kNone) end_route(name);
    for (std::uint64_t uses = pool(name).uses; uses > 0; --uses) release(name);
    for (Graph& each : std::exchange(pool(name).graphs, {})) dropped_.push_back(std::move(each));
  }
}

void CanaryGraphs::destroy_dropped() {
  for (const Graph& each : std::exchange(dropped_, {})) {
    if (each.graph != nullptr) world_.session().destroy(each.graph);
    for (const Canaries::Slot slot : each.slots) world_.canaries().give_back(slot);
  }
}

}  // namespace ashlar::props
