// Runs the `ashlar` command for suites: in a folder of its own, with its output captured.
//
// Thread safety: none; one suite to a process. ASHLAR_TOOL_PATH is the program's path; the environment
// variable ASHLAR_TOOL, if set, names another one, so that a suite can be shown to fail with an old one.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace ashlar::props {

struct Ran {
  int code;
  std::string out;
  std::string err;
};

inline std::string slurp(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class Cli : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "ashlar-cli-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    ASSERT_EQ(unsetenv("ASHLAR_ALLOC_CONF"), 0);
    ASSERT_EQ(unsetenv("PYTORCH_CUDA_ALLOC_CONF"), 0);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // Runs in the test's folder, so that messages name files as written here.
  Ran run(const std::string& arguments, const std::string& environment = "") {
    return shell(environment + " \"$ASHLAR\" " + arguments);
  }

  // Runs a line of shell in the test's folder, in which $ASHLAR is the program.
  Ran shell(const std::string& line) {
    const char* const other = std::getenv("ASHLAR_TOOL");
    const std::string program = other == nullptr ? ASHLAR_TOOL_PATH : other;
    const std::string command = "cd '" + folder_.string() + "' && export ASHLAR='" + program +
                                "' && { " + line + "\n} >out.txt 2>err.txt </dev/null";
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, slurp(folder_ / "out.txt"),
            slurp(folder_ / "err.txt")};
  }

  void write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name, std::ios::binary) << text;
  }

  std::filesystem::path folder_;
};

}  // namespace ashlar::props
