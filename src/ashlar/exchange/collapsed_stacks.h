// Collapsed stacks: `outer;inner bytes`, a line for each call stack, which flame graph tools read.
//
// Thread safety: any number of calls at the same time.
#pragma once

#include <vector>

#include <ashlar/base/export.h>
#include <ashlar/base/status.h>
#include <ashlar/exchange/byte_sink.h>
#include <ashlar/exchange/device_history.h>

namespace ashlar::inline v0::exchange {

/// Writes the live blocks of all snapshots by the call stacks that allocated them, in the order of the
/// texts. A block without frames counts as `unknown`. Bytes are those that were asked for.
///
/// kInvalidArgument: a device has no record. kWriteFailed: the sink took no more. Throws
/// std::bad_alloc, and what the sink and the frame source throw. Cost: for each
/// block a search of its stack's text among the different ones.
ASHLAR_API Status write_collapsed_stacks(const std::vector<DeviceHistory>& devices,
                                         const FrameSource& frames, const ByteSink& sink);

}  // namespace ashlar::inline v0::exchange
