// The stored sequences of a folder (props/regressions), for suites that run them.
//
// Thread safety: none. A file that cannot be read or parsed fails the test that asked for it.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "spec/ops/text.h"

namespace ashlar::props {

/// Calls run(file, path) for every `.ops` file there that drives `subject`; returns how many.
template <class Run>
unsigned for_each_stored(const char* folder, spec::Subject subject, Run&& run) {
  unsigned count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".ops") continue;
    std::ifstream in(entry.path());
    std::stringstream text;
    text << in.rdbuf();
    spec::OpFile file;
    spec::TextError error;
    if (!spec::parse_ops(text.str(), &file, &error)) {
      ADD_FAILURE() << entry.path() << ":" << error.line << ": " << error.reason;
      continue;
    }
    if (file.subject != subject) continue;
    count += 1;
    run(file, entry.path());
  }
  return count;
}

}  // namespace ashlar::props
