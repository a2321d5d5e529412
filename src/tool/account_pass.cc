// The account pass of a trace run: runs the trace once, on a device whose use is measured.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

#include <ashlar/cache/caching_allocator.h>

#include "spec/ops/word_hash.h"
#include "src/tool/progress.h"
#include "src/tool/repeat.h"
#include "src/tool/trace_run.h"
#include "src/tool/world.h"

namespace ashlar::tool {
namespace {

constexpr unsigned kAll = static_cast<unsigned>(cache::StatPool::kAll);

struct Held {
  Address address;
  Bytes size;
  std::uint32_t stream = 0;
};

class AccountPass {
 public:
  AccountPass(const Trace& trace, const TraceRunOptions& options, World& world,
              cache::CachingAllocator& allocator)
      : trace_(trace),
        options_(options),
        world_(world),
        allocator_(allocator),
        held_(trace.allocations) {
    front_ = options.planned == nullptr
                 ? make_plain_front(allocator)
                 : make_planned_front(allocator, *options.planned, trace, world, options.check);
  }

  Account run(bool stop_at_failure) {
    find_peak_event();
    if (options_.wants_picture) begin_picture();
    Progress progress("running " + trace_.name, trace_.events.size());
    for (std::size_t i = 0; i < trace_.events.size(); ++i) {
      event_ = i;
      step(trace_.events[i]);
      if (account_.ooms > 0 && stop_at_failure) break;
      if (trace_.events[i].kind != TraceEvent::Kind::kMark) world_.tick();
      if (options_.wants_picture || trace_.streams.size() > 1) sample();
      if (options_.wants_picture) take_map();
      progress.at(i);
    }
    finish();
    return std::move(account_);
  }

 private:
  void step(const TraceEvent& event) {
    switch (event.kind) {
      case TraceEvent::Kind::kAllocate: allocate(event); break;
      case TraceEvent::Kind::kFree: free(event.slot); break;
      case TraceEvent::Kind::kMark:
        if (trace_.marks[event.slot] == kRepeatMark) end_step();
        break;
    }
  }

  /// A repetition begins, and the one before has ended.
  void end_step() {
    const std::uint64_t calls = driver_calls();
    if (is_in_step_) account_.steps.push_back({calls - calls_before_step_, addresses_.value()});
    is_in_step_ = true;
    calls_before_step_ = calls;
    addresses_ = {};
  }

  void allocate(const TraceEvent& event) {
    const Result<Stream> stream = world_.stream(event.stream);
    if (!stream.is_ok())
      return add_fault(fmt::format("stream {}: {}", event.stream, stream.status().why()));
    cache::OutOfMemory why;
    const Result<Address> address =
        front_->allocate(event.stream, event.size, stream.value(), &why);
    if (!address.is_ok()) {
      if (address.code() == Code::kOutOfMemory) {
        if (account_.ooms++ == 0 && account_.first_trouble.empty())
          account_.first_trouble = why.message();
      } else {
        add_fault(fmt::format("allocation {}: {}", event.slot, address.status().why()));
      }
      return;
    }
    if (address.value().is_null()) return;
    held_[event.slot] = {address.value(), event.size, event.stream};
    addresses_.add(address.value().value());
    live_ += event.size;
    account_.peak_requested = std::max(account_.peak_requested, live_);
    if (records_) records_->allocate(event_, event.slot, map_block(event, address.value()));
    world_.write(event.slot, address.value(), event.size, stream.value());
  }

  // A block within a plan's segment is as long as was asked; any other one is the allocator's.
  MapBlock map_block(const TraceEvent& event, Address address) const {
    MapBlock block{address, event.size, event.size, event.stream};
    if (options_.planned != nullptr) return block;
    const Result<cache::AllocationInfo> info = allocator_.info(address);
    if (info.is_ok()) block.size = info.value().size;
    return block;
  }

  void free(std::uint32_t slot) {
    Held& held = held_[slot];
    if (held.address.is_null()) return;
    world_.read(slot, held.address, held.size, world_.stream(held.stream).value());
    live_ -= held.size;
    if (records_) records_->free(event_, slot);
    if (const Status status = front_->free(held.stream, held.address); !status.is_ok()) {
      add_fault(fmt::format("free of allocation {}: {}", slot, status.why()));
    }
    held = {};
  }

  // Finds the first event at which the live bytes are the trace's peak.
  void find_peak_event() {
    std::vector<Bytes> sizes(trace_.allocations);
    Bytes live;
    for (std::size_t i = 0; i < trace_.events.size(); ++i) {
      const TraceEvent& event = trace_.events[i];
      if (event.kind == TraceEvent::Kind::kAllocate) {
        sizes[event.slot] = event.size;
        live += event.size;
        if (live == trace_.peak_live) {
          account_.map_event = i;
          return;
        }
      } else if (event.kind == TraceEvent::Kind::kFree) {
        live -= sizes[event.slot];
      }
    }
  }

  std::uint64_t driver_calls() const {
    std::uint64_t sum = 0;
    for (const std::uint64_t count : world_.figures().calls) sum += count;
    return sum;
  }

  void begin_picture() {
    records_.emplace(trace_.events.size(), account_.map_event, trace_.allocations);
    account_.timeline.requested.reserve(trace_.events.size());
    account_.timeline.allocated.reserve(trace_.events.size());
    account_.timeline.reserved.reserve(trace_.events.size());
  }

  // Exact peaks over several streams need a look after every event: the peak in a device's statistics
  // is the sum of its heaps' peaks (stats.h).
  void sample() {
    const Result<cache::DeviceStats> stats = allocator_.stats(DeviceId{0});
    if (!stats.is_ok()) return;
    const std::uint64_t allocated = stats.value().allocated_bytes[kAll].current;
    account_.peak_allocated = std::max(account_.peak_allocated, Bytes{allocated});
    if (!options_.wants_picture) return;
    account_.timeline.requested.push_back(live_.count());
    account_.timeline.allocated.push_back(allocated);
    account_.timeline.reserved.push_back(stats.value().reserved_bytes[kAll].current);
  }

  // Segments come and go by calls of the driver.
  void take_map() {
    if (!records_->has_map(event_)) return;  // the peak is
    const std::uint64_t calls = driver_calls();
    const bool is_peak = event_ == account_.map_event;
    if (calls == calls_at_map_ && !is_peak && !records_->is_first_map(event_)) return;
    calls_at_map_ = calls;
    cache::Snapshot map;
    if (const Status status = allocator_.snapshot(DeviceId{0}, &map); !status.is_ok())
      return add_fault(status.why());
    records_->hold(event_, map);
    if (is_peak) account_.map = std::move(map);
  }

  void finish() {
    const Result<cache::DeviceStats> stats = allocator_.stats(DeviceId{0});
    if (stats.is_ok()) {
      account_.waits = stats.value().waits;
      account_.peak_reserved = Bytes{stats.value().reserved_bytes[kAll].peak};
      if (account_.peak_allocated == 0_B)
        account_.peak_allocated = Bytes{stats.value().allocated_bytes[kAll].peak};
    }
    if (records_) account_.records = records_->take();
    account_.planned = front_->finish();
    if (!account_.planned.first_divergence.empty()) add_fault(account_.planned.first_divergence);
    const DriverFigures figures = world_.figures();
    account_.driver_calls = figures.calls;
    account_.driver_ns = figures.ns;
    account_.max_call_ns = figures.ns_max;
    account_.faults += world_.faults();
    if (account_.first_trouble.empty()) account_.first_trouble = world_.first_fault();
  }

  void add_fault(std::string text) {
    ++account_.faults;
    if (account_.first_trouble.empty()) account_.first_trouble = std::move(text);
  }

  const Trace& trace_;
  const TraceRunOptions& options_;
  World& world_;
  cache::CachingAllocator& allocator_;
  std::unique_ptr<Front> front_;
  std::vector<Held> held_;  // by slot
  Bytes live_;
  std::uint64_t event_ = 0;             ///< its index
  std::optional<MapRecorder> records_;  ///< with a picture only
  std::uint64_t calls_at_map_ = 0;      ///< of the driver, when the segments were last looked at
  bool is_in_step_ = false;
  std::uint64_t calls_before_step_ = 0;
  spec::WordHash addresses_;  ///< of the step so far
  Account account_;
};

}  // namespace

Account account_pass(const Trace& trace, const TraceRunOptions& options, Bytes capacity,
                     bool stop_at_failure) {
  const std::unique_ptr<World> world = options.backing == ReplayDevice::kHost
                                           ? make_host_world(capacity)
                                           : make_sim_world(capacity, options.lag);
  device::Device* const device = &world->device();
  auto allocator =
      cache::CachingAllocator::create(std::span<device::Device* const>(&device, 1), options.config);
  if (!allocator.is_ok()) {
    Account account;
    account.faults = 1;
    account.first_trouble = allocator.status().why();
    return account;
  }
  return AccountPass(trace, options, *world, *allocator.value()).run(stop_at_failure);
}

}  // namespace ashlar::tool
