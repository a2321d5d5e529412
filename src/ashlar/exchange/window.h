// Which events of a history a file shows.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include <ashlar/base/status.h>
#include <ashlar/exchange/device_history.h>

namespace ashlar::inline v0::exchange {

/// The events [first, last) of a history. What is left out is the oldest and the newest, never an event
/// between two that are written: a viewer undoes them from the end.
struct WindowedEvents {
  std::size_t first = 0;
  std::size_t last = 0;
  std::uint64_t over_max = 0;  ///< how many older ones were in the window, but over its events_max
};

/// Cost: linear. Never throws.
WindowedEvents events_in(const cache::History& history, const ExportWindow& window) noexcept;

/// kInvalidArgument: a device is out of range, without a record, or given twice. Throws std::bad_alloc.
Status check_devices(const std::vector<DeviceHistory>& devices);

/// The text of an annotation's event; "" where the history does not have it.
std::string_view text_of(const cache::History& history, const cache::HistoryEvent& event) noexcept;

}  // namespace ashlar::inline v0::exchange
