#include "src/tool/usage_error.h"

#include <algorithm>

#include <ashlar/base/nearest_word.h>

namespace ashlar::tool {
namespace {

std::string sentence(const std::string& command, const std::string& what, const std::string& given,
                     const std::vector<std::string>& known) {
  return command + ": unknown " + what + " '" + given + "'" + did_you_mean(given, known) +
         " (see " + command + " --help)";
}

std::vector<std::string> options_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

/// A message of several lines as one.
std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

}  // namespace

std::string usage_error(const CLI::App& app, const std::vector<std::string>& arguments,
                        const CLI::ParseError& error) {
  std::vector<std::string> commands;
  for (const CLI::App* sub : app.get_subcommands({})) commands.push_back(sub->get_name());
  const CLI::App* command = &app;
  std::string name = app.get_name();
  std::size_t first = 0;
  if (!arguments.empty() && !arguments[0].starts_with('-')) {
    if (std::find(commands.begin(), commands.end(), arguments[0]) == commands.end())
      return sentence(name, "command", arguments[0], commands);
    command = app.get_subcommand(arguments[0]);
    name += " " + arguments[0];
    first = 1;
  }
  const std::vector<std::string> known = options_of(*command);
  for (std::size_t i = first; i < arguments.size() && arguments[i] != "--"; ++i) {
    if (!arguments[i].starts_with("--")) continue;
    const std::string option = arguments[i].substr(0, arguments[i].find('='));
    if (std::find(known.begin(), known.end(), option) == known.end())
      return sentence(name, "option", option, known);
  }
  return name + ": " + one_line(error.what()) + " (see " + name + " --help)";
}

}  // namespace ashlar::tool
