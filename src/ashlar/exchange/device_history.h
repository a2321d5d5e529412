// What the writers of this room take: the recorded histories, and what only the user knows of them.
//
// Thread safety: plain values.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <variant>
#include <vector>

#include <ashlar/base/types.h>
#include <ashlar/cache/history.h>

namespace ashlar::inline v0::exchange {

/// One device's history.
struct DeviceHistory {
  DeviceId device;                                 ///< from 0 to kDevicesMax - 1
  const cache::HistorySnapshot* record = nullptr;  ///< not null; it outlives the call
};

/// The highest number of devices that a file can name, plus one.
inline constexpr std::int32_t kDevicesMax = 4096;

/// One frame of a call stack. Bytes that are not UTF-8 are written as U+FFFD.
struct Frame {
  std::string name;        ///< of the function
  std::string filename;    ///< of its source
  std::uint32_t line = 0;  ///< in that file, from 1; 0: unknown
};

/// The call stack that a context stands for, innermost frame first. Called at most once for each context
/// of a file; never for ContextId 0. An empty function: no context has frames.
using FrameSource = std::function<std::vector<Frame>(cache::ContextId context)>;

/// A value of a setting or an annotation. A number that is not finite is written as none.
using Value = std::variant<bool, std::int64_t, double, std::string>;

/// A named value. Of equal keys in one list the last one counts.
struct KeyValue {
  std::string key;  ///< as it stands in the file
  Value value;      ///< likewise
};

/// Which events of a history are written.
struct ExportWindow {
  /// from the first event at this time or later, in microseconds since 1970
  std::uint64_t from_us = 0;
  /// to the last event before this time; memory is shown as it was then
  std::uint64_t to_us = std::numeric_limits<std::uint64_t>::max();
  /// of those, at most so many of each device, the newest: viewers slow down with more
  std::size_t events_max = 200'000;
};

}  // namespace ashlar::inline v0::exchange
