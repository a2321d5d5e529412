// `ashlar convert`: reads a trace from any file that has one, and writes it as another kind of file.
#include <fmt/format.h>

#include <cstdio>
#include <limits>

#include "src/tool/commands.h"
#include "src/tool/failure.h"
#include "src/tool/files.h"
#include "src/tool/trace_export.h"
#include "src/tool/trace_file.h"

namespace ashlar::tool {

int run_convert(const ConvertCommand& command) {
  const auto target =
      command.to.empty() ? target_by_ending(command.output) : target_named(command.to);
  if (!target) {
    return fail(kExitUsage, fmt::format("{}: the ending names no kind of file; give --to trace, "
                                        "pickle, json, rmm or perfetto",
                                        command.output));
  }
  if (command.limit_events && (*target == TraceTarget::kTrace || *target == TraceTarget::kRmmLog))
    return fail(kExitUsage, "--limit-events: only for pickle, json and perfetto");
  std::string error;
  TraceSource source;
  const auto trace = read_trace(command.input, {command.device}, &source, &error);
  if (!trace) return fail(kExitUnreadable, error);
  const std::size_t events_max =
      command.limit_events.value_or(std::numeric_limits<std::size_t>::max());
  auto bytes = export_trace(*trace, *target, events_max, &error);
  if (!bytes) return fail(kExitUnreadable, command.output + ": " + error);
  if (command.output.ends_with(".gz")) bytes = gzip(*bytes);
  if (command.output == "-") {
    std::fwrite(bytes->data(), 1, bytes->size(), stdout);
    return kExitDone;
  }
  if (!write_file(command.output, *bytes, &error)) return fail(kExitUnreadable, error);
  const std::string from = source_text(source);
  fmt::print("{}: {} allocations, {} frees, {} marks{}{}\n", command.output, trace->allocations,
             trace->frees, trace->marks.size(), from.empty() ? "" : "; from ", from);
  return kExitDone;
}

}  // namespace ashlar::tool
