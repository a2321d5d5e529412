// Ashlar's exchange: what an allocator did, in the files that other tools read.
//
// Purpose: the one header of a user who writes PyTorch's memory snapshot, RMM's log, Perfetto's JSON or
// a `.trace`. Names stay in their room's namespace: ashlar::exchange::write_torch_snapshot.
// Thread safety: stated for each function and class.
#pragma once

#include <ashlar/base/version.h>
#include <ashlar/exchange/byte_sink.h>
#include <ashlar/exchange/collapsed_stacks.h>
#include <ashlar/exchange/device_history.h>
#include <ashlar/exchange/label_contexts.h>
#include <ashlar/exchange/perfetto_trace.h>
#include <ashlar/exchange/rmm_log.h>
#include <ashlar/exchange/stack_contexts.h>
#include <ashlar/exchange/torch_snapshot.h>
#include <ashlar/exchange/trace_writer.h>
