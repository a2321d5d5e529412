#include <ashlar/exchange/perfetto_trace.h>

#include <ashlar/exchange/json_sink.h>
#include <ashlar/exchange/perfetto_process.h>

namespace ashlar::inline v0::exchange {
namespace {

Status prepare(const DeviceHistory& device, const ExportWindow& window, PerfettoDevice* out) {
  const cache::HistorySnapshot& record = *device.record;
  out->device = device.device;
  out->history = &record.history;
  out->events = events_in(record.history, window);
  return rewind_to(record, out->events.first, &out->at_start);
}

}  // namespace

Status write_perfetto_trace(const std::vector<DeviceHistory>& devices, const FrameSource& frames,
                            const ExportWindow& window, const ByteSink& sink) {
  if (const Status checked = check_devices(devices); !checked.is_ok()) return checked;
  std::vector<PerfettoDevice> prepared(devices.size());
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (const Status ready = prepare(devices[i], window, &prepared[i]); !ready.is_ok())
      return ready;
  }
  JsonSink json(sink);
  FrameCache cache(frames);
  json.begin_dict();
  json.text("displayTimeUnit", "ms");
  json.text("traceEvents");
  json.begin_list();
  for (const PerfettoDevice& device : prepared) PerfettoProcess(&json, &cache, device).write();
  json.end_list();
  json.end_dict();
  return json.finish();
}

}  // namespace ashlar::inline v0::exchange
