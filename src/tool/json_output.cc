#include "src/tool/json_output.h"

#include <algorithm>

#include <nlohmann/json.hpp>

namespace ashlar::tool {
namespace {

using Json = nlohmann::ordered_json;

Json calls_json(const std::array<std::uint64_t, device::kCallKinds>& counts) {
  Json calls = Json::object();
  for (unsigned kind = 0; kind < device::kCallKinds; ++kind)
    calls[device::call_name(static_cast<device::CallKind>(kind))] = counts[kind];
  return calls;
}

Json policies_json(const std::vector<PolicyOutcome>& policies) {
  Json all = Json::array();
  for (const PolicyOutcome& policy : policies) {
    all.push_back(
        {{"policy", policy.name},
         {"peak_reserved_bytes", policy.peak_reserved.count()},
         {"used", policy.used},
         {"smallest_capacity_bytes", policy.capacity ? Json(policy.capacity->count()) : Json()},
         {"calls", policy.calls()},
         {"driver_calls", calls_json(policy.driver_calls)},
         {"driver_us", static_cast<double>(policy.driver_ns) / 1000},
         {"waits", policy.waits},
         {"ooms", policy.ooms}});
  }
  return all;
}

Json planned_json(const PlannedOutcome& planned, const TraceRunResult& result,
                  const TraceRunOptions& options) {
  const PlannedFigures& figures = result.account.planned;
  Json json{{"managed", planned.managed},
            {"plan_peak_bytes", planned.peak.count()},
            {"plan_lower_bound_bytes", planned.lower_bound.count()},
            {"plan_seconds", planned.plan_seconds},
            {"alter", options.alter},
            {"seed", options.seed},
            {"altered_events", planned.altered},
            {"fallbacks", figures.counts.fallbacks()}};
  for (const replay::ReplayCounter& counter : replay::kReplayCounters)
    json[counter.name] = figures.counts.*counter.count;
  json["checked_steps"] = figures.steps;
  json["first_difference"] =
      planned.first_difference.empty() ? Json() : Json(planned.first_difference);
  return json;
}

Json result_json(const TraceRunResult& result, const TraceRunOptions& options) {
  const Account& account = result.account;
  Json json{{"trace", result.trace},
            {"file", result.file},
            {"events", result.events},
            {"allocations", result.allocations},
            {"ns_per_event", result.timing_passes == 0 ? Json() : Json(result.ns_per_event)},
            {"timing_passes", result.timing_passes},
            {"peak_requested_bytes", account.peak_requested.count()},
            {"peak_allocated_bytes", account.peak_allocated.count()},
            {"peak_reserved_bytes", account.peak_reserved.count()}};
  json["stated_peak_live_bytes"] =
      result.stated_peak_live ? Json(result.stated_peak_live->count()) : Json();
  json["capacity_bytes"] = result.capacity == Bytes::max() ? Json() : Json(result.capacity.count());
  json["utilisation"] = result.utilisation();
  json["ooms"] = result.ooms();
  json["waits"] = account.waits;
  const auto calls_of = [&account](device::CallKind kind) {
    return account.driver_calls[static_cast<unsigned>(kind)];
  };
  // Each page that was mapped and not created for it had served another address.
  json["moved_pages"] =
      calls_of(device::CallKind::kPageMap) -
      std::min(calls_of(device::CallKind::kPageMap), calls_of(device::CallKind::kPageCreate));
  json["settled"] = is_settled(account);
  json["address_period"] = address_period(account);
  json["driver_calls"] = calls_json(account.driver_calls);
  json["driver_us"] = static_cast<double>(account.driver_ns) / 1000;
  json["max_call_us"] = static_cast<double>(account.max_call_ns) / 1000;
  json["divergences"] = result.divergences();
  json["device"] = options.backing == ReplayDevice::kHost ? "host" : "sim";
  json["lag"] = options.lag;
  json["conf"] = options.conf_text;
  if (options.perturb)
    json["perturb"] = *options.perturb == Perturb::kSizes ? "sizes" : "allocations";
  if (result.planned) json["planned"] = planned_json(*result.planned, result, options);
  if (!result.policies.empty()) json["policies"] = policies_json(result.policies);
  if (!account.first_trouble.empty()) json["first_trouble"] = account.first_trouble;
  if (result.check) {
    Json checks = Json::object();
    for (const auto& [clause, count] : result.check->checks) checks[clause] = count;
    json["checks"] = checks;
    json["checked_steps"] = result.check->steps;
    json["skipped_steps"] = result.check->skipped_steps;
    json["check_passes"] = 2;  // the second pass checks C10
    json["walk_period"] = result.check->walk_period;
    if (!result.check->first_divergence.empty())
      json["first_divergence"] = result.check->first_divergence;
  }
  return json;
}

}  // namespace

std::string json_text(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string json_text(const std::vector<TraceRunResult>& results, const TraceRunOptions& options) {
  Json all = Json::array();
  for (const TraceRunResult& result : results) all.push_back(result_json(result, options));
  return json_text(all);
}

}  // namespace ashlar::tool
