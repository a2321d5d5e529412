// The manual and the completions that are installed with the command.
//
// Imitates: a user who reads `man ashlar`, and one who presses Tab in bash, zsh or fish. `ashlar --help`
// is the judge of what there is. Does not prove: that descriptions are true, or how zsh's menus look.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "props/tool/cli.h"
#include "src/tool/help_pages.h"

namespace {

using ashlar::props::slurp;
using ashlar::tool::BookCommand;
using ashlar::tool::BookOption;
using ashlar::tool::CommandBook;
using ashlar::tool::ValueForm;

bool has_program(const std::string& name) {
  return std::system(("command -v " + name + " >/dev/null 2>&1").c_str()) == 0;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

class HelpPagesTest : public ashlar::props::Cli {
 protected:
  // What a shell prints for the script, and its errors.
  std::string shell(const std::string& program, const std::string& script) {
    write("script", script);
    const std::string command =
        "cd '" + folder_.string() + "' && " + program + " script >out.txt 2>&1";
    const int status = std::system(command.c_str());
    return slurp(folder_ / "out.txt") + (status == 0 ? "" : "(failed)\n");
  }

  static std::string page(const std::string& name) { return ASHLAR_PAGES_PATH "/" + name; }

  // The commands that the help lists.
  std::vector<std::string> commands() {
    const std::string help = run("--help").out;
    std::istringstream lines(help.substr(help.find("Subcommands:")));
    std::vector<std::string> names;
    std::string line;
    std::getline(lines, line);
    while (std::getline(lines, line)) {
      if (line.rfind("  ", 0) == 0 && line.size() > 2 && line[2] != ' ')
        names.push_back(line.substr(2, line.find(' ', 2) - 2));
    }
    return names;
  }

  // The options, with their dashes, that a help lists: "  -o,--output TEXT   where ...".
  std::vector<std::string> options(const std::string& command) {
    std::istringstream lines(run(command + " --help").out);
    std::vector<std::string> names;
    std::string line;
    while (std::getline(lines, line)) {
      if (line.rfind("  -", 0) != 0) continue;
      std::istringstream first(replaced(line.substr(0, line.find(' ', 2)), ",", " "));
      std::string name;
      while (first >> name) names.push_back(name);
    }
    return names;
  }

  // What bash offers for the last of these words.
  std::vector<std::string> completed(const std::vector<std::string>& words) {
    std::string line;
    for (const std::string& word : words) line += " '" + word + "'";
    std::istringstream offered(
        shell("bash --norc", ". '" + page("ashlar.bash") + "'\nCOMP_WORDS=(" + line +
                                 ")\nCOMP_CWORD=" + std::to_string(words.size() - 1) +
                                 "\n_ashlar\nprintf '%s\\n' \"${COMPREPLY[@]}\"\n"));
    std::vector<std::string> names;
    std::string name;
    while (std::getline(offered, name)) names.push_back(name);
    std::sort(names.begin(), names.end());
    return names;
  }

  static std::vector<std::string> sorted(std::vector<std::string> names) {
    std::sort(names.begin(), names.end());
    return names;
  }
};

using Words = std::vector<std::string>;

TEST_F(HelpPagesTest, TheManualHasEveryCommandAndOption) {
  const std::string manual = slurp(page("ashlar.1"));
  ASSERT_GE(commands().size(), 6u);
  for (const std::string& command : commands()) {
    const std::size_t begin = manual.find("\n.SS " + command + "\n");
    ASSERT_NE(begin, std::string::npos) << command;
    const std::string section = manual.substr(begin, manual.find("\n.S", begin + 1) - begin);
    ASSERT_GE(options(command).size(), 2u) << command;
    for (const std::string& option : options(command)) {
      const std::string name = "\\fB" + replaced(option, "-", "\\-") + "\\fR";
      EXPECT_NE(section.find(name), std::string::npos) << command << " " << option;
    }
  }
}

TEST_F(HelpPagesTest, TheExamplesOfTheManualParse) {
  for (const ashlar::tool::HelpExample& example : ashlar::tool::kHelpExamples) {
    const std::string line = example.line;
    ASSERT_EQ(line.rfind("ashlar ", 0), 0u);
    const ashlar::props::Ran ran = run(line.substr(7));
    EXPECT_EQ(ran.code, 3) << line
                           << ": the files do not exist, and the rest is right: " << ran.err;
  }
}

TEST_F(HelpPagesTest, TheManualIsCleanRoff) {
  std::istringstream lines(slurp(page("ashlar.1")));
  const Words requests = {".\\\"", ".TH", ".SH", ".SS", ".TP", ".PP", ".br"};
  std::string line;
  while (std::getline(lines, line)) {
    EXPECT_NE(line, "");
    if (line[0] == '.') {
      EXPECT_EQ(std::count(requests.begin(), requests.end(), line.substr(0, line.find(' '))), 1)
          << line;
    }
    EXPECT_NE(line[0], '\'') << line;
  }
  if (has_program("groff")) {
    EXPECT_EQ(shell("sh", "groff -man -Tutf8 -ww -z '" + page("ashlar.1") + "'\n"), "");
  }
  if (has_program("mandoc")) {
    EXPECT_EQ(shell("sh", "mandoc -T lint -W error '" + page("ashlar.1") + "'\n"), "");
  }
}

TEST_F(HelpPagesTest, BashCompletesCommandsAndOptions) {
  EXPECT_EQ(completed({"ashlar", ""}), sorted(commands()));
  EXPECT_EQ(completed({"ashlar", "gr"}), Words{"graph"});
  EXPECT_EQ(completed({"ashlar", "--v"}), Words{"--version"});
  for (const std::string& command : commands())
    EXPECT_EQ(completed({"ashlar", command, "-"}), sorted(options(command))) << command;
  EXPECT_EQ(completed({"ashlar", "replay", "--dev"}), Words{"--device"});
}

TEST_F(HelpPagesTest, BashCompletesTheValuesOfOptions) {
  EXPECT_EQ(completed({"ashlar", "replay", "--device", ""}), (Words{"host", "sim"}));
  EXPECT_EQ(completed({"ashlar", "replay", "t.trace", "--device", "s"}), Words{"sim"});
  EXPECT_EQ(completed({"ashlar", "replay", "--device", "="}), (Words{"host", "sim"}));
  EXPECT_EQ(completed({"ashlar", "replay", "--device", "=", "h"}), Words{"host"});
  EXPECT_EQ(completed({"ashlar", "schedule", "--placement", "a"}), (Words{"alternate", "auto"}));
  EXPECT_EQ(completed({"ashlar", "replay", "--lag", ""}), Words{""}) << "a number has no names";
}

TEST_F(HelpPagesTest, BashCompletesFilesWhereFilesAreTaken) {
  write("my run.trace", "");
  write("other", "");
  EXPECT_EQ(completed({"ashlar", "replay", "my"}), Words{"my run.trace"});
  EXPECT_EQ(completed({"ashlar", "replay", "--report", "oth"}), Words{"other"});
  EXPECT_EQ(completed({"ashlar", "plan", "-o", "oth"}), Words{"other"});
}

TEST_F(HelpPagesTest, FishCompletesThem) {
  if (!has_program("fish")) GTEST_SKIP() << "no fish here";
  const auto offered = [&](const std::string& line) {
    return shell("fish --no-config", "source '" + page("ashlar.fish") + "'\ncomplete -C '" + line +
                                         "' | string replace -r '\\t.*' ''\n");
  };
  EXPECT_EQ(offered("ashlar gr"), "graph\n");
  EXPECT_EQ(offered("ashlar replay --device "), "host\nsim\n");
  for (const std::string& command : commands()) {
    const std::string all = "\n" + offered("ashlar " + command + " -");
    for (const std::string& option : options(command))
      EXPECT_NE(all.find("\n" + option + "\n"), std::string::npos)
          << command << " " << option << all;
  }
}

TEST_F(HelpPagesTest, ZshReadsTheCompletion) {
  if (!has_program("zsh")) GTEST_SKIP() << "no zsh here";
  const std::string script = slurp(page("_ashlar"));
  EXPECT_EQ(shell("zsh -f -n", script), "");
  for (const std::string& command : commands()) {
    for (const std::string& option : options(command))
      EXPECT_NE(script.find(option), std::string::npos) << command << " " << option;
  }
}

// A description may hold whatever the shells and roff take for their own.
TEST_F(HelpPagesTest, AwkwardDescriptionsAreQuoted) {
  BookOption option;
  option.names = {"-x", "--ex"};
  option.value = "TEXT";
  option.kind = ValueForm::kText;
  option.description = ".it's [a] \\ \"b\" $(touch planted): `touch planted` {c}";
  CommandBook book;
  book.program.description = "'quoted' at the line's start";
  book.commands = {BookCommand{"run", option.description, {option}}};
  write("ashlar.1", man_page(book));
  EXPECT_NE(man_page(book).find("\n\\&.it's [a] \\e"), std::string::npos) << man_page(book);
  EXPECT_NE(man_page(book).find("\n\\&'quoted'"), std::string::npos);
  EXPECT_EQ(shell("bash --norc", bash_completion(book)), "");
  if (has_program("zsh")) {
    EXPECT_EQ(shell("zsh -f -n", zsh_completion(book)), "");
    EXPECT_NE(zsh_completion(book).find("\\[a\\] \\\\ "), std::string::npos)
        << zsh_completion(book);
  }
  if (has_program("fish")) {
    EXPECT_EQ(shell("fish --no-config", fish_completion(book) + "complete -C 'ashlar run --e'\n"),
              "--ex\t" + option.description + "\n");
  }
  EXPECT_FALSE(std::filesystem::exists(folder_ / "planted"));
}

}  // namespace
