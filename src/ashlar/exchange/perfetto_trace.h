// Chrome's trace event JSON, which Perfetto's UI opens.
//
// Thread safety: any number of calls at the same time.
#pragma once

#include <vector>

#include <ashlar/base/export.h>
#include <ashlar/base/status.h>
#include <ashlar/exchange/byte_sink.h>
#include <ashlar/exchange/device_history.h>

namespace ashlar::inline v0::exchange {

/// Writes the events of all given devices, each a process of its own: a counter of its memory
/// (allocated, pending, and idle: together what was reserved), a counter for each memory pool; for each
/// allocation an asynchronous event from its allocation to the request that frees it, which begins at
/// the window's first event if it is older; an instant for each out-of-memory, annotation and snapshot.
/// Allocated and pending bytes are those that were asked for, so rounding counts as idle. An
/// allocation is named after its innermost frame, or else its size.
///
/// Errors, exceptions and cost as write_torch_snapshot(), but addresses may have 64 bits.
ASHLAR_API Status write_perfetto_trace(const std::vector<DeviceHistory>& devices,
                                       const FrameSource& frames, const ExportWindow& window,
                                       const ByteSink& sink);

}  // namespace ashlar::inline v0::exchange
