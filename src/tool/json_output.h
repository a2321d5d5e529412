// Results as JSON.
//
// Thread safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "src/tool/trace_run.h"

namespace ashlar::tool {

/// The value as text, ended by a newline. What is no UTF-8, as a file's name need not be, is replaced.
std::string json_text(const nlohmann::ordered_json& json);

/// An array, one object a trace, ended by a newline. Sizes in bytes, times in the unit their name
/// ends in; a capacity without limit is null.
std::string json_text(const std::vector<TraceRunResult>& results, const TraceRunOptions& options);

}  // namespace ashlar::tool
