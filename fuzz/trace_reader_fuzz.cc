// Fuzz target: the trace reader. Every byte string, plain or gzip, is a trace, or gives one line
// `name:line: reason`. A trace is sound (frees name live slots, the peak equals a recount) and
// survives a round trip through its own print.
//
// Imitates: damaged, cut-off and edited traces.
// Does not prove: anything about their replay.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "src/tool/files.h"
#include "src/tool/trace.h"

namespace {

using ashlar::Bytes;
using ashlar::tool::Trace;
using ashlar::tool::TraceEvent;

void require(bool condition) {
  if (!condition) std::abort();
}

void check_sound(const Trace& trace) {
  std::vector<Bytes> live;  // by slot; max() once freed
  Bytes sum;
  Bytes peak;
  std::size_t marks = 0;
  for (const TraceEvent& event : trace.events) {
    switch (event.kind) {
      case TraceEvent::Kind::kAllocate:
        require(event.slot == live.size() && event.stream < trace.streams.size());
        live.push_back(event.size);
        sum += event.size;
        peak = std::max(peak, sum);
        break;
      case TraceEvent::Kind::kFree:
        require(event.slot < live.size() && live[event.slot] != Bytes::max());
        sum -= live[event.slot];
        live[event.slot] = Bytes::max();
        break;
      case TraceEvent::Kind::kMark: require(event.slot == marks++); break;
    }
  }
  require(peak == trace.peak_live && live.size() == trace.allocations &&
          marks == trace.marks.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  std::string error;
  const auto trace = ashlar::tool::parse_trace(bytes, "in.trace", &error);
  if (!trace) {
    require(error.rfind("in.trace:", 0) == 0 && error.find('\n') == std::string::npos);
    require(error.find(':', 9) != std::string::npos);
    return 0;
  }
  require(error.empty());
  check_sound(*trace);
  const std::string text = ashlar::tool::format_trace(*trace);
  const auto again =
      ashlar::tool::parse_trace(text, "in.trace", &error);  // a trace is named after its file
  require(again.has_value() && ashlar::tool::format_trace(*again) == text);
  return 0;
}
