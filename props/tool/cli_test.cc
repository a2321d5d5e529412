// The `ashlar` command from end to end: exit codes, exact messages, clean stdout, and figures that can
// be computed by hand.
//
// Imitates: people at a shell, and scripts that parse the output. Does not prove: that the allocator
// is right (other suites), or figures of traces that are too large to compute by hand.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "props/tool/cli.h"

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

using ashlar::props::Ran;
using ashlar::props::slurp;

class CliTest : public ashlar::props::Cli {
 protected:
  void write_trace(const std::string& name, const std::string& events) {
    write(name, "{\"format\":\"alloc-trace\",\"version\":1}\n" + events);
  }

  Json run_json(const std::string& arguments, int code = 0) {
    const Ran ran = run("replay --json - " + arguments);
    EXPECT_EQ(ran.code, code) << ran.err;
    const Json json = Json::parse(ran.out, nullptr, false);
    EXPECT_TRUE(json.is_array()) << ran.out;
    return json;
  }

  Json page_data(const std::string& name) {
    const std::string page = slurp(folder_ / name);
    const std::string opening = "<script type=\"application/json\" id=\"data\">";
    const std::size_t begin = page.find(opening) + opening.size();
    return Json::parse(page.substr(begin, page.find("</script>", begin) - begin));
  }

  void expect_refused(const std::string& arguments, int code, const std::string& line) {
    const Ran ran = run(arguments);
    EXPECT_EQ(ran.code, code) << arguments;
    EXPECT_EQ(ran.out, "") << arguments;
    EXPECT_EQ(ran.err, line + "\n") << arguments;
  }
};

TEST_F(CliTest, TheVersionAndTheHelpGoToStdout) {
  EXPECT_EQ(run("--version").out.rfind("ashlar ", 0), 0u);
  EXPECT_EQ(run("--version").code, 0);
  EXPECT_EQ(run("replay --help").code, 0);
  EXPECT_NE(run("replay --help").out.find("--capacity"), std::string::npos);
}

TEST_F(CliTest, AUsageErrorExitsWithTwo) {
  write_trace("t.trace", "a 0 5\n");
  for (const char* arguments :
       {"", "replay", "check", "reduce", "frobnicate", "replay --bogus t.trace", "--bogus",
        "replay --device gpu t.trace", "replay --lag x t.trace", "replay --lag -1 t.trace"}) {
    const Ran ran = run(arguments);
    EXPECT_EQ(ran.code, 2) << arguments;
    EXPECT_EQ(ran.out, "") << arguments;
    EXPECT_NE(ran.err, "") << arguments;
  }
  const std::string sizes =
      "; sizes: 4096, 512K, 80GiB or 1.5GiB (powers of 1024), 10GB (powers of 1000)";
  expect_refused("replay --capacity much t.trace", 2,
                 "--capacity: 'much' is neither a size above 0 nor auto nor settled" + sizes);
  expect_refused("replay --capacity 0 t.trace", 2,
                 "--capacity: '0' is neither a size above 0 nor auto nor settled" + sizes);
  expect_refused(
      "replay --capacity 18000000000G t.trace", 2,
      "--capacity: '18000000000G' is neither a size above 0 nor auto nor settled" + sizes);
  expect_refused("replay --alter 0.1 t.trace", 2, "--alter: needs --planned");
  expect_refused("replay --planned --seed 4 t.trace", 2, "--seed: needs --alter or --perturb");
  EXPECT_EQ(run("replay --planned --alter 2 t.trace").code, 2);
  expect_refused("replay --planned --alter nan t.trace", 2, "--alter: between 0 and 1");
  expect_refused("replay --device host --lag 5 t.trace", 2,
                 "--lag: streams of the host are never late; use --device sim");
}

TEST_F(CliTest, AnUnreadableInputExitsWithThreeAndOneLine) {
  write_trace("good.trace", "a 0 5\n");
  write_trace("bad.trace", "a 0 5\nf 1\n");
  write("bad.ops", "ashlar-ops 1 cache\nalloc p0 12parsecs s0\n");
  expect_refused("replay none.trace", 3, "none.trace: No such file or directory");
  expect_refused("replay bad.trace", 3, "bad.trace:3: free of id 1, which was never allocated");
  expect_refused("replay --conf reuse:all good.trace", 2,
                 "--conf: reuse: 'all' is none of own, completed, ordered");
  expect_refused(
      "replay --conf pinned_use_background_threads:True good.trace", 2,
      "--conf: pinned_use_background_threads: known, but not built here; it can only be False (of "
      "page-locked memory: PinnedConfig::reap_ms)");
  expect_refused("check none.ops", 3, "none.ops: No such file or directory");
  EXPECT_EQ(run("check bad.ops").code, 3);
  EXPECT_EQ(run("check bad.ops").err.rfind("bad.ops:2: ", 0), 0u);
  EXPECT_EQ(run("reduce bad.ops").code, 3);
  const Ran ran = run("replay good.trace", "ASHLAR_ALLOC_CONF=wait_ms:soon");
  EXPECT_EQ(ran.code, 2);
  EXPECT_EQ(ran.err.rfind("ASHLAR_ALLOC_CONF: wait_ms: 'soon' is neither", 0), 0u) << ran.err;
}

TEST_F(CliTest, NothingIsWrittenIfNoInputIsGood) {
  write_trace("bad.trace", "a 0\n");
  write("worse.trace", "no header\n");
  EXPECT_EQ(run("replay worse.trace bad.trace --json out.json --report out.html").code, 3);
  EXPECT_FALSE(fs::exists(folder_ / "out.json"));
  EXPECT_FALSE(fs::exists(folder_ / "out.html"));
}

// `--json` without its value takes the trace behind it.
TEST_F(CliTest, ATraceIsNotReplacedByAnOutput) {
  write_trace("a.trace", "a 0 5\n");
  write_trace("b.trace", "a 0 5\n");
  const std::string before = slurp(folder_ / "a.trace");
  for (const char* option : {"--json", "--report"}) {
    const Ran ran = run(std::string("replay ") + option + " a.trace b.trace");
    EXPECT_EQ(ran.code, 3);
    EXPECT_EQ(ran.err, "a.trace: not replaced, because it is a file of another kind\n");
    EXPECT_EQ(slurp(folder_ / "a.trace"), before);
  }
  EXPECT_EQ(run("replay b.trace --json out.json").code, 0);
  EXPECT_EQ(run("replay b.trace --json out.json").code, 0) << "its own";
}

TEST_F(CliTest, AnOutputThatCannotBeWrittenIsReported) {
  write_trace("t.trace", "a 0 5\n");
  const Ran ran = run("replay t.trace --json no/folder.json");
  EXPECT_EQ(ran.code, 3);
  EXPECT_EQ(ran.err, "no/folder.json: No such file or directory\n");
}

TEST_F(CliTest, TheFiguresOfASmallTraceAreRight) {
  // 1000 B rounds to 1024 and lies in a page of 2 MiB; 12 MiB has six pages of its own.
  write_trace("t.trace", "a 0 1000\nm half\na 1 12582912\nf 0\na 2 1024\nf 1\n");
  const Json json = run_json("t.trace");
  ASSERT_EQ(json.size(), 1u);
  const Json& r = json[0];
  EXPECT_EQ(r["trace"], "t");
  EXPECT_EQ(r["events"], 5);
  EXPECT_EQ(r["allocations"], 3);
  EXPECT_EQ(r["peak_requested_bytes"], 12582912 + 1024);
  EXPECT_EQ(r["peak_allocated_bytes"], 12582912 + 1024);
  EXPECT_EQ(r["peak_reserved_bytes"], 12582912 + 2097152);
  EXPECT_DOUBLE_EQ(r["utilisation"].get<double>(), (12582912.0 + 1024) / (12582912 + 2097152));
  EXPECT_TRUE(r["capacity_bytes"].is_null());
  EXPECT_EQ(r["ooms"], 0);
  EXPECT_EQ(r["waits"], 0);
  EXPECT_EQ(r["moved_pages"], 0);
  EXPECT_EQ(r["settled"], false) << "nothing is repeated";
  EXPECT_EQ(r["divergences"], 0);
  EXPECT_EQ(r["driver_calls"]["page-create"], 7);
  EXPECT_GT(r["driver_us"].get<double>(), 0);
  EXPECT_GT(r["max_call_us"].get<double>(), 0);
  EXPECT_GT(r["ns_per_event"].get<double>(), 0);
  EXPECT_GE(r["timing_passes"].get<int>(), 5);
  EXPECT_FALSE(r.contains("checks"));
}

TEST_F(CliTest, ATraceThatWasNotTimedHasNoTime) {
  write_trace("none.trace", "");
  const Json none = run_json("none.trace")[0];
  EXPECT_TRUE(none["ns_per_event"].is_null());
  EXPECT_EQ(none["timing_passes"], 0);
  // The timing pass refuses the allocation too, and a refused request is not timed.
  write_trace("refused.trace", "a 0 33554432\n");
  EXPECT_EQ(
      run("replay refused.trace --json out.json --conf per_process_memory_fraction:0.00000001")
          .code,
      1);
  EXPECT_TRUE(Json::parse(slurp(folder_ / "out.json"))[0]["ns_per_event"].is_null());
}

TEST_F(CliTest, EveryOpOfACheckedRunIsCounted) {
  write_trace("t.trace", "a 0 1000\na 1 0\na 2 512\nf 1\nf 0\n");
  const Json r = run_json("--check t.trace")[0];
  EXPECT_EQ(r["divergences"], 0);
  // Two ops for each event: itself and a kernel on the block. Three ops of allocation 1, which has no
  // block, are skipped; one op sets the lag.
  EXPECT_EQ(r["checked_steps"], 2 * 5 - 3 + 1);
  EXPECT_EQ(r["skipped_steps"], 3);
}

TEST_F(CliTest, APlannedRunServesTheTraceFromOneSegmentForEachStream) {
  // At most 16 MiB + 16 MiB on one stream, and 4 MiB on another; each segment is rounded up.
  write_trace("t.trace", "a 0 16777216\na 1 16777216\nf 0\na 2 16777216\na 3 4194304 9\nf 1\n");
  for (const char* more : {"", "--check ", "--check --lag 3 ", "--device host "}) {
    const Json r = run_json(std::string("--planned ") + more + "t.trace")[0];
    EXPECT_EQ(r["events"], 8);  // with the frees of what the trace leaves live
    EXPECT_EQ(r["peak_reserved_bytes"], (36 << 20) + (4 << 20)) << more;
    EXPECT_EQ(r["ooms"], 0);
    EXPECT_EQ(r["divergences"], 0);
    EXPECT_GT(r["ns_per_event"].get<double>(), 0);
    const Json& planned = r["planned"];
    EXPECT_EQ(planned["managed"], 4);
    EXPECT_EQ(planned["plan_peak_bytes"], 36 << 20);
    EXPECT_EQ(planned["plan_lower_bound_bytes"], 36 << 20);
    EXPECT_EQ(planned["served"], 4);
    EXPECT_EQ(planned["fallbacks"], 0);
    EXPECT_EQ(planned["altered_events"], 0);
    EXPECT_EQ(planned["checked_steps"], *more == '\0' || more[2] == 'd' ? 0 : 8);
    EXPECT_TRUE(planned["first_difference"].is_null());
  }
  EXPECT_FALSE(run_json("t.trace")[0].contains("planned"));
}

TEST_F(CliTest, AnAlteredRunIsServedToo) {
  std::string events;
  for (int i = 0; i < 300; ++i) {
    events += "a " + std::to_string(i) + " " + std::to_string(512 * (1 + i % 7)) + "\n";
    if (i >= 5) events += "f " + std::to_string(i - 5) + "\n";
  }
  write_trace("t.trace", events);
  for (const char* seed : {"1", "2", "3"}) {
    const std::string arguments =
        std::string("--planned --alter 0.1 --check t.trace --seed ") + seed;
    const Json r = run_json(arguments)[0];
    EXPECT_EQ(r["ooms"], 0);
    EXPECT_EQ(r["divergences"], 0);
    const Json& planned = r["planned"];
    EXPECT_GT(planned["altered_events"], 20);
    EXPECT_GT(planned["served"], 50);
    EXPECT_GT(planned["fallbacks"], 0);
    EXPECT_EQ(planned["checked_steps"], r["events"]);
    EXPECT_EQ(planned["served"].get<int>() + planned["fallbacks"].get<int>(), r["allocations"]);
    EXPECT_EQ(planned["first_difference"].get<std::string>().rfind("stream 0: event ", 0), 0u);
    EXPECT_EQ(run_json(arguments)[0]["planned"]["late"], planned["late"]);
    const std::string said =
        std::to_string(planned["served"].get<int>()) + " served from the segment";
    EXPECT_NE(run("replay " + arguments).out.find(said), std::string::npos);
  }
}

TEST_F(CliTest, SeveralTracesGiveOneArrayAlsoInAFile) {
  write_trace("a.trace", "a 0 5\n");
  write_trace("b.trace", "a 0 5 1\na 1 5 2\nf 0\n");
  const Ran ran = run("replay a.trace b.trace --conf reuse:own --json out.json");
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_NE(ran.out.find("ns/event"), std::string::npos) << "the table is still printed";
  const Json json = Json::parse(slurp(folder_ / "out.json"));
  ASSERT_EQ(json.size(), 2u);
  EXPECT_EQ(json[1]["trace"], "b");
  EXPECT_EQ(json[1]["peak_reserved_bytes"], 4194304) << "two streams, two heaps";
}

TEST_F(CliTest, AnOutOfMemoryIsCountedAndExitsWithOne) {
  write_trace("t.trace", "a 0 33554432\na 1 33554432\na 2 33554432\nf 0\nf 1\nf 2\n");
  const Json json = run_json("--capacity 64MiB t.trace", 1);
  EXPECT_EQ(json[0]["ooms"], 1);
  EXPECT_EQ(json[0]["capacity_bytes"], 67108864);
  EXPECT_EQ(json[0]["peak_requested_bytes"], 67108864);
  EXPECT_NE(
      json[0]["first_trouble"].get<std::string>().find("Out of memory on device 0: 32.00 MiB"),
      std::string::npos);
}

TEST_F(CliTest, CapacityAutoFindsTheSmallestDevice) {
  write_trace("t.trace", "a 0 33554432\na 1 1000\nf 0\na 2 50331648\nf 2\nf 1\n");
  const Json json = run_json("--capacity auto t.trace");
  EXPECT_EQ(json[0]["capacity_bytes"], 50331648 + 2097152)
      << "the idle 32 MiB go back before 48 MiB are asked for";
  EXPECT_DOUBLE_EQ(json[0]["utilisation"].get<double>(),
                   (50331648.0 + 1000) / (50331648 + 2097152));
  EXPECT_EQ(run_json("--capacity 48MiB t.trace", 1)[0]["ooms"], 1);
  EXPECT_EQ(run_json("--capacity 50MiB t.trace")[0]["ooms"], 0);
}

TEST_F(CliTest, ALagMakesReclaimWait) {
  write_trace("t.trace", "a 0 33554432\nf 0\na 1 50331648\nf 1\n");
  const std::string segments = "--capacity 48MiB --lag 100 t.trace --conf backing:segments";
  EXPECT_EQ(run_json(segments)[0]["waits"], 1);
  EXPECT_EQ(run_json(segments + ",wait_ms:never", 1)[0]["ooms"], 1);
  EXPECT_EQ(run_json("--capacity 48MiB --lag 100 t.trace")[0]["waits"], 0)
      << "pages stay with their stream, whose order lets it use them at once";
}

TEST_F(CliTest, ACheckedRunSaysWhatItChecked) {
  write_trace("t.trace", "a 0 1000\na 1 5000000\nf 0\na 2 30000000 7\nf 1\n");
  for (const char* more :
       {"", "--lag 3", "--capacity auto", "--device host", "--conf reuse:ordered"}) {
    const Json r = run_json(std::string("--check t.trace ") + more)[0];
    EXPECT_EQ(r["divergences"], 0) << more;
    EXPECT_GE(r["walk_period"].get<int>(), 1);
    EXPECT_EQ(r["check_passes"], 2);
    for (const char* clause : {"C1", "C2", "C3", "C4", "C5", "C6", "C7", "C10", "C12", "C13", "C14",
                               "C15", "C16", "C17", "C18", "C24", "C25", "C26"}) {
      EXPECT_GT(r["checks"].value(clause, 0), 0) << clause;
    }
  }
}

TEST_F(CliTest, TheReportIsOnePageThatLoadsNothing) {
  write_trace("t.trace", "a 0 1000\nm </script><b>\na 1 5000000\nf 0\n");
  EXPECT_EQ(run("replay t.trace --report out.html").code, 0);
  const std::string page = slurp(folder_ / "out.html");
  for (const char* part :
       {"<canvas", "http:", "https:", "@import", "src=", "@DATA@", "</script><b>"}) {
    EXPECT_EQ(page.find(part), std::string::npos) << part;
  }
  const Json data = page_data("out.html");
  const Json& entry = data["traces"][0];
  EXPECT_EQ(entry["marks"][0][1], "</script><b>");
  EXPECT_EQ(entry["timeline"]["requested"]["max"], Json({1000, 1000, 5001000, 5000000}));
  EXPECT_EQ(entry["map"]["event"], 2);
  EXPECT_EQ(entry["map"]["segments"].size(), 2u);
}

TEST_F(CliTest, ThePageOfAPlannedRunHasThePlanOfEachStream) {
  write_trace("t.trace", "a 0 1000\na 1 5000000 7\nf 0\na 2 1000\nf 1\nf 2\n");
  ASSERT_EQ(run("replay --planned --check t.trace --report out.html").code, 0);
  const Json data = page_data("out.html");
  const Json& plans = data["traces"][0]["plans"];
  ASSERT_EQ(plans.size(), 2u);
  EXPECT_EQ(plans[0]["title"], "stream 0");
  EXPECT_EQ(plans[0]["spaces"][0]["boxes"].size(), 2u);
  EXPECT_EQ(plans[1]["title"], "stream 7");
  EXPECT_EQ(plans[1]["spaces"][0]["peak"], 5000000);
}

TEST_F(CliTest, ThePageNamesTheBuildAndTheMachine) {
  write_trace("t.trace", "a 0 1000\n");
  ASSERT_EQ(run("replay t.trace --report out.html").code, 0);
  const Json made = page_data("out.html")["made"];
  EXPECT_EQ("ashlar " + made["version"].get<std::string>() + "\n", run("--version").out);
  EXPECT_TRUE(made["commit"].is_string());
  for (const char* what : {"processor", "system"}) EXPECT_NE(made[what], "") << what;
  const std::string date = made["date"];
  EXPECT_EQ(date.substr(date.size() - 4), " UTC") << date;
}

TEST_F(CliTest, AnOpsFileIsCheckedAndItsFailureIsPlaced) {
  write("good.ops", "ashlar-ops 1 cache\nalloc p0 1MiB s0\nfree p0\n");
  write("bad.ops",
        "ashlar-ops 1 cache\nalloc p0 1MiB s0\n# so it says\nexpect out-of-memory\nfree p0\n");
  const Ran good = run("check good.ops");
  EXPECT_EQ(good.code, 0) << good.err;
  EXPECT_EQ(good.out.rfind("good.ops: ok, 2 ops, 0 skipped", 0), 0u) << good.out;
  write("rule.ops", "ashlar-ops 1 gpu\ndev-event e0 d0\ndev-query e0\nexpect ok\n");
  EXPECT_EQ(run("check rule.ops").code, 0) << run("check rule.ops").out;
  write("pool.ops", "ashlar-ops 1 pool\npool-grow 2MiB\npool-alloc p0 512\npool-free p0\n");
  EXPECT_EQ(run("check pool.ops").code, 0) << run("check pool.ops").out;
  write("bad_pool.ops",
        "ashlar-ops 1 pool\npool-grow 2MiB\npool-alloc p0 512\nexpect out-of-memory\n");
  EXPECT_EQ(run("check bad_pool.ops").code, 1);
  EXPECT_EQ(run("check bad_pool.ops").out.rfind("bad_pool.ops:4: pool: ", 0), 0u)
      << run("check bad_pool.ops").out;
  const Ran bad = run("check good.ops bad.ops");
  EXPECT_EQ(bad.code, 1);
  EXPECT_NE(bad.out.find("bad.ops:4: expect: "), std::string::npos) << bad.out;
}

TEST_F(CliTest, AFailingOpsFileIsReduced) {
  std::string text = "ashlar-ops 1 cache\n";
  for (int i = 0; i < 30; ++i) text += "alloc p" + std::to_string(i) + " 5MiB s0\n";
  text += "free p3\nalloc p30 1KiB s0\nexpect out-of-memory\nfree p4\n";
  write("bad.ops", text);
  const Ran ran = run("reduce bad.ops -o small.ops");
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.out, "");
  const std::string small = slurp(folder_ / "small.ops");
  EXPECT_EQ(std::count(small.begin(), small.end(), '\n'), 4) << small;
  EXPECT_EQ(run("check small.ops").code, 1);
  write("good.ops", "ashlar-ops 1 cache\nalloc p0 1MiB s0\n");
  expect_refused("reduce good.ops", 1, "good.ops: passes every check; there is nothing to reduce");
}

}  // namespace
