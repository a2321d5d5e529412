#include "src/tool/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include <ashlar/base/version.h>

#include "report_page.h"  // generated from report_page.html
#include "src/tool/files.h"
#include "src/tool/json_output.h"
#include "src/tool/machine_text.h"
#include "src/tool/page.h"
#include "src/tool/plan_report.h"
#include "src/tool/sizes.h"

namespace ashlar::tool {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kBucketsMax = 900;
constexpr std::uint64_t kRectanglesMax = 6'000;  // of all plans of a trace: a quarter of a megabyte
constexpr std::size_t kMarksMax = 2000;  // of more marks none is shown: a part would mislead

Json series_json(const std::vector<std::uint64_t>& values) {
  const std::size_t buckets = std::min(values.size(), kBucketsMax);
  Json low = Json::array();
  Json high = Json::array();
  for (std::size_t i = 0; i < buckets; ++i) {
    const auto first = values.begin() + static_cast<std::ptrdiff_t>(i * values.size() / buckets);
    const auto last =
        values.begin() + static_cast<std::ptrdiff_t>((i + 1) * values.size() / buckets);
    const auto [least, most] = std::minmax_element(first, last);
    low.push_back(*least);
    high.push_back(*most);
  }
  return {{"min", low}, {"max", high}};
}

Json timeline_json(const Timeline& timeline) {
  return {{"events", timeline.requested.size()},
          {"requested", series_json(timeline.requested)},
          {"allocated", series_json(timeline.allocated)},
          {"reserved", series_json(timeline.reserved)}};
}

Json map_json(const Account& account) {
  Json segments = Json::array();
  for (const cache::SnapshotSegment& segment : account.map.segments) {
    Json blocks = Json::array();
    for (std::uint32_t i = segment.block_first; i < segment.block_first + segment.block_count;
         ++i) {
      const cache::SnapshotBlock& block = account.map.blocks[i];
      blocks.push_back({(block.address - segment.base).count(), block.size.count(),
                        block.requested.count(), static_cast<unsigned>(block.state)});
    }
    segments.push_back({{"base", segment.base.value()},
                        {"size", segment.size.count()},
                        {"is_small", segment.pool == PoolId::kSmall},
                        {"blocks", std::move(blocks)}});
  }
  return {{"event", account.map_event}, {"segments", std::move(segments)}};
}

Json marks_json(const Trace& trace) {
  Json marks = Json::array();
  if (trace.marks.size() > kMarksMax) return marks;
  for (std::size_t i = 0; i < trace.events.size(); ++i) {
    if (trace.events[i].kind == TraceEvent::Kind::kMark)
      marks.push_back({i, trace.marks[trace.events[i].slot]});
  }
  return marks;
}

// The records of the map at every event, for page_map.js.
Json moments_json(const MapRecords& records) {
  return {{"first", records.first}, {"end", records.end}, {"records", base64(gzip(records.bytes))}};
}

// The picture of each stream's plan.
Json plans_json(const PlannedTrace& planned) {
  Json plans = Json::array();
  std::uint64_t left = kRectanglesMax;
  for (std::size_t s = 0; s < planned.plans.size(); ++s) {
    const std::uint64_t share = left / (planned.plans.size() - s);
    left -= share;
    plans.push_back(plan_picture(replay::problem_of(planned.recordings[s]), planned.plans[s],
                                 fmt::format("stream {}", planned.streams[s]), planned.seconds,
                                 share));
  }
  return plans;
}

std::string subtitle(std::size_t traces, const TraceRunOptions& options) {
  const char* device =
      options.backing == ReplayDevice::kHost ? "this computer's memory" : "the simulated device";
  std::string text = fmt::format("{} trace{} on {}", traces, traces == 1 ? "" : "s", device);
  if (options.find_capacity) {
    text += ", each at the smallest capacity it runs on";
  } else if (options.capacity != Bytes::max()) {
    text += fmt::format(" of {}", size_text(options.capacity));
  }
  if (options.lag > 0) text += fmt::format(", streams {} events behind", options.lag);
  if (!options.conf_text.empty()) text += fmt::format(", configured {}", options.conf_text);
  if (options.is_planned) text += ", planned";
  if (options.check) text += ", in lockstep with the model";
  return text;
}

}  // namespace

std::string report_entry(const TraceRunResult& result, const TraceRunOptions& options,
                         const Trace& trace) {
  Json entry = Json::parse(json_text({result}, options))[0];
  entry["timeline"] = timeline_json(result.account.timeline);
  entry["map"] = map_json(result.account);
  entry["moments"] = moments_json(result.account.records);
  entry["marks"] = marks_json(trace);
  for (std::size_t i = 0; i < result.policies.size(); ++i)
    entry["policies"][i]["timeline"] = result.policies[i].timeline;
  if (result.plans != nullptr && result.plans->trouble.empty())
    entry["plans"] = plans_json(*result.plans);
  return script_text(entry);
}

std::string report_page(const std::vector<std::string>& entries, const TraceRunOptions& options) {
  const Json made{{"version", ASHLAR_VERSION},
                  {"commit", ASHLAR_COMMIT},
                  {"processor", processor_text()},
                  {"system", system_text()},
                  {"date", date_text()}};
  std::string data = "{\"subtitle\":" + script_text(Json(subtitle(entries.size(), options))) +
                     ",\"made\":" + script_text(made) + ",\"traces\":[";
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (i > 0) data += ',';
    data += entries[i];
  }
  data += "]}";
  return page_with(kReportPage, data);
}

}  // namespace ashlar::tool
