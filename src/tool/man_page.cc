// The manual page, from the book of the command line: see help_pages.h.
#include <array>

#include "src/tool/help_pages.h"

namespace ashlar::tool {
namespace {

struct ExitStatus {
  const char* code;
  const char* meaning;
};
constexpr std::array<ExitStatus, 4> kExitStatuses = {{
    {"0", "Done."},
    {"1",
     "A check failed: a divergence from the model, an out-of-memory, a plan that does not fit."},
    {"2", "The command line cannot be understood."},
    {"3", "An input cannot be read, or an output cannot be written."},
}};

/// Text that roff does not take for its own: dashes stay dashes, a line never begins a request.
std::string plain(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else if ((c == '.' || c == '\'') && out.empty()) {
      out += std::string("\\&") + c;
    } else {
      out += c;
    }
  }
  return out;
}

std::string bold(const std::string& text) { return "\\fB" + plain(text) + "\\fR"; }
std::string italic(const std::string& text) { return "\\fI" + plain(text) + "\\fR"; }

/// "-o, --output TEXT", or a positional's name.
std::string heading(const BookOption& option) {
  if (option.is_positional()) return italic(option.value) + (option.is_repeatable ? " ..." : "");
  std::string names;
  for (const std::string& name : option.names) names += (names.empty() ? "" : ", ") + bold(name);
  return option.kind == ValueForm::kNone ? names : names + " " + italic(option.value);
}

void add_option(std::string& page, const BookOption& option) {
  std::string words;
  for (const std::string& word : option.words) words += (words.empty() ? "" : ", ") + bold(word);
  page += ".TP\n" + heading(option) + "\n" + plain(option.description);
  if (!words.empty()) page += "; one of " + words;
  if (!option.default_value.empty()) page += "; default: " + bold(option.default_value);
  page += "\n";
}

/// "replay [OPTION ...] TRACE ...": a positional that may be left out stands in brackets.
std::string use_of(const BookCommand& command) {
  std::string line = bold("ashlar") + " " + bold(command.name) + " [" + italic("OPTION") + " ...]";
  for (const BookOption& option : command.options) {
    if (!option.is_positional()) continue;
    const std::string name = heading(option);
    line += option.is_required ? " " + name : " [" + name + "]";
  }
  return line;
}

}  // namespace

std::string man_page(const CommandBook& book) {
  std::string page =
      ".\\\" Written by ashlar_help_pages from the command line.\n"
      ".TH ASHLAR 1 \"\" \"Ashlar " +
      book.version +
      "\" \"User Commands\"\n.SH NAME\nashlar \\- replays "
      "allocation traces, plans memory, checks the allocator against its model\n.SH SYNOPSIS\n";
  for (const BookCommand& command : book.commands) page += use_of(command) + "\n.br\n";
  page += bold("ashlar") + " " + bold("--help") + " | " + bold("--version") + "\n";
  page += ".SH DESCRIPTION\n" + plain(book.program.description) +
          "\nResults go to standard output, everything else to standard error.\n.SH OPTIONS\n";
  for (const BookOption& option : book.program.options) add_option(page, option);
  page += ".SH COMMANDS\n";
  for (const BookCommand& command : book.commands) {
    page += ".SS " + command.name + "\n" + plain(command.description) + "\n.PP\n" +
            use_of(command) + "\n";
    for (const BookOption& option : command.options) add_option(page, option);
  }
  page += ".SH EXIT STATUS\n";
  for (const ExitStatus& status : kExitStatuses)
    page += std::string(".TP\n") + bold(status.code) + "\n" + plain(status.meaning) + "\n";
  page += ".SH ENVIRONMENT\n.TP\n" + bold("ASHLAR_ALLOC_CONF") +
          "\nThe configuration of the allocator, where " + bold("--conf") +
          " gives none.\n.SH EXAMPLES\n";
  for (const HelpExample& example : kHelpExamples)
    page += std::string(".TP\n") + bold(example.line) + "\n" + plain(example.meaning) + "\n";
  return page;
}

}  // namespace ashlar::tool
