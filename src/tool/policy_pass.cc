#include "src/tool/policy_pass.h"

#include <algorithm>
#include <array>
#include <memory>

#include "src/tool/policy.h"
#include "src/tool/world.h"

namespace ashlar::tool {
namespace {

constexpr std::array<const char*, kPolicyKinds> kNames{"ashlar", "pytorch", "pytorch-expandable",
                                                       "planned"};

/// The memory of an unlimited device, as a policy sees it: so much that reservations of its size never
/// fill, so little that hundreds of them fit into the address space.
Bytes plenty_for(const Trace& trace) {
  constexpr Bytes kMost{std::uint64_t{1} << 43};
  return 1_GiB + std::min(trace.peak_live, kMost) * 4;
}

struct Held {
  Address address;  // null: none, because of its size or of an out-of-memory
  Bytes size;
  std::uint32_t stream = 0;
};

}  // namespace

const char* policy_name(PolicyKind kind) { return kNames[static_cast<unsigned>(kind)]; }

std::optional<std::vector<PolicyKind>> parse_policies(std::string_view text) {
  std::vector<PolicyKind> kinds;
  if (text == "all") text = "ashlar,pytorch,pytorch-expandable,planned";
  for (bool is_last = false; !is_last;) {
    const std::size_t comma = text.find(',');
    is_last = comma == std::string_view::npos;
    const auto* const name = std::find(kNames.begin(), kNames.end(), text.substr(0, comma));
    if (name == kNames.end()) return std::nullopt;
    const auto kind = static_cast<PolicyKind>(name - kNames.begin());
    if (std::find(kinds.begin(), kinds.end(), kind) != kinds.end()) return std::nullopt;
    kinds.push_back(kind);
    if (!is_last) text.remove_prefix(comma + 1);
  }
  return kinds;
}

PolicyOutcome policy_pass(const Trace& trace, PolicyKind kind, Bytes capacity, bool wants_timeline,
                          bool stop_at_failure) {
  const std::unique_ptr<World> world = make_sim_world(capacity, 0);
  device::Device& device = world->device();
  const Bytes memory = capacity == Bytes::max() ? plenty_for(trace) : capacity;
  const std::unique_ptr<Policy> policy = kind == PolicyKind::kPytorch
                                             ? make_segment_policy(device)
                                             : make_expandable_policy(device, memory);
  std::vector<Held> held(trace.allocations);
  std::vector<std::uint64_t> reserved;
  if (wants_timeline) reserved.reserve(trace.events.size());
  Bytes live;
  Bytes peak_live;
  for (const TraceEvent& event : trace.events) {
    if (event.kind == TraceEvent::Kind::kAllocate && event.size > 0_B) {
      const Result<Address> address = policy->allocate(event.size, event.stream);
      if (address.is_ok()) {
        held[event.slot] = {address.value(), event.size, event.stream};
        live += event.size;
        peak_live = std::max(peak_live, live);
      } else if (stop_at_failure) {
        break;
      }
    } else if (event.kind == TraceEvent::Kind::kFree && !held[event.slot].address.is_null()) {
      policy->free(held[event.slot].address, held[event.slot].stream);
      live -= held[event.slot].size;
    }
    if (wants_timeline) reserved.push_back(policy->figures().reserved.count());
  }
  const PolicyFigures& figures = policy->figures();
  const DriverFigures driver = world->figures();
  PolicyOutcome outcome;
  outcome.name = policy_name(kind);
  outcome.peak_reserved = figures.reserved_peak;
  outcome.used = used_part(peak_live, figures.reserved_peak);
  outcome.driver_calls = driver.calls;
  outcome.driver_ns = driver.ns;
  outcome.waits = figures.waits;
  outcome.ooms = figures.ooms;
  outcome.timeline = decimated(reserved);
  return outcome;
}

std::vector<std::uint64_t> decimated(const std::vector<std::uint64_t>& values) {
  const std::size_t points = std::min(values.size(), kPolicyTimelineMax);
  std::vector<std::uint64_t> most(points);
  for (std::size_t i = 0; i < points; ++i) {
    const auto first = static_cast<std::ptrdiff_t>(i * values.size() / points);
    const auto end = static_cast<std::ptrdiff_t>((i + 1) * values.size() / points);
    most[i] = *std::max_element(values.begin() + first, values.begin() + end);
  }
  return most;
}

double used_part(Bytes peak_requested, Bytes peak_reserved) {
  return peak_reserved == 0_B ? 1.0
                              : static_cast<double>(peak_requested.count()) /
                                    static_cast<double>(peak_reserved.count());
}

}  // namespace ashlar::tool
