// What a command line that cannot be parsed is told: with the word that was probably meant.
//
// Thread safety: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <CLI/App.hpp>
#include <CLI/Error.hpp>

namespace ashlar::tool {

/// One line on the error. `arguments` are those of the command line, without the program's name.
std::string usage_error(const CLI::App& app, const std::vector<std::string>& arguments,
                        const CLI::ParseError& error);

}  // namespace ashlar::tool
