#include <ashlar/exchange/torch_snapshot.h>

#include <algorithm>

#include <ashlar/exchange/json_sink.h>
#include <ashlar/exchange/pickle_sink.h>
#include <ashlar/exchange/torch_document.h>

namespace ashlar::inline v0::exchange {
namespace {

/// Above, not each whole number is one of JavaScript's.
constexpr std::uint64_t kNumberMax = std::uint64_t{1} << 53;

bool is_small(Address address, Bytes size) noexcept {
  return address.value() < kNumberMax && size.count() < kNumberMax - address.value();
}

// A size that nobody was given, of an out-of-memory or a snapshot, is only shown.
bool is_memory(cache::HistoryAction action) noexcept {
  return action != cache::HistoryAction::kOutOfMemory &&
         action != cache::HistoryAction::kSnapshot && action != cache::HistoryAction::kUserDefined;
}

Status check_numbers(const cache::HistorySnapshot& record) {
  bool is_ok = true;
  for (const cache::SnapshotSegment& segment : record.snapshot.segments)
    is_ok = is_ok && is_small(segment.base, segment.size);
  for (const cache::SnapshotBlock& block : record.snapshot.blocks)
    is_ok = is_ok && block.requested.count() < kNumberMax;
  for (const cache::HistoryEvent& event : record.history.events)
    is_ok = is_ok && (!is_memory(event.action) || is_small(event.address, event.size));
  ASHLAR_REQUIRE(is_ok, Code::kInvalidArgument, "an address or size is not below 2^53");
  return Status::ok();
}

/// Undoes the events behind the window, and then those in it, as a viewer will.
Status prepare(const DeviceHistory& device, const ExportWindow& window, TorchDevice* out) {
  const cache::HistorySnapshot& record = *device.record;
  if (const Status fits = check_numbers(record); !fits.is_ok()) return fits;
  out->device = device.device;
  out->history = &record.history;
  out->events = events_in(record.history, window);
  const Status back = rewind_to(record, out->events.last, &out->at_end);
  if (!back.is_ok()) return back;
  Rewind state = out->at_end;
  return state.undo(record.history, out->events.first, out->events.last);
}

Status write(DocumentSink* sink, const TorchSnapshotOptions& options,
             const std::vector<TorchDevice>& devices) {
  TorchDocument(sink, options).write(devices);
  return sink->finish();
}

}  // namespace

Status write_torch_snapshot(const std::vector<DeviceHistory>& devices,
                            const TorchSnapshotOptions& options, const ByteSink& sink) {
  if (const Status checked = check_devices(devices); !checked.is_ok()) return checked;
  for (const ExternalAnnotation& annotation : options.annotations) {
    const std::int32_t number = annotation.device.value();
    ASHLAR_REQUIRE(number >= 0 && number < kDevicesMax, Code::kInvalidArgument,
                   "an annotation's device is out of range");
  }
  std::vector<TorchDevice> prepared(devices.size());
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const Status ready = prepare(devices[i], options.window, &prepared[i]);
    if (!ready.is_ok()) return ready;
  }
  std::sort(prepared.begin(), prepared.end(),
            [](const TorchDevice& a, const TorchDevice& b) { return a.device < b.device; });
  if (options.format == TorchFormat::kJson) {
    JsonSink json(sink);
    return write(&json, options, prepared);
  }
  PickleSink pickle(sink);
  return write(&pickle, options, prepared);
}

}  // namespace ashlar::inline v0::exchange
