#include "src/tool/trace_file.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "src/tool/files.h"
#include "src/tool/json_document.h"
#include "src/tool/known_file.h"
#include "src/tool/pickle_reader.h"
#include "src/tool/rmm_csv.h"
#include "src/tool/snapshot_import.h"

namespace ashlar::tool {
namespace {

using Json = nlohmann::json;

/// The first line, without its end and without a byte order mark.
std::string_view first_line(std::string_view bytes) {
  bytes = without_bom(bytes);
  std::string_view line = bytes.substr(0, std::min(bytes.find('\n'), kTraceLineMax));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

/// The first line as an object with such a key: those of traces and graphs are JSON by themselves.
bool has_key(std::string_view line, const char* key) {
  const Json json = Json::parse(line, nullptr, false);
  return json.is_object() && json.contains(key);
}

/// The bytes that gunzip gives first, or the bytes themselves.
std::string beginning_of(const std::string& bytes) {
  if (!is_gzip(bytes)) return bytes.substr(0, kTraceLineMax);
  std::string first;
  gunzip(bytes, [&first](std::string_view piece) {
    first += piece;
    return first.size() < kTraceLineMax && piece.find('\n') == std::string_view::npos;
  });
  return first;
}

std::optional<Trace> import_document(std::string_view plain, const std::string& name,
                                     const TraceRequest& request, TraceSource* source,
                                     std::string* error) {
  const auto document = source->kind == FileKind::kPickle ? parse_pickle(plain, name, error)
                                                          : parse_json_document(plain, name, error);
  if (!document) return std::nullopt;
  return import_snapshot(*document, name, request, source, error);
}

}  // namespace

FileKind kind_of(std::string_view bytes) {
  if (is_pickle(bytes)) return FileKind::kPickle;
  if (bytes.empty()) return FileKind::kTrace;  // whose reader says so
  if (!what_else(bytes).empty()) return FileKind::kOther;
  const std::string_view line = first_line(bytes);
  if (known_file(line) == KnownFile::kRmmLog) return FileKind::kRmmLog;  // its reader checks it
  const std::size_t first = without_bom(bytes).find_first_not_of(" \t\r\n");
  const char opening = first == std::string_view::npos ? ' ' : without_bom(bytes)[first];
  if (opening == '[') return FileKind::kSnapshotJson;
  if (opening != '{') return FileKind::kOther;
  return has_key(line, "format") ? FileKind::kTrace : FileKind::kSnapshotJson;
}

std::string what_else(std::string_view bytes) {
  const KnownFile known = known_file(without_bom(bytes));
  const bool may_be_read = known == KnownFile::kTrace || known == KnownFile::kSnapshot ||
                           known == KnownFile::kJson || known == KnownFile::kRmmLog ||
                           known == KnownFile::kGzip;
  if (!may_be_read && known != KnownFile::kOther) return text_of(known);
  if (has_key(first_line(bytes), "rec")) return text_of(KnownFile::kGraph);
  return "";
}

std::string source_text(const TraceSource& source) {
  std::string text;
  switch (source.kind) {
    case FileKind::kPickle:
    case FileKind::kSnapshotJson:
      text = "a memory snapshot, device " + std::to_string(source.device);
      break;
    case FileKind::kRmmLog: text = "a log of RMM"; break;
    case FileKind::kTrace:
    case FileKind::kOther: return text;
  }
  text += ": " + std::to_string(source.events) + " events";
  const std::pair<std::uint64_t, const char*> counts[] = {
      {source.skipped, "skipped"},
      {source.live_at_start, "allocations live at the start"},
      {source.allocated_late, "allocated after the last event"}};
  for (const auto& [count, what] : counts) {
    if (count > 0) text += ", " + std::to_string(count) + " " + what;
  }
  return text;
}

std::optional<Trace> parse_trace_file(std::string bytes, const std::string& name,
                                      const TraceRequest& request, TraceSource* source,
                                      std::string* error) {
  *source = {};
  const std::string beginning = beginning_of(bytes);
  source->kind = kind_of(beginning);
  // A trace is unpacked as it is read, and damaged gzip is reported by its reader.
  if (source->kind == FileKind::kTrace) {
    auto trace = parse_trace(bytes, name, error);
    if (trace) source->events = trace->events.size();
    return trace;
  }
  if (source->kind == FileKind::kOther) {
    const std::string what = what_else(beginning);
    *error = name + (what.empty() ? ":1: neither a trace nor a memory snapshot nor a log of RMM"
                                  : ": is " + what);
    return std::nullopt;
  }
  const auto plain = unpacked(std::move(bytes), name, error);
  if (!plain) return std::nullopt;
  if (source->kind == FileKind::kRmmLog) return parse_rmm_csv(*plain, name, source, error);
  return import_document(*plain, name, request, source, error);
}

std::optional<Trace> read_trace(const std::string& path, const TraceRequest& request,
                                TraceSource* source, std::string* error) {
  auto bytes = read_file(path, error);
  if (!bytes) return std::nullopt;
  return parse_trace_file(std::move(*bytes), path, request, source, error);
}

std::optional<Trace> read_trace(const std::string& path, std::string* error) {
  TraceSource source;
  return read_trace(path, {}, &source, error);
}

}  // namespace ashlar::tool
