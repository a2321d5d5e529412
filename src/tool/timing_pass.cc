// The timing pass: the allocator alone, on a device that costs nothing.
#include <algorithm>
#include <chrono>
#include <memory>

#include <ashlar/cache/caching_allocator.h>

#include "src/tool/null_device.h"
#include "src/tool/replay.h"

namespace ashlar::tool {
namespace {

constexpr std::uint32_t kPassesMin = 5;
constexpr std::uint32_t kPassesMax = 101;
constexpr double kEnoughNs = 200e6;  // short traces get more passes, until this much was timed

// One event, ready to run: no ids to look up, no marks.
struct Step {
  Bytes size;  // of an allocation
  std::uint32_t slot;
  std::uint32_t stream;  // kFree for a free
};
constexpr std::uint32_t kFree = 0xffffffffu;

std::vector<Step> steps_of(const Trace& trace) {
  std::vector<Step> steps;
  steps.reserve(trace.events.size());
  for (const TraceEvent& event : trace.events) {
    if (event.kind == TraceEvent::Kind::kAllocate) steps.push_back({event.size, event.slot, event.stream});
    if (event.kind == TraceEvent::Kind::kFree) steps.push_back({{}, event.slot, kFree});
  }
  return steps;
}

double timed_pass(const std::vector<Step>& steps, const std::vector<Stream>& streams, CachingAllocator& allocator,
                  std::vector<Address>& addresses) {
  const auto start = std::chrono::steady_clock::now();
  for (const Step& step : steps) {
    if (step.stream == kFree) {
      static_cast<void>(allocator.free(addresses[step.slot]));
    } else {
      addresses[step.slot] = allocator.allocate(step.size, streams[step.stream]).value_or(Address{});
    }
  }
  const auto end = std::chrono::steady_clock::now();
  return std::chrono::duration<double, std::nano>(end - start).count();
}

}  // namespace

Timing timing_pass(const Trace& trace, const Config& config) {
  NullDevice null;
  Device* const device = &null;
  auto allocator = CachingAllocator::create(std::span<Device* const>(&device, 1), config);
  const std::vector<Step> steps = steps_of(trace);
  if (!allocator.is_ok() || steps.empty()) return {};

  std::vector<Stream> streams;
  for (std::size_t i = 0; i < trace.streams.size(); ++i) streams.push_back(null.stream(i));
  std::vector<bool> is_left(trace.allocations, true);
  for (const Step& step : steps) {
    if (step.stream == kFree) is_left[step.slot] = false;
  }
  std::vector<Address> addresses(trace.allocations);
  const auto free_the_rest = [&] {
    for (std::uint32_t slot = 0; slot < trace.allocations; ++slot) {
      if (is_left[slot]) static_cast<void>(allocator.value()->free(addresses[slot]));
    }
  };

  timed_pass(steps, streams, *allocator.value(), addresses);  // warms up
  free_the_rest();
  std::vector<double> passes;
  double total = 0;
  while (passes.size() < kPassesMin || (total < kEnoughNs && passes.size() < kPassesMax)) {
    passes.push_back(timed_pass(steps, streams, *allocator.value(), addresses));
    total += passes.back();
    free_the_rest();
  }
  const auto middle = passes.begin() + static_cast<std::ptrdiff_t>(passes.size() / 2);
  std::nth_element(passes.begin(), middle, passes.end());
  return {*middle / static_cast<double>(steps.size()), static_cast<std::uint32_t>(passes.size())};
}

}  // namespace ashlar::tool
