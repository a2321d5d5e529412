// The command line as plain records: every command and option that CLI11's description has, for the
// pages that are written from it (help_pages.h).
//
// Thread safety: plain values and a pure function.
//
// Invariant: what a user can see in `--help` is in the book, in the same order; hidden commands and
// options (those without a group) are not.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace ashlar::tool {

/// What stands behind an option, or in its place on the command line.
enum class ValueForm : unsigned char {
  kNone,    ///< a flag
  kWords,   ///< one of BookOption::words
  kNumber,  ///< a number
  kText,    ///< anything else, such as the name of a file
};

/// An option, or a positional argument.
struct BookOption {
  std::vector<std::string> names;  ///< with dashes, short ones first; none if it is positional
  std::string value;               ///< what help calls its value: TEXT; a positional's name
  ValueForm kind = ValueForm::kNone;
  std::vector<std::string> words;  ///< of kWords
  std::string description;
  std::string default_value;  ///< empty: help names none
  bool is_required = false;
  bool is_repeatable = false;  ///< more than one value may be given

  bool is_positional() const { return names.empty(); }
};

/// A command with its options; the first one of a book is `ashlar` itself.
struct BookCommand {
  std::string name;
  std::string description;
  std::vector<BookOption> options;
};

/// The whole command line.
struct CommandBook {
  BookCommand program;                ///< its name, its own options
  std::string version;                ///< without the program's name
  std::vector<BookCommand> commands;  ///< in the order of the help
};

/// Reads an app. Throws std::bad_alloc. Cost: linear in the options.
CommandBook read_command_line(const CLI::App& app);

}  // namespace ashlar::tool
