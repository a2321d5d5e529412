// The pages that are installed beside the command: its manual, and completions for three shells.
//
// Purpose: they are written from the book of the command line (command_book.h) when the command is
// built, so they cannot differ from what it accepts.
// Thread safety: pure functions. All throw std::bad_alloc. Cost: linear in the book.
#pragma once

#include <string>

#include "src/tool/command_book.h"

namespace ashlar::tool {

/// One use of the command, for the manual.
struct HelpExample {
  const char* line;     ///< as it is typed
  const char* meaning;  ///< what it does
};
/// The manual's examples. Each parses (props/tool/help_pages_test.cc).
inline constexpr HelpExample kHelpExamples[] = {
    {"ashlar replay run.trace.gz --check --report page.html",
     "Replays a trace through the allocator, judged by the model, and writes a page with the "
     "result."},
    {"ashlar replay run.trace.gz --capacity auto", "Finds the smallest device on which it runs."},
    {"ashlar replay run.trace.gz --planned",
     "Records the run, plans it, and serves it by the plan."},
    {"ashlar plan model.csv --capacity 16GiB -o plan.csv", "Plans buffers with known lifetimes."},
    {"ashlar check case.ops", "Runs a case in lockstep with the model."},
};

/// ashlar.1, in the man macros.
std::string man_page(const CommandBook& book);
/// A function for bash; needs no other package.
std::string bash_completion(const CommandBook& book);
/// _ashlar, for zsh's fpath.
std::string zsh_completion(const CommandBook& book);
/// ashlar.fish.
std::string fish_completion(const CommandBook& book);

}  // namespace ashlar::tool
