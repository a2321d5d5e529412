#include "props/on_gpu/canary_ops.h"

#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include "props/on_gpu/canary_graphs.h"
#include "spec/gpu/sim_gpu.h"
#include "spec/ops/opcode_table.h"
#include "spec/ops/text.h"

namespace ashlar::props {
namespace {

namespace slot = spec::slot;
using spec::Op;

constexpr DeviceId kDevice{0};
constexpr std::uint32_t kNone = CanaryWorld::kNone;

Bytes limit_of(std::uint64_t bytes) {
  return bytes == 0 ? CanaryWorld::kLimitMax : std::min(Bytes{bytes}, CanaryWorld::kLimitMax);
}

/// What the file's first ops ask for. The rest begins at `*first`.
CanaryPlan plan_of(const spec::OpFile& file, std::size_t* first) {
  CanaryPlan plan;
  plan.limit = CanaryWorld::kLimitMax;
  for (*first = 0; *first < file.ops.size(); ++*first) {
    const Op& op = file.ops[*first];
    if (op.slot == slot::kConf) plan.conf = op.text;
    else if (op.slot == slot::kSeed) plan.seed = op.arg[0];
    else if (op.slot == slot::kDevice && op.arg[0] == 0) plan.limit = limit_of(op.arg[1]);
    else if (op.slot != slot::kObserve && op.slot != slot::kDevice && op.slot != slot::kNop) break;
  }
  return plan;
}

/// What the ops name beside the world's blocks and streams.
class OpRunner {
 public:
  explicit OpRunner(CanaryWorld& world) : world_(world), graphs_(world.graphs()) {}

  void run(const Op& op) {
    if (run_on_memory(op) || run_on_stream(op) || run_on_event(op) || run_on_pool(op) ||
        run_on_device(op))
      return;
    world_.skip();
  }
  void end() {
    for (const auto& [name, range] : pins_) world_.judge("unpin", world_.allocator().unpin(range));
    for (const auto& [name, event] : events_)
      static_cast<void>(world_.session().device().event_destroy(event));
  }

 private:
  // Each answers whether the op is of its group.
  bool run_on_memory(const Op& op);
  bool run_on_stream(const Op& op);
  bool run_on_event(const Op& op);
  bool run_on_pool(const Op& op);
  bool run_on_device(const Op& op);
  void pin(std::uint64_t name, std::uint32_t block);
  void unpin(std::uint64_t name);

  CanaryWorld& world_;
  CanaryGraphs& graphs_;
  std::map<std::uint64_t, EventHandle> events_;
  std::map<std::uint64_t, cache::PinnedRange> pins_;
};

void OpRunner::pin(std::uint64_t name, std::uint32_t block) {
  unpin(name);
  const auto pinned = world_.allocator().pin(world_.block_at(block).at);
  if (world_.judge("pin", pinned.status())) pins_[name] = pinned.value();
}

void OpRunner::unpin(std::uint64_t name) {
  const auto pinned = pins_.find(name);
  if (pinned == pins_.end()) return world_.skip();
  world_.judge("unpin", world_.allocator().unpin(pinned->second));
  pins_.erase(pinned);
}

bool OpRunner::run_on_memory(const Op& op) {
  if (op.slot == slot::kAlloc) {
    const std::uint32_t s = world_.stream(op.arg[2]);
    if (s == kNone || world_.block(op.arg[0]) != kNone) world_.skip();
    else world_.allocate(op.arg[0], Bytes{op.arg[1]}, s);
    return true;
  }
  if (op.slot == slot::kUnpin) return unpin(op.arg[0]), true;
  const bool is_kernel = op.slot == slot::kKernel;
  if (!is_kernel && op.slot != slot::kFree && op.slot != slot::kFreeOn && op.slot != slot::kUse &&
      op.slot != slot::kPin)
    return false;
  const std::uint32_t block = world_.block(op.arg[is_kernel ? 1 : 0]);
  if (block == kNone) return world_.skip(), true;
  if (op.slot == slot::kFree) return world_.free(block, kNone), true;
  if (op.slot == slot::kPin) return pin(op.arg[1], block), true;
  const std::uint32_t s = world_.stream(op.arg[is_kernel ? 0 : 1]);
  if (s == kNone) world_.skip();
  else if (op.slot == slot::kFreeOn) world_.free(block, s);
  else if (op.slot == slot::kUse) world_.announce(block, s);
  else world_.use(block, s, static_cast<spec::Access>(op.arg[2] % 3 + 1));
  return true;
}

bool OpRunner::run_on_stream(const Op& op) {
  const std::uint32_t s = world_.stream(op.arg[0]);
  switch (op.slot) {
    case slot::kStreamCreate:
      if (s != kNone || op.arg[1] != 0 || graphs_.open_capture() != 0) world_.skip();
      else world_.create_stream(op.arg[0]);
      return true;
    case slot::kStreamRetire:
    case slot::kStreamDestroy:
      if (s == kNone || graphs_.open_capture() != 0) world_.skip();
      else world_.end_stream(op.arg[0], s);
      return true;
    case slot::kStep:
      if (spec::SimGpu* const machine = world_.session().machine();
          machine != nullptr && s != kNone)
        machine->step(world_.stream_at(s).stream, op.arg[1]);
      return true;
    case slot::kCaptureBegin:
      if (s == kNone) world_.skip();
      else graphs_.begin(s, static_cast<device::CaptureMode>(op.arg[1] % 3));
      return true;
    case slot::kCaptureEnd:
      if (s == kNone) world_.skip();
      else graphs_.end(s);
      return true;
    case slot::kCaptureWait: {
      const std::uint32_t before = world_.stream(op.arg[1]);
      if (s == kNone || before == kNone) world_.skip();
      else graphs_.wait(s, before);
      return true;
    }
    default: return false;
  }
}

bool OpRunner::run_on_event(const Op& op) {
  if (op.slot != slot::kRecord && op.slot != slot::kWait && op.slot != slot::kSync) return false;
  cuda::CudaDevice& device = world_.session().device();
  const auto named = events_.find(op.arg[op.slot == slot::kWait ? 1 : 0]);
  const std::uint32_t s = world_.stream(op.arg[op.slot == slot::kWait ? 0 : 1]);
  const bool needs_stream = op.slot != slot::kSync;
  const bool needs_event = op.slot != slot::kRecord;
  if (graphs_.open_capture() != 0 || (needs_stream && s == kNone) ||
      (needs_event && named == events_.end()))
    return world_.skip(), true;
  if (op.slot == slot::kSync) {
    if (!device.event_synchronize(named->second, device::kWaitForever).is_ok())
      world_.fail("driver: an event's work ended with an error");
    return true;
  }
  const StreamHandle stream = world_.stream_at(s).stream.handle;
  if (op.slot == slot::kWait) {
    static_cast<void>(device.stream_wait(stream, named->second));
    return true;
  }
  EventHandle& event = events_[op.arg[0]];
  if (event == EventHandle{}) event = device.event_create().value();
  static_cast<void>(device.event_record(event, stream));
  return true;
}

bool OpRunner::run_on_pool(const Op& op) {
  switch (op.slot) {
    case slot::kMemoryPoolCreate: graphs_.create(op.arg[0], op.arg[2]); return true;
    case slot::kMemoryPoolBegin:
      if (const std::uint32_t s = world_.stream(op.arg[1]); s != kNone) graphs_.route(op.arg[0], s);
      else world_.skip();
      return true;
    case slot::kMemoryPoolEnd: graphs_.end_route(op.arg[0]); return true;
    case slot::kMemoryPoolRetain: graphs_.retain(op.arg[0]); return true;
    case slot::kMemoryPoolRelease: graphs_.release(op.arg[0]); return true;
    case slot::kMemoryPoolReplay:
    case slot::kMemoryPoolLaunch:
    case slot::kMemoryPoolLaunchRuns: {
      const bool is_newest = op.slot == slot::kMemoryPoolReplay;
      const std::uint32_t s = world_.stream(op.arg[is_newest ? 1 : 2]);
      if (s == kNone) world_.skip();
      else graphs_.launch(op.arg[0], is_newest ? 0 : op.arg[1], s);
      return true;
    }
    default: return false;
  }
}

bool OpRunner::run_on_device(const Op& op) {
  cache::CachingAllocator& allocator = world_.allocator();
  if (op.arg[0] != 0) return false;  // the others do not exist here
  switch (op.slot) {
    case slot::kTrim: world_.judge("trim", allocator.trim(kDevice)); return true;
    case slot::kProcess:
      world_.judge("process_events", cache::process_events(allocator, kDevice));
      return true;
    case slot::kMakeRoom:
      world_.judge("make_room", allocator.make_room(kDevice, Bytes{op.arg[1]}));
      return true;
    case slot::kLimit:
    case slot::kCapacity:
      world_.judge("set_memory_limit", allocator.set_memory_limit(kDevice, limit_of(op.arg[1])));
      return true;
    case slot::kDrain:
      if (graphs_.open_capture() != 0) world_.skip();
      else if (!world_.session().device().synchronize().is_ok())
        world_.fail("driver: the GPU's work ended with an error");
      return true;
    default: return false;
  }
}

}  // namespace

CanaryRun run_canaries(GpuSession& session, const spec::OpFile& file, Planted planted) {
  auto canaries = Canaries::create(session);
  if (!canaries.is_ok()) return {canaries.status().why(), {}};
  std::size_t first = 0;
  const CanaryPlan plan = plan_of(file, &first);
  CanaryWorld world(session, *canaries.value(), planted, plan);
  if (!world.failure().empty()) return {world.failure(), world.counts()};
  OpRunner runner(world);
  for (std::size_t i = first; i < file.ops.size() && world.failure().empty(); ++i) {
    world.begin_op(std::to_string(i + 2) + ": " + spec::print_op(file.ops[i]));
    runner.run(file.ops[i]);
    world.end_op();
  }
  runner.end();
  world.finish();
  return {world.failure(), world.counts()};
}

}  // namespace ashlar::props
