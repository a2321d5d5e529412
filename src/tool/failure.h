// How a command ends that cannot go on: one line on stderr, and its exit code.
//
// Thread safety: any thread.
#pragma once

#include <cstdio>
#include <string>

namespace ashlar::tool {

/// Prints the line to stderr and returns `code`.
inline int fail(int code, const std::string& line) {
  std::fprintf(stderr, "%s\n", line.c_str());
  return code;
}

}  // namespace ashlar::tool
