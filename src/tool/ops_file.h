// Reads an `.ops` file, for every command that takes one.
//
// Thread safety: pure functions.
#pragma once

#include <optional>
#include <string>

#include "spec/ops/op.h"

namespace ashlar::tool {

/// The file at `path`, `-` for standard input. None after a line on stderr that says why, with the file's line.
std::optional<spec::OpFile> read_ops(const std::string& path);

}  // namespace ashlar::tool
