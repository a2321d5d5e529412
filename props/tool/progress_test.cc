// The line that shows how far a command is: on a terminal, with the time, and gone at the end; nowhere
// else.
//
// Imitates: a user at a terminal, a log, an editor's dumb terminal. Does not prove: that the shown part
// grows evenly.
#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <regex>
#include <string>

#include "cli.h"
#include "props/sanitizers.h"

namespace ashlar::props {
namespace {

// Runs commands with a terminal as stderr, and keeps what is drawn there.
class ProgressTest : public Cli {
 protected:
  // `arguments` run on a terminal of `columns`; out: what the terminal got, err: nothing.
  Ran run_on_terminal(const std::string& arguments, const std::string& environment = "TERM=xterm",
                      unsigned short columns = 100) {
    const int master = ::posix_openpt(O_RDWR | O_NOCTTY);
    EXPECT_GE(master, 0);
    EXPECT_EQ(::grantpt(master), 0);
    EXPECT_EQ(::unlockpt(master), 0);
    winsize size{};
    size.ws_col = columns;
    const std::string terminal = ::ptsname(master);
    const int slave = ::open(terminal.c_str(), O_RDWR | O_NOCTTY);  // keeps what was drawn
    EXPECT_EQ(::ioctl(master, TIOCSWINSZ, &size), 0);
    const std::string command =
        "cd '" + folder_.string() + "' && " + environment + " '" ASHLAR_TOOL_PATH "' " + arguments +
        " >out.txt 2>'" + terminal + "' </dev/null; echo $? >code.txt; echo >'" + terminal + "'";
    std::FILE* const shell = ::popen(command.c_str(), "r");
    std::string drawn;
    // The terminal holds a few kB only, so it is read meanwhile; a newline is the end.
    for (char c = 0; c != '\n' && ::read(master, &c, 1) == 1;) drawn += c;
    ::pclose(shell);
    ::close(slave);
    ::close(master);
    return {std::atoi(slurp(folder_ / "code.txt").c_str()), slurp(folder_ / "out.txt"), drawn};
  }

  // The same word so often that the command takes over half a second.
  static std::string often(const std::string& word, int times) {
    std::string words;
    for (int i = 0; i < times; ++i) words += " " + word;
    return words;
  }

  /// A command that is done within half a second draws nothing: it gets more to do, `times` at first.
  template <class Arguments>
  void expect_shown_of(Arguments&& arguments, int times, int times_max, const std::string& what) {
    Ran ran = run_on_terminal(arguments(times));
    while (ran.err.find(what) == std::string::npos && times < times_max) {
      times = std::min(4 * times, times_max);
      ran = run_on_terminal(arguments(times));
    }
    expect_shown(ran, what);
  }

  void expect_shown(const Ran& ran, const std::string& what) {
    EXPECT_NE(ran.err.find(what), std::string::npos) << what << ": " << ran.err;
    EXPECT_TRUE(std::regex_search(ran.err, std::regex("[0-9] s( |\r)"))) << "the time: " << ran.err;
    const std::size_t removed = ran.err.rfind("\r\x1b[K");
    ASSERT_NE(removed, std::string::npos) << what;
    EXPECT_EQ(ran.err.find(what, removed + 4), std::string::npos) << "it is left: " << ran.err;
  }
};

constexpr const char* kGraph =
    R"({"rec":"meta","align":32,"n_nodes":1}
{"rec":"tensor","id":0,"op":"NONE","type":"f32","ne":[8,4,1,1],"nb":[4,32,128,128],"srcs":[],"prealloc":true,"layer":0}
{"rec":"tensor","id":1,"op":"NONE","type":"f32","ne":[8,2,1,1],"nb":[4,32,64,64],"srcs":[],"flags":["input"],"layer":-1}
{"rec":"tensor","id":2,"op":"MUL_MAT","type":"f32","ne":[4,2,1,1],"nb":[4,16,32,32],"srcs":[0,1],"flags":["output"],"layer":0}
)";

// Each command below takes about a second on a machine that is idle. AddressSanitizer, and the walks that
// are built with it, make it take many times as long.
constexpr int kShare = kHasAddressSanitizer ? 10 : 1;
/// As many words fit in one argument of the shell.
constexpr int kWordsMax = 60'000;

class LongCommands : public ProgressTest {
 protected:
  void SetUp() override {
    ProgressTest::SetUp();
    std::string trace = "{\"format\":\"alloc-trace\",\"version\":1}\n";
    for (int i = 0; i < 300'000 / kShare; ++i) {
      const std::string id = std::to_string(i);
      trace += "a " + id + " 1000\nf " + id + "\n";
    }
    write("t", trace);
  }
  void write_ops() {
    const std::string pair = "alloc p0 1MiB s0\nfree p0\n";
    write("good.ops", "ashlar-ops 1 cache\n" + pair);
    std::string bad = "ashlar-ops 1 cache\n";
    for (int i = 0; i < 200'000 / kShare; ++i) bad += pair;
    write("bad.ops", bad + "alloc p1 1MiB s0\nexpect out-of-memory\n");
  }
  void write_problem() {
    std::string problem = "id,lower,upper,size\n";
    std::uint32_t x = 1;
    const auto random = [&x](std::uint32_t below) {
      x = x * 1103515245u + 12345u;
      return (x >> 16) % below;
    };
    for (int i = 0; i < 150'000; ++i) {
      const std::uint32_t lower = random(32768);
      problem += std::to_string(i) + "," + std::to_string(lower) + "," +
                 std::to_string(lower + 1 + random(50)) + "," + std::to_string(1 + random(997)) +
                 "\n";
    }
    write("p.csv", problem);
  }
};

TEST_F(LongCommands, ShowItOnATerminalWithTheTimeAndRemoveIt) {
  write_ops();
  write_problem();
  write("g", kGraph);
  expect_shown(run_on_terminal("replay --check t"), "checking t");
  expect_shown_of(
      [](int times) { return "check --rounds " + std::to_string(times) + " good.ops good.ops"; },
      300'000 / kShare, 1'000'000, "checking: good.ops");
  expect_shown(run_on_terminal("reduce bad.ops -o min.ops"), "reducing bad.ops: ");
  expect_shown(run_on_terminal("plan p.csv --time-limit 1.5"), "planning: peak ");
  expect_shown_of([](int times) { return "graph" + often("g", times); }, 15'000 / kShare, kWordsMax,
                  "planning graphs");
  expect_shown_of([](int times) { return "schedule" + often("g", times); }, 40'000 / kShare,
                  kWordsMax, "scheduling graphs");
}

TEST_F(LongCommands, DrawNothingInAPipeOrOnADumbTerminal) {
  EXPECT_EQ(run("replay --check t").err, "");
  for (const char* environment : {"TERM=dumb", "env -u TERM"})
    EXPECT_EQ(run_on_terminal("replay --check t", environment).err, "\r\n") << environment;
}

TEST_F(LongCommands, HaveNoColourAndDoNotWrap) {
  const Ran ran = run_on_terminal("replay --check t", "TERM=xterm NO_COLOR=1", 30);
  expect_shown(ran, "[");
  for (std::size_t at = 0; (at = ran.err.find("\r\x1b[K", at)) != std::string::npos;) {
    at += 4;
    const std::string drawn = ran.err.substr(at, ran.err.find('\r', at) - at);
    EXPECT_LT(drawn.size(), 30u) << "a line that wraps: " << drawn;
    EXPECT_EQ(drawn.find('\x1b'), std::string::npos) << drawn;
  }
}

}  // namespace
}  // namespace ashlar::props
