// Fuzz target: the import of traces from other programs' files. The first byte chooses the reader:
// pickle, JSON, RMM's log, or by content. An input is refused with one printable line that begins with
// the file's name, or gives a trace that survives a round trip through its own print.
//
// Imitates: damaged, cut-off and edited recordings, and pickles made to harm their reader.
// Does not prove: that events mean what the recorded program did (props/tool/snapshot_import_test.cc).
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "src/tool/json_document.h"
#include "src/tool/pickle_reader.h"
#include "src/tool/rmm_csv.h"
#include "src/tool/snapshot_import.h"
#include "src/tool/trace_file.h"

namespace {

using ashlar::tool::Document;
using ashlar::tool::Trace;
using ashlar::tool::TraceSource;

void require(bool condition) {
  if (!condition) std::abort();
}

std::optional<Trace> import_document(const std::optional<Document>& document,
                                     std::string_view input, TraceSource* source,
                                     std::string* error) {
  if (!document) return std::nullopt;
  // Memory is bounded by the input: no byte makes more than one value.
  require(document->arena.size() <= input.size() + 1);
  return ashlar::tool::import_snapshot(*document, "in", {}, source, error);
}

std::optional<Trace> import(std::uint8_t reader, std::string_view input, TraceSource* source,
                            std::string* error) {
  switch (reader % 4) {
    case 0:
      return import_document(ashlar::tool::parse_pickle(input, "in", error), input, source, error);
    case 1:
      return import_document(ashlar::tool::parse_json_document(input, "in", error), input, source,
                             error);
    case 2: return ashlar::tool::parse_rmm_csv(input, "in", source, error);
    default: return ashlar::tool::parse_trace_file(std::string(input), "in", {}, source, error);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view input(reinterpret_cast<const char*>(data) + 1, size - 1);
  std::string error;
  TraceSource source;
  const auto trace = import(data[0], input, &source, &error);
  if (!trace) {
    require(error.rfind("in:", 0) == 0);
    for (const char c : error) require(c >= ' ' && c < 127);
    return 0;
  }
  require(error.empty());
  const std::string text = ashlar::tool::format_trace(*trace);
  const auto again = ashlar::tool::parse_trace(text, "in.trace", &error);
  require(again.has_value() && ashlar::tool::format_trace(*again) == text);
  return 0;
}
