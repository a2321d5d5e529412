// ashlar_help_pages FOLDER: writes the manual and the completions of `ashlar` to that folder. Run when
// the command is built. Exit codes: 0 done, 2 wrong usage, 3 a file cannot be written.
#include <CLI/App.hpp>

#include <cstdio>
#include <fstream>

#include "src/tool/command_line.h"
#include "src/tool/help_pages.h"

namespace {

bool write(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) std::fprintf(stderr, "%s: cannot be written\n", path.c_str());
  return static_cast<bool>(file);
}

}  // namespace

// NOLINTNEXTLINE(bugprone-exception-escape): std::bad_alloc, which ends the program.
int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: ashlar_help_pages FOLDER\n");
    return ashlar::tool::kExitUsage;
  }
  ashlar::tool::Commands commands;
  CLI::App app;
  ashlar::tool::build_command_line(app, commands);
  const ashlar::tool::CommandBook book = ashlar::tool::read_command_line(app);
  const std::string folder = std::string(argv[1]) + "/";
  const bool is_written = write(folder + "ashlar.1", ashlar::tool::man_page(book)) &&
                          write(folder + "ashlar.bash", ashlar::tool::bash_completion(book)) &&
                          write(folder + "_ashlar", ashlar::tool::zsh_completion(book)) &&
                          write(folder + "ashlar.fish", ashlar::tool::fish_completion(book));
  return is_written ? ashlar::tool::kExitDone : ashlar::tool::kExitUnreadable;
}
