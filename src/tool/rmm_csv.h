// Reads RMM's log (rmm::mr::logging_resource_adaptor): CSV with a line for each call.
//
// Format: the first line is `Thread,Time,Action,Pointer,Size,Stream`. Each other line is a call:
//   Thread   any text; calls of several threads stand in the order in which they took effect
//   Time     HH:MM:SS.micros, or HH:MM:SS:micros in older logs; its order is not checked
//   Action   `allocate`; `free`; `allocate failure`, which is skipped and counted
//   Pointer  0x..., or (nil) for a call of zero bytes, which is skipped and counted
//   Size     in bytes
//   Stream   a handle in hexadecimal, 0x... or without the prefix
// Lines end in LF or CRLF. A byte order mark is skipped. A free without its allocation is of memory that
// was live before the log began (addressed_events.h).
// Thread safety: pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "src/tool/trace.h"
#include "src/tool/trace_source.h"

namespace ashlar::tool {

/// The first line of a log.
inline constexpr std::string_view kRmmHeader = "Thread,Time,Action,Pointer,Size,Stream";

/// Reads a log. On failure `*error` is one line, `file:line: reason`. Cost: linear.
std::optional<Trace> parse_rmm_csv(std::string_view text, const std::string& file,
                                   TraceSource* source, std::string* error);

}  // namespace ashlar::tool
