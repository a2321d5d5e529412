#include <ashlar/exchange/rmm_log.h>

#include <ashlar/exchange/output_buffer.h>
#include <ashlar/exchange/rewind.h>

namespace ashlar::inline v0::exchange {
namespace {

using cache::HistoryAction;
using cache::HistoryEvent;

constexpr std::uint64_t kSecond = 1'000'000;
constexpr std::uint64_t kMinute = 60 * kSecond;
constexpr std::uint64_t kHour = 60 * kMinute;
constexpr std::uint64_t kDay = 24 * kHour;

/// `number` in so many digits.
void append_digits(OutputBuffer* out, std::uint64_t number, std::uint64_t highest) {
  for (std::uint64_t unit = highest; unit != 0; unit /= 10)
    out->append(static_cast<char>('0' + number / unit % 10));
}

/// As a C++ stream writes a pointer: 0 without a prefix.
void append_pointer(OutputBuffer* out, std::uint64_t value) {
  if (value != 0) out->append("0x");
  out->append_number(value, 16);
}

void append_line(OutputBuffer* out, std::string_view action, const HistoryEvent& event) {
  out->append("0,");
  append_digits(out, event.time_us % kDay / kHour, 10);
  out->append(':');
  append_digits(out, event.time_us % kHour / kMinute, 10);
  out->append(':');
  append_digits(out, event.time_us % kMinute / kSecond, 10);
  out->append('.');
  append_digits(out, event.time_us % kSecond, 100'000);
  out->append(',');
  out->append(action);
  out->append(',');
  if (event.address.is_null()) {
    out->append("(nil)");
  } else {
    append_pointer(out, event.address.value());
  }
  out->append(',');
  out->append_number(event.size.count());
  out->append(',');
  append_pointer(out, event.stream.value());
  out->append('\n');
}

}  // namespace

Status write_rmm_log(const cache::HistorySnapshot& record, const ByteSink& sink) {
  Rewind state;
  if (const Status back = rewind_all(record, &state); !back.is_ok()) return back;
  OutputBuffer out(sink);
  out.append("Thread,Time,Action,Pointer,Size,Stream\n");
  HistoryEvent older;
  if (!record.history.events.empty()) older.time_us = record.history.events.front().time_us;
  for (const auto& [address, block] : state.blocks()) {
    if (block.is_pending) continue;
    older.address = address;
    older.size = block.requested;
    older.stream = block.stream;
    append_line(&out, "allocate", older);
  }
  for (const HistoryEvent& event : record.history.events) {
    if (event.action == HistoryAction::kAllocate) {
      append_line(&out, "allocate", event);
    } else if (event.action == HistoryAction::kFreeRequested) {
      append_line(&out, "free", event);
    } else if (event.action == HistoryAction::kOutOfMemory) {
      append_line(&out, "allocate failure", event);
    }
  }
  return out.flush();
}

}  // namespace ashlar::inline v0::exchange
