// Reads traces from files of every kind that has one, judged by content and not by name.
//
// Kinds (trace_source.h): alloc-traces; PyTorch's memory snapshots as pickle or JSON; RMM's logs; each
// plain or gzip. Of any other file an error says what it is, as far as its first bytes tell.
// Thread safety: pure functions of the file system.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "src/tool/trace.h"
#include "src/tool/trace_source.h"

namespace ashlar::tool {

/// What the uncompressed bytes are. Looks at the first line, and at most 4 KiB.
FileKind kind_of(std::string_view bytes);
/// What a file of FileKind::kOther is, such as "a plan"; empty if that is not known either.
std::string what_else(std::string_view bytes);
/// One line about an import, or empty for a trace: kind, device, and the counts that are not zero.
std::string source_text(const TraceSource& source);

/// Reads a file. On failure `*error` is one line that begins with the path and, where there is one, has
/// the line, the offset or the place in the document. Cost: linear; holds the file, and of a snapshot its
/// values, in memory.
std::optional<Trace> read_trace(const std::string& path, std::string* error);
/// The same, with a choice of what to read, and with an account of it in `*source`.
std::optional<Trace> read_trace(const std::string& path, const TraceRequest& request,
                                TraceSource* source, std::string* error);
/// The same from memory; `name` stands for the file.
std::optional<Trace> parse_trace_file(std::string bytes, const std::string& name,
                                      const TraceRequest& request, TraceSource* source,
                                      std::string* error);

}  // namespace ashlar::tool
