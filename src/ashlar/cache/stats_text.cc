// The statistics as a table and as JSON. Keeps row DEV-16's names.
//
// Thread safety: pure functions. They allocate strings.
#include <ashlar/cache/stats_text.h>

#include <cstdio>
#include <ostream>

namespace ashlar::inline v0::cache {
namespace {

constexpr std::array<const char*, kStatFigures> kFigureNames{
    "allocations",     "segments",       "active",       "inactive_splits",
    "allocated_bytes", "reserved_bytes", "active_bytes", "inactive_split_bytes",
    "requested_bytes"};
constexpr std::array<const char*, kStatPools> kPoolNames{"all", "small", "large"};

struct OversizeFigure {
  const char* name;
  Stat DeviceStats::*stat;
};
constexpr OversizeFigure kOversizeFigures[] = {
    {"oversize_allocations", &DeviceStats::oversize_allocations},
    {"oversize_segments", &DeviceStats::oversize_segments}};

struct Counter {
  const char* name;
  std::uint64_t DeviceStats::*count;
};
constexpr Counter kCounters[] = {{"alloc_retries", &DeviceStats::alloc_retries},
                                 {"ooms", &DeviceStats::ooms},
                                 {"waits", &DeviceStats::waits},
                                 {"steals", &DeviceStats::steals},
                                 {"streams", &DeviceStats::streams}};

const char* name_of_call(unsigned kind) {
  return device::call_name(static_cast<device::CallKind>(kind));
}

void add_line(std::string& text, const char* name, const Stat& stat) {
  char line[160];
  std::snprintf(line, sizeof line, "%-20s%15llu%15llu%15llu%15llu\n", name,
                static_cast<unsigned long long>(stat.current),
                static_cast<unsigned long long>(stat.peak),
                static_cast<unsigned long long>(stat.increased),
                static_cast<unsigned long long>(stat.decreased));
  text += line;
}
void add_line(std::string& text, const char* name, std::uint64_t count) {
  char line[80];
  std::snprintf(line, sizeof line, "%-20s%15llu\n", name, static_cast<unsigned long long>(count));
  text += line;
}

/// `"name":`, after a comma unless it is the first of its object.
void add_key(std::string& json, const char* name) {
  if (json.back() != '{') json += ',';
  json += '"';
  json += name;
  json += "\":";
}
void add_stat(std::string& json, const char* name, const Stat& stat) {
  add_key(json, name);
  json += "{\"current\":" + std::to_string(stat.current) +
          ",\"peak\":" + std::to_string(stat.peak) +
          ",\"increased\":" + std::to_string(stat.increased) +
          ",\"decreased\":" + std::to_string(stat.decreased) + "}";
}
void add_count(std::string& json, const char* name, std::uint64_t count) {
  add_key(json, name);
  json += std::to_string(count);
}

}  // namespace

const char* figure_name(StatFigure figure) noexcept {
  const auto index = static_cast<unsigned>(figure);
  return index < kStatFigures ? kFigureNames[index] : "unknown";
}

std::string to_text(const DeviceStats& stats) {
  std::string text;
  char head[96];
  std::snprintf(head, sizeof head, "%-20s%15s%15s%15s%15s\n", "", "current", "peak", "increased",
                "decreased");
  text += head;
  for (unsigned figure = 0; figure < kStatFigures; ++figure) {
    const StatByPool& by_pool = stats[static_cast<StatFigure>(figure)];
    add_line(text, kFigureNames[figure], by_pool[StatPool::kAll]);
    add_line(text, "  small pools", by_pool[StatPool::kSmall]);
    add_line(text, "  large pools", by_pool[StatPool::kLarge]);
  }
  for (const OversizeFigure& each : kOversizeFigures) add_line(text, each.name, stats.*each.stat);
  for (const Counter& each : kCounters) add_line(text, each.name, stats.*each.count);
  text += "device calls\n";
  for (unsigned kind = 0; kind < device::kCallKinds; ++kind) {
    if (stats.device_calls[kind] == 0) continue;
    add_line(text, (std::string("  ") + name_of_call(kind)).c_str(), stats.device_calls[kind]);
  }
  return text;
}

std::string to_json(const DeviceStats& stats) {
  std::string json = "{";
  for (unsigned figure = 0; figure < kStatFigures; ++figure) {
    const StatByPool& by_pool = stats[static_cast<StatFigure>(figure)];
    add_key(json, kFigureNames[figure]);
    json += '{';
    for (unsigned pool = 0; pool < kStatPools; ++pool)
      add_stat(json, kPoolNames[pool], by_pool[pool]);
    json += '}';
  }
  for (const OversizeFigure& each : kOversizeFigures) add_stat(json, each.name, stats.*each.stat);
  for (const Counter& each : kCounters) add_count(json, each.name, stats.*each.count);
  add_key(json, "device_calls");
  json += '{';
  for (unsigned kind = 0; kind < device::kCallKinds; ++kind)
    add_count(json, name_of_call(kind), stats.device_calls[kind]);
  json += "}}";
  return json;
}

std::ostream& operator<<(std::ostream& out, const DeviceStats& stats) {
  return out << to_text(stats);
}

}  // namespace ashlar::inline v0::cache
