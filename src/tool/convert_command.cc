// `ashlar convert`: reads a trace from any file that has one, and writes it as another kind of file.
#include <fmt/format.h>

#include <limits>

#include "src/tool/commands.h"
#include "src/tool/failure.h"
#include "src/tool/files.h"
#include "src/tool/output_file.h"
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
  OutputFile output;
  if (const int code = open_outputs({{"B", command.output, known_file_of(*target), &output}});
      code != kExitDone)
    return code;
  std::string error;
  TraceSource source;
  const auto trace = read_trace(command.input, {command.trace_device}, &source, &error);
  if (!trace) return fail(kExitUnreadable, error);
  const std::size_t events_max =
      command.limit_events.value_or(std::numeric_limits<std::size_t>::max());
  auto bytes = export_trace(*trace, *target, events_max, &error);
  if (!bytes) return fail(kExitUnreadable, command.output + ": " + error);
  if (command.output.ends_with(".gz")) bytes = gzip(*bytes);
  if (!output.write(*bytes, &error)) return fail(kExitUnreadable, error);
  if (output.is_stdout()) return kExitDone;
  const std::string from = source_text(source);
  const std::string limit =
      command.limit_events ? fmt::format("; at most the newest {} events are written", events_max)
                           : "";
  const bool has_marks = *target != TraceTarget::kRmmLog;
  fmt::print("{}: {} allocations, {} frees, {} marks{}{}{}{}\n", command.output, trace->allocations,
             trace->frees, trace->marks.size(), has_marks ? "" : ", which the file cannot have",
             from.empty() ? "" : "; from ", from, limit);
  return kExitDone;
}

}  // namespace ashlar::tool
