// The call stacks of a trace's events as text, for suites to compare.
//
// Thread safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include "src/tool/trace.h"

namespace ashlar::props {

/// Of each event the frames, innermost first, each `name:file:line`; "-" for none.
inline std::vector<std::string> stacks_in(const tool::Trace& trace) {
  std::vector<std::string> stacks;
  for (const tool::TraceEvent& event : trace.events) {
    std::string text;
    for (const exchange::Frame& frame : trace.stacks.frames_of(event.stack))
      text += (text.empty() ? "" : " ") + frame.name + ":" + frame.filename + ":" +
              std::to_string(frame.line);
    stacks.push_back(text.empty() ? "-" : text);
  }
  return stacks;
}

}  // namespace ashlar::props
