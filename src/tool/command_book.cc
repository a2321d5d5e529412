// Reads CLI11's description of a command line: see command_book.h.
#include "src/tool/command_book.h"

#include <CLI/CLI.hpp>

#include <ashlar/base/version.h>

namespace ashlar::tool {
namespace {

/// "TEXT:{sim,host}": the words of a CLI::IsMember; none if it is something else.
std::vector<std::string> words_of(const std::string& type) {
  const std::size_t open = type.find('{');
  const std::size_t close = type.find('}', open);
  if (open == std::string::npos || close == std::string::npos) return {};
  return CLI::detail::split(type.substr(open + 1, close - open - 1), ',');
}

bool is_number(const std::string& type) {
  return type == "UINT" || type == "INT" || type == "FLOAT" || type == "NUMBER";
}

BookOption read_option(const CLI::Option& option) {
  BookOption read;
  const std::string type = option.get_type_name();
  if (!option.nonpositional()) {
    read.value = option.get_name();
  } else {
    for (const std::string& name : option.get_snames()) read.names.push_back("-" + name);
    for (const std::string& name : option.get_lnames()) read.names.push_back("--" + name);
    if (option.get_items_expected_max() > 0) read.value = type.substr(0, type.find(':'));
  }
  if (!read.value.empty()) {
    read.words = words_of(type);
    read.kind = !read.words.empty()                         ? ValueForm::kWords
                : is_number(type.substr(0, type.find(':'))) ? ValueForm::kNumber
                                                            : ValueForm::kText;
  }
  read.description = option.get_description();
  read.default_value = option.get_default_str();
  read.is_required = option.get_required();
  read.is_repeatable = option.get_items_expected_max() > 1;
  return read;
}

BookCommand read_command(const CLI::App& app) {
  BookCommand command;
  command.name = app.get_name();
  command.description = app.get_description();
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_group().empty()) command.options.push_back(read_option(*option));
  }
  return command;
}

}  // namespace

CommandBook read_command_line(const CLI::App& app) {
  CommandBook book;
  book.program = read_command(app);
  book.version = ASHLAR_VERSION;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!sub->get_group().empty()) book.commands.push_back(read_command(*sub));
  }
  return book;
}

}  // namespace ashlar::tool
