#include "src/tool/trace_export.h"

#include <string_view>
#include <vector>

#include <ashlar/exchange/perfetto_trace.h>
#include <ashlar/exchange/rmm_log.h>
#include <ashlar/exchange/torch_snapshot.h>

#include "src/tool/trace_history.h"

namespace ashlar::tool {
namespace {

struct NamedTarget {
  std::string_view name;
  TraceTarget target;
};

constexpr NamedTarget kNames[] = {{"trace", TraceTarget::kTrace},
                                  {"pickle", TraceTarget::kPickle},
                                  {"json", TraceTarget::kSnapshotJson},
                                  {"rmm", TraceTarget::kRmmLog},
                                  {"perfetto", TraceTarget::kPerfetto}};

/// The first that matches counts.
constexpr NamedTarget kEndings[] = {
    {".trace", TraceTarget::kTrace},       {".pickle", TraceTarget::kPickle},
    {".pkl", TraceTarget::kPickle},        {".perfetto.json", TraceTarget::kPerfetto},
    {".json", TraceTarget::kSnapshotJson}, {".csv", TraceTarget::kRmmLog}};

Status write_recording(const cache::HistorySnapshot& record, const TraceStacks& stacks,
                       TraceTarget target, std::size_t events_max, std::string* text) {
  const exchange::ByteSink sink = exchange::string_sink(text);
  const std::vector<exchange::DeviceHistory> devices{{DeviceId{0}, &record}};
  if (target == TraceTarget::kRmmLog) return exchange::write_rmm_log(record, sink);
  exchange::TorchSnapshotOptions options;
  options.frames = [&stacks](cache::ContextId context) {
    return stacks.frames_of(static_cast<std::uint32_t>(context.value()));
  };
  options.window.events_max = events_max;
  if (target == TraceTarget::kPerfetto)
    return exchange::write_perfetto_trace(devices, options.frames, options.window, sink);
  options.format = target == TraceTarget::kPickle ? exchange::TorchFormat::kPickle
                                                  : exchange::TorchFormat::kJson;
  return exchange::write_torch_snapshot(devices, options, sink);
}

}  // namespace

std::optional<TraceTarget> target_named(const std::string& name) {
  for (const NamedTarget& named : kNames) {
    if (name == named.name) return named.target;
  }
  return std::nullopt;
}

std::optional<TraceTarget> target_by_ending(const std::string& path) {
  std::string_view plain = path;
  if (plain.ends_with(".gz")) plain.remove_suffix(3);
  for (const NamedTarget& ending : kEndings) {
    if (plain.ends_with(ending.name)) return ending.target;
  }
  return std::nullopt;
}

KnownFile known_file_of(TraceTarget target) {
  switch (target) {
    case TraceTarget::kTrace: return KnownFile::kTrace;
    case TraceTarget::kPickle: return KnownFile::kPickle;
    case TraceTarget::kRmmLog: return KnownFile::kRmmLog;
    case TraceTarget::kSnapshotJson: return KnownFile::kSnapshot;
    case TraceTarget::kPerfetto: break;
  }
  return KnownFile::kPerfetto;
}

std::optional<std::string> export_trace(const Trace& trace, TraceTarget target,
                                        std::size_t events_max, std::string* error) {
  if (target == TraceTarget::kTrace) return format_trace(trace);
  const auto record = history_of(trace, error);
  if (!record) return std::nullopt;
  std::string text;
  const Status written = write_recording(*record, trace.stacks, target, events_max, &text);
  if (written.is_ok()) return text;
  *error = written.why();
  return std::nullopt;
}

}  // namespace ashlar::tool
