#include "src/tool/rmm_csv.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "src/tool/addressed_events.h"
#include "src/tool/files.h"

namespace ashlar::tool {
namespace {

enum Column : std::uint8_t { kThread, kTime, kAction, kPointer, kSize, kStream, kColumns };
using Fields = std::array<std::string_view, kColumns>;

bool is_number(std::string_view text, int base, std::uint64_t* out) {
  const char* const last = text.data() + text.size();
  const auto [stop, failure] = std::from_chars(text.data(), last, *out, base);
  return !text.empty() && failure == std::errc{} && stop == last;
}

bool is_hex(std::string_view text, std::uint64_t* out) {
  if (text.starts_with("0x")) text.remove_prefix(2);
  return is_number(text, 16, out);
}

/// HH:MM:SS.micros or HH:MM:SS:micros.
bool is_time(std::string_view text) {
  if (text.size() < 10 || text.size() > 15) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_mark = i == 2 || i == 5 || i == 8;
    const bool is_right =
        is_mark ? text[i] == ':' || (i == 8 && text[i] == '.') : text[i] >= '0' && text[i] <= '9';
    if (!is_right) return false;
  }
  return true;
}

/// Reads the lines after the header.
class LogReader {
 public:
  explicit LogReader(TraceSource* source) : source_(source) {}

  bool take_line(std::string_view line, std::uint64_t number) {
    events_.at(number);
    Fields fields;
    for (std::size_t i = 0; i < kColumns; ++i) {
      const std::size_t end = line.find(',');
      if ((end == std::string_view::npos) != (i + 1 == kColumns))
        return fail("the line has not six fields");
      fields[i] = line.substr(0, end);
      line.remove_prefix(end == std::string_view::npos ? line.size() : end + 1);
    }
    ++source_->events;
    return take_call(fields);
  }

  std::optional<Trace> finish(const std::string& name, std::string* error) {
    source_->live_at_start = events_.live_at_start();
    return events_.finish(name, error);
  }
  const std::string& reason() const { return reason_; }

 private:
  bool fail(std::string reason) {
    reason_ = std::move(reason);
    return false;
  }

  bool take_call(const Fields& fields) {
    std::uint64_t address = 0;
    std::uint64_t size = 0;
    AddressedBlock block;
    const bool is_null = fields[kPointer] == "(nil)";
    if (!is_time(fields[kTime])) return fail("the time is no HH:MM:SS.micros");
    if (!is_null && !is_hex(fields[kPointer], &address))
      return fail("the pointer is neither 0x... nor (nil)");
    if (!is_number(fields[kSize], 10, &size)) return fail("the size is no whole number from 0");
    if (!is_hex(fields[kStream], &block.stream)) return fail("the stream is no hexadecimal number");
    const bool is_allocation = fields[kAction] == "allocate";
    if (!is_allocation && fields[kAction] != "free" && fields[kAction] != "allocate failure")
      return fail("the action is neither allocate nor free nor allocate failure");
    if (fields[kAction] == "allocate failure") return skip();
    if (address == 0) return size == 0 ? skip() : fail("memory at the null pointer");
    block.address = Address{address};
    block.size = Bytes{size};
    auto contradiction =
        is_allocation ? events_.allocate(block) : events_.free(block, FreeStep::kCompleted);
    return !contradiction || fail(std::move(*contradiction));
  }

  bool skip() {
    ++source_->skipped;
    return true;
  }

  TraceSource* source_;
  AddressedEvents events_{"line"};
  std::string reason_;
};

}  // namespace

std::optional<Trace> parse_rmm_csv(std::string_view text, const std::string& file,
                                   TraceSource* source, std::string* error) {
  text = without_bom(text);
  LogReader reader(source);
  const auto fail = [&](std::uint64_t number, const std::string& why) {
    *error = file + ":" + std::to_string(number) + ": " + why;
    return std::nullopt;
  };
  for (std::uint64_t number = 1; !text.empty() || number == 1; ++number) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (number == 1) {
      if (line != kRmmHeader) return fail(1, "the header is not " + std::string(kRmmHeader));
    } else if (!line.empty() && !reader.take_line(line, number)) {
      return fail(number, reader.reason());
    }
  }
  std::string why;
  auto trace = reader.finish(trace_name(file), &why);
  if (!trace) *error = file + ": " + why;
  return trace;
}

}  // namespace ashlar::tool
