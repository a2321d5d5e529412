// Completions for bash, zsh and fish, from the book of the command line: see help_pages.h.
//
// A value is completed with its words where it has some, with nothing where it is a number, and else
// with names of files. Before a command's name commands are completed, after it the command's options
// and files.
#include "src/tool/help_pages.h"

namespace ashlar::tool {
namespace {

constexpr const char* kBashHead =
    "# Completion of ashlar for bash. Written by ashlar_help_pages from the command line.\n"
    "_ashlar() {\n"
    "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} command='' "
    "words='' files='' i\n"
    "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
    "    if [[ ${COMP_WORDS[i]} != -* ]]; then command=${COMP_WORDS[i]}; break; fi\n"
    "  done\n"
    "  # bash parts --option=value into three words.\n"
    "  if [[ $word == = ]]; then\n"
    "    word=\n"
    "  elif [[ $before == = ]]; then\n"
    "    before=${COMP_WORDS[COMP_CWORD - 2]}\n"
    "  fi\n"
    "  case $command:$before in\n";
constexpr const char* kBashTail =
    "      esac\n"
    "      ;;\n"
    "  esac\n"
    "  mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\")\n"
    "  if [[ -n $files ]]; then\n"
    "    mapfile -t COMPREPLY < <(compgen -f -- \"$word\")\n"
    "    compopt -o filenames 2>/dev/null  # a slash behind folders; an error outside of a "
    "completion\n"
    "  fi\n"
    "}\n"
    "complete -F _ashlar ashlar\n";
constexpr const char* kZshHead =
    "#compdef ashlar\n"
    "# Completion of ashlar for zsh. Written by ashlar_help_pages from the command line.\n"
    "_ashlar() {\n"
    "  local curcontext=\"$curcontext\" state line\n"
    "  local -a commands\n"
    "  commands=(\n";
constexpr const char* kZshMiddle =
    " \\\n"
    "    '1:command:->command' '*::argument:->argument'\n"
    "  case $state in\n"
    "    command) _describe -t commands command commands ;;\n"
    "    argument)\n"
    "      case $words[1] in\n";

std::string joined(const std::vector<std::string>& words, const char* between) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : between) + word;
  return line;
}

/// `text` with a backslash before each of `special`.
std::string escaped(const std::string& text, const std::string& special) {
  std::string out;
  for (const char c : text) {
    if (special.find(c) != std::string::npos) out += '\\';
    out += c;
  }
  return out;
}

/// In single quotes, for bash and zsh.
std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      out += c;
    }
  }
  return out + "'";
}

std::string fish_quoted(const std::string& text) { return "'" + escaped(text, "\\'") + "'"; }

std::vector<std::string> names_of(const BookCommand& command) {
  std::vector<std::string> names;
  for (const BookOption& option : command.options)
    names.insert(names.end(), option.names.begin(), option.names.end());
  return names;
}

std::vector<std::string> names_of(const std::vector<BookCommand>& commands) {
  std::vector<std::string> names;
  names.reserve(commands.size());
  for (const BookCommand& command : commands) names.push_back(command.name);
  return names;
}

/// The branches of bash's `case` for values of the command's options.
std::string bash_values(const BookCommand& command) {
  std::string branches;
  for (const BookOption& option : command.options) {
    if (option.is_positional() || option.kind == ValueForm::kNone) continue;
    std::vector<std::string> patterns;
    patterns.reserve(option.names.size());
    for (const std::string& name : option.names) patterns.push_back(command.name + ":" + name);
    branches += "    " + joined(patterns, " | ") + ")";
    if (option.kind == ValueForm::kWords) branches += " words=" + quoted(joined(option.words, " "));
    if (option.kind == ValueForm::kText) branches += " files=yes";
    branches += " ;;\n";
  }
  return branches;
}

/// One line for zsh's _arguments.
std::string zsh_argument(const BookOption& option) {
  std::string action;
  if (option.kind == ValueForm::kWords) action = "(" + joined(option.words, " ") + ")";
  if (option.kind == ValueForm::kText) action = "_files";
  const std::string explained = "[" + escaped(option.description, "[]\\") + "]";
  if (option.is_positional())
    return quoted((option.is_repeatable ? "*:" : ":") + escaped(option.value, ":") + ":" + action);
  std::string line;
  std::string tail = explained;
  tail += ":";
  tail += escaped(option.value, ":");
  tail += ":";
  tail += action;
  for (const std::string& name : option.names) {
    const bool is_joined = name.rfind("--", 0) == 0;
    const std::string value = option.kind == ValueForm::kNone ? "" : is_joined ? "=" + tail : tail;
    line += (line.empty() ? "" : " ") +
            quoted((option.is_repeatable ? "*" : "") + name + (value.empty() ? explained : value));
  }
  return line;
}

std::string fish_option(const std::string& condition, const BookOption& option) {
  std::string line = "complete -c ashlar -n " + quoted(condition);
  for (const std::string& name : option.names)
    line += name.rfind("--", 0) == 0 ? " -l " + name.substr(2) : " -s " + name.substr(1);
  if (option.kind == ValueForm::kWords) line += " -x -a " + fish_quoted(joined(option.words, " "));
  if (option.kind == ValueForm::kNumber) line += " -x";
  if (option.kind == ValueForm::kText) line += " -r -F";
  return line + " -d " + fish_quoted(option.description) + "\n";
}

}  // namespace

std::string bash_completion(const CommandBook& book) {
  std::string script = kBashHead;
  for (const BookCommand& command : book.commands) script += bash_values(command);
  script +=
      "    *)\n      case $command in\n        '')\n          if [[ $word == -* ]]; then words=" +
      quoted(joined(names_of(book.program), " ")) +
      "; else words=" + quoted(joined(names_of(book.commands), " ")) + "; fi\n          ;;\n";
  for (const BookCommand& command : book.commands) {
    script += "        " + command.name +
              ") if [[ $word == -* ]]; then words=" + quoted(joined(names_of(command), " ")) +
              "; else files=yes; fi ;;\n";
  }
  return script + kBashTail;
}

std::string zsh_completion(const CommandBook& book) {
  std::string script = kZshHead;
  for (const BookCommand& command : book.commands)
    script += "    " + quoted(command.name + ":" + command.description) + "\n";
  script += "  )\n  _arguments -C";
  for (const BookOption& option : book.program.options)
    script += " \\\n    " + zsh_argument(option);
  script += kZshMiddle;
  for (const BookCommand& command : book.commands) {
    script += "        " + command.name + ")\n          _arguments";
    for (const BookOption& option : command.options)
      script += " \\\n            " + zsh_argument(option);
    script += "\n          ;;\n";
  }
  return script + "      esac\n      ;;\n  esac\n}\n_ashlar \"$@\"\n";
}

std::string fish_completion(const CommandBook& book) {
  const std::string none =
      "not __fish_seen_subcommand_from " + joined(names_of(book.commands), " ");
  std::string script =
      "# Completion of ashlar for fish. Written by ashlar_help_pages from the command line.\n";
  script += "complete -c ashlar -f -n " + quoted(none) + "\n";
  for (const BookOption& option : book.program.options) script += fish_option(none, option);
  for (const BookCommand& command : book.commands) {
    script += "complete -c ashlar -n " + quoted(none) + " -a " + command.name + " -d " +
              fish_quoted(command.description) + "\n";
    const std::string seen = "__fish_seen_subcommand_from " + command.name;
    for (const BookOption& option : command.options) {
      if (!option.is_positional()) script += fish_option(seen, option);
    }
  }
  return script;
}

}  // namespace ashlar::tool
