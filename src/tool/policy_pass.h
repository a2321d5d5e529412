// A policy pass: runs a trace once under a policy of another project (policy.h) on the simulated GPU. And
// the policies that `ashlar replay --policy` knows.
//
// Thread safety: pure functions; one pass to a thread.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "src/tool/policy_outcome.h"
#include "src/tool/trace.h"

namespace ashlar::tool {

/// In the order in which `all` shows them.
enum class PolicyKind : std::uint8_t { kAshlar, kPytorch, kExpandable, kPlanned };
inline constexpr unsigned kPolicyKinds = 4;

/// "ashlar", "pytorch", "pytorch-expandable", "planned". Static storage.
const char* policy_name(PolicyKind kind);
/// Names separated by commas, or "all". Nothing if one is unknown or comes twice.
std::optional<std::vector<PolicyKind>> parse_policies(std::string_view text);

/// Makes a policy pass on a device of that capacity; Bytes::max(): an unlimited one. With
/// `stop_at_failure` it ends at the first out-of-memory. The outcome has no capacity.
/// REQUIRES: kPytorch or kExpandable. Cost: about 100 ns an event.
PolicyOutcome policy_pass(const Trace& trace, PolicyKind kind, Bytes capacity,
                          bool wants_timeline = false, bool stop_at_failure = false);

/// The timeline of a PolicyOutcome: `values`, one for each event, divided into at most
/// kPolicyTimelineMax parts, and the largest of each.
std::vector<std::uint64_t> decimated(const std::vector<std::uint64_t>& values);

/// Of the bytes reserved, which part was requested when most was; 1 if nothing was reserved.
double used_part(Bytes peak_requested, Bytes peak_reserved);

}  // namespace ashlar::tool
