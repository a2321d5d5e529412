#include "src/tool/trace.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include <ashlar/base/checked.h>

#include "src/tool/files.h"

namespace ashlar::tool {
namespace {

using Json = nlohmann::json;

// Reads a trace line by line from pieces of any size.
class Reader {
 public:
  explicit Reader(std::string name) : builder_(std::move(name)) {}

  /// Reads the next bytes. False if a line is malformed; reason() then says why, and line() which.
  bool feed(std::string_view piece) {
    bytes_ += piece.size();
    if (bytes_ > kFileBytesMax) return fail_at_next("unpacked it is larger than 2 GiB");
    while (reason_.empty()) {
      const std::size_t end = piece.find('\n');
      rest_.append(piece.substr(0, end));
      if (rest_.size() > kTraceLineMax) return fail_at_next("the line is longer than 1 MiB");
      if (end == std::string_view::npos) return true;
      piece.remove_prefix(end + 1);
      take_line();
    }
    return false;
  }

  /// Reads the last line, and checks what can be checked only at the end.
  bool finish() {
    if (reason_.empty() && !rest_.empty()) take_line();
    if (reason_.empty() && line_ == 0) return fail_at_next("the file is empty");
    if (!reason_.empty()) return false;
    const Trace& trace = builder_.trace();
    const std::uint64_t events = std::uint64_t{trace.allocations} + trace.frees;
    if (stated_events_ && *stated_events_ != trace.events.size() && *stated_events_ != events) {
      return fail("the header states " + std::to_string(*stated_events_) +
                  " events, the file has " + std::to_string(trace.events.size()));
    }
    return true;
  }

  std::uint64_t line() const { return line_; }
  const std::string& reason() const { return reason_; }
  Trace& trace() { return builder_.trace(); }
  /// Fails at the line that is still incomplete.
  bool fail_at_next(const char* reason) {
    ++line_;
    return fail(reason);
  }

 private:
  bool fail(std::string reason) {
    reason_ = std::move(reason);
    return false;
  }

  void take_line() {
    ++line_;
    if (line_ == 1) {
      take_header();
    } else {
      take_event(rest_.ends_with('\r') ? std::string_view(rest_).substr(0, rest_.size() - 1)
                                       : rest_);
    }
    rest_.clear();
  }

  bool take_header() {
    const Json header = Json::parse(without_bom(rest_), nullptr, false);
    if (header.is_discarded() || !header.is_object())
      return fail("the header is not a JSON object");
    const auto format = header.find("format");
    if (format == header.end() || *format != "alloc-trace")
      return fail("the header's format is not alloc-trace");
    const auto version = header.find("version");
    if (version == header.end() || *version != 1) return fail("the header's version is not 1");
    const auto unit = header.find("unit");
    if (unit != header.end() && *unit != "bytes") return fail("the header's unit is not bytes");
    const auto peak = header.find("peak_live_bytes");
    if (peak != header.end()) {
      if (!peak->is_number_unsigned())
        return fail("the header's peak_live_bytes is not a number of bytes");
      trace().stated_peak_live = Bytes{peak->get<std::uint64_t>()};
    }
    const auto events = header.find("events");
    if (events != header.end()) {
      if (!events->is_number_unsigned()) return fail("the header's events is not a count");
      stated_events_ = events->get<std::uint64_t>();
    }
    return true;
  }

  bool take_mark(std::string_view text) {
    mark_bytes_ += text.size();
    if (mark_bytes_ > kTraceMarkBytesMax) return fail("the texts of marks exceed 64 MiB");
    builder_.mark(text);
    return true;
  }

  bool take_event(std::string_view line) {
    if (trace().events.size() >= kTraceEventsMax) return fail("more than 2^30 events");
    if (line.empty()) return fail("the line is empty");
    if (line.size() < 3 || line[1] != ' ')
      return fail("neither `a id bytes [stream]` nor `f id` nor `m text`");
    const std::string_view fields = line.substr(2);
    switch (line[0]) {
      case 'a': return take_allocation(fields);
      case 'f': return take_free(fields);
      case 'm': return take_mark(fields);
      default: return fail("neither `a id bytes [stream]` nor `f id` nor `m text`");
    }
  }

  bool take_allocation(std::string_view fields) {
    std::uint64_t id = 0;
    std::uint64_t size = 0;
    std::uint64_t stream = 0;
    if (!take_number(&fields, "id", &id)) return false;
    if (fields.empty()) return fail("the size is missing");
    if (!take_number(&fields, "size", &size)) return false;
    if (size > kTraceAllocationMax.count()) return fail("the size is over 1 EiB");
    if (!fields.empty() && !take_number(&fields, "stream", &stream)) return false;
    if (!fields.empty()) return fail("something follows the allocation");
    const std::uint32_t slot = trace().allocations;
    if (!slots_.emplace(id, slot).second)
      return fail("id " + std::to_string(id) + " is used again");
    if (!builder_.allocate(Bytes{size}, stream))
      return fail("too many streams, or the live bytes overflow");
    return true;
  }

  bool take_free(std::string_view fields) {
    std::uint64_t id = 0;
    if (!take_number(&fields, "id", &id)) return false;
    if (!fields.empty()) return fail("something follows the free");
    const auto it = slots_.find(id);
    if (it == slots_.end())
      return fail("free of id " + std::to_string(id) + ", which was never allocated");
    if (!builder_.free(it->second))
      return fail("free of id " + std::to_string(id) + ", which is free already");
    return true;
  }

  // Reads a number, and the space after it if more follows.
  bool take_number(std::string_view* fields, const char* what, std::uint64_t* out) {
    const std::size_t end = fields->find(' ');
    const std::string_view text = fields->substr(0, end);
    const char* const last = text.data() + text.size();
    const auto [stop, failure] = std::from_chars(text.data(), last, *out);
    if (failure == std::errc::result_out_of_range)
      return fail(std::string("the ") + what + " does not fit in 64 bits");
    if (text.empty() || failure != std::errc{} || stop != last) {
      return fail(std::string("the ") + what + " is not a whole number from 0");
    }
    fields->remove_prefix(end == std::string_view::npos ? fields->size() : end + 1);
    if (end != std::string_view::npos && fields->empty()) return fail("a space ends the line");
    return true;
  }

  TraceBuilder builder_;
  // the slot of every id so far: ids are never reused
  std::unordered_map<std::uint64_t, std::uint32_t> slots_;
  std::optional<std::uint64_t> stated_events_;
  std::size_t bytes_ = 0;  // given to feed()
  std::size_t mark_bytes_ = 0;
  std::string rest_;
  std::string reason_;
  std::uint64_t line_ = 0;
};

}  // namespace

std::optional<std::uint32_t> TraceBuilder::allocate(Bytes size, std::uint64_t stream,
                                                    std::uint32_t stack) {
  const auto live = checked_add(live_, size);
  if (!live || size > kTraceAllocationMax || trace_.events.size() >= kTraceEventsMax)
    return std::nullopt;
  const auto index = static_cast<std::uint32_t>(trace_.streams.size());
  const auto [known, is_new] = index_of_.try_emplace(stream, index);
  if (is_new) {
    if (index == kTraceStreamsMax) {
      index_of_.erase(known);
      return std::nullopt;
    }
    trace_.streams.push_back(stream);
  }
  const std::uint32_t slot = trace_.allocations++;
  trace_.events.push_back({TraceEvent::Kind::kAllocate, slot, known->second, size, stack});
  size_of_.push_back(size);
  is_live_.push_back(true);
  live_ = *live;
  trace_.peak_live = std::max(trace_.peak_live, live_);
  return slot;
}

bool TraceBuilder::free(std::uint32_t slot, std::uint32_t stack) {
  if (slot >= trace_.allocations || !is_live_[slot]) return false;
  trace_.events.push_back({TraceEvent::Kind::kFree, slot, 0, {}, stack});
  ++trace_.frees;
  is_live_[slot] = false;
  live_ -= size_of_[slot];
  return true;
}

void TraceBuilder::mark(std::string_view text) {
  const auto index = static_cast<std::uint32_t>(trace_.marks.size());
  trace_.events.push_back({TraceEvent::Kind::kMark, index, 0, {}});
  trace_.marks.emplace_back(text);
}

std::string trace_name(const std::string& path) {
  std::string name = path.substr(path.find_last_of('/') + 1);
  for (const std::string_view ending : {".gz", ".trace", ".pickle", ".pkl", ".json", ".csv"}) {
    if (name.size() > ending.size() && name.ends_with(ending))
      name.resize(name.size() - ending.size());
  }
  return name;
}

std::optional<Trace> parse_trace(std::string_view data, const std::string& name,
                                 std::string* error) {
  Reader reader(trace_name(name));
  if (is_gzip(data)) {
    const char* why =
        gunzip(data, [&reader](std::string_view piece) { return reader.feed(piece); });
    if (why != nullptr && reader.reason().empty()) reader.fail_at_next(why);
  } else {
    reader.feed(data);
  }
  if (!reader.finish()) {
    *error = name + ":" + std::to_string(reader.line()) + ": " + reader.reason();
    return std::nullopt;
  }
  return std::move(reader.trace());
}

std::string format_trace(const Trace& trace) {
  const nlohmann::ordered_json header{{"format", "alloc-trace"},
                                      {"version", 1},
                                      {"name", trace.name},
                                      {"unit", "bytes"},
                                      {"events", trace.events.size()},
                                      {"peak_live_bytes", trace.peak_live.count()}};
  std::string text = header.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  const bool one_stream =
      trace.streams.empty() || (trace.streams.size() == 1 && trace.streams[0] == 0);
  for (const TraceEvent& event : trace.events) {
    switch (event.kind) {
      case TraceEvent::Kind::kAllocate:
        text += "a " + std::to_string(event.slot) + " " + std::to_string(event.size.count());
        if (!one_stream) text += " " + std::to_string(trace.streams[event.stream]);
        break;
      case TraceEvent::Kind::kFree: text += "f " + std::to_string(event.slot); break;
      case TraceEvent::Kind::kMark: text += "m " + trace.marks[event.slot]; break;
    }
    text += '\n';
  }
  return text;
}

bool write_trace(const Trace& trace, const std::string& path, std::string* error) {
  const std::string text = format_trace(trace);
  return write_file(path, path.ends_with(".gz") ? gzip(text) : text, KnownFile::kTrace, error);
}

}  // namespace ashlar::tool
