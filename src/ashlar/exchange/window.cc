#include <ashlar/exchange/window.h>

#include <algorithm>

namespace ashlar::inline v0::exchange {

// In a record that is not an allocator's own, times may go back; the order of events is that of the history.
WindowedEvents events_in(const cache::History& history, const ExportWindow& window) noexcept {
  const auto& events = history.events;
  const auto begin = std::find_if(
      events.begin(), events.end(),
      [&window](const cache::HistoryEvent& event) { return event.time_us >= window.from_us; });
  WindowedEvents part;
  part.first = static_cast<std::size_t>(begin - events.begin());
  part.last = events.size();
  while (part.last > part.first && events[part.last - 1].time_us >= window.to_us) --part.last;
  const std::size_t count = part.last - part.first;
  part.over_max = count - std::min(count, window.events_max);
  part.first += part.over_max;
  return part;
}

Status check_devices(const std::vector<DeviceHistory>& devices) {
  std::vector<std::int32_t> seen;
  for (const DeviceHistory& device : devices) {
    const std::int32_t number = device.device.value();
    ASHLAR_REQUIRE(number >= 0 && number < kDevicesMax, Code::kInvalidArgument,
                   "a device is out of range");
    ASHLAR_REQUIRE(device.record != nullptr, Code::kInvalidArgument, "a device has no record");
    seen.push_back(number);
  }
  std::sort(seen.begin(), seen.end());
  ASHLAR_REQUIRE(std::adjacent_find(seen.begin(), seen.end()) == seen.end(), Code::kInvalidArgument,
                 "a device is given twice");
  return Status::ok();
}

std::string_view text_of(const cache::History& history, const cache::HistoryEvent& event) noexcept {
  const std::uint64_t number = event.context.value();
  if (number == 0 || number > history.texts.size()) return {};
  return history.texts[number - 1];
}

}  // namespace ashlar::inline v0::exchange
