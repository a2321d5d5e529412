// Files by their content: what is read as which kind, and what is said of files that are no trace.
//
// Imitates: a user who passes the wrong file, or one with the wrong ending. Does not prove: anything about
// the readers of each kind (trace_test.cc, snapshot_import_test.cc).
#include <gtest/gtest.h>

#include "props/tool/pickles.h"
#include "src/tool/files.h"
#include "src/tool/trace_file.h"

namespace ashlar::tool {
namespace {

using namespace std::string_literals;

const std::string kTraceText = "{\"format\":\"alloc-trace\",\"version\":1}\na 0 64\n";
const std::string kSnapshot = R"({"segments": [], "device_traces": [[
  {"action": "alloc", "addr": 512, "size": 64, "stream": 0}]]})";
const std::string kLog =
    "Thread,Time,Action,Pointer,Size,Stream\n1,11:30:00.5,allocate,0x200,64,0\n";

std::string refused(const std::string& bytes) {
  std::string error;
  TraceSource source;
  EXPECT_FALSE(parse_trace_file(bytes, "x", {}, &source, &error).has_value()) << bytes;
  return error;
}

TEST(TraceFileTest, EachKindIsKnownByItsContentPlainOrGzip) {
  const std::string pickle = props::pickle_of(
      "}(X\x08\x00\x00\x00segments]X\x0d\x00\x00\x00"s + "device_traces]]}(X\x06\x00\x00\x00"s +
      "actionX\x05\x00\x00\x00"s + "allocX\x04\x00\x00\x00"s + "addrM\x00\x02X\x04\x00\x00\x00"s +
      "sizeK\x40uaau");
  const std::pair<std::string, FileKind> files[] = {{kTraceText, FileKind::kTrace},
                                                    {"\xef\xbb\xbf" + kTraceText, FileKind::kTrace},
                                                    {kSnapshot, FileKind::kSnapshotJson},
                                                    {"\n " + kSnapshot, FileKind::kSnapshotJson},
                                                    {pickle, FileKind::kPickle},
                                                    {kLog, FileKind::kRmmLog},
                                                    {"\xef\xbb\xbf" + kLog, FileKind::kRmmLog}};
  for (const auto& [bytes, kind] : files) {
    for (const bool is_zipped : {false, true}) {
      std::string error;
      TraceSource source;
      const auto trace = parse_trace_file(is_zipped ? gzip(bytes) : bytes, "folder/run.pickle.gz",
                                          {}, &source, &error);
      ASSERT_TRUE(trace.has_value()) << error;
      EXPECT_EQ(source.kind, kind);
      EXPECT_EQ(source.events, 1u);
      EXPECT_EQ(trace->name, "run");
      EXPECT_EQ(trace->peak_live, 64_B);
      EXPECT_EQ(trace->allocations, 1u);
    }
  }
}

TEST(TraceFileTest, AnotherFileIsNamedForWhatItIs) {
  const std::pair<std::string, std::string> files[] = {
      {"ashlar-ops 1 cache\n", "an .ops file; `ashlar check` runs it"},
      {"\x89"
       "APLAN\r\n\n",
       "a plan; `ashlar plan` takes it with --verify or --warm-start"},
      {"id,lower,upper,size\n0,1,2,3\n", "a planning problem; `ashlar plan` plans it"},
      {"id,lower,upper,size,offset\n", "a planning problem; `ashlar plan` plans it"},
      {"{\"rec\":\"meta\",\"align\":32}\n",
       "a model's graph; `ashlar graph` and `ashlar schedule` take it"},
      {"{\"traceEvents\": []}", "a trace for Chrome or Perfetto, which cannot be read back"},
      {"(dp0\n.", "a pickle of protocol 0 or 1; only 2 to 5 are read"},
      {"PK\x03\x04..",
       "a zip archive, as torch.save() writes; a snapshot is written with pickle.dump()"},
  };
  for (const auto& [bytes, what] : files) {
    EXPECT_EQ(refused(bytes), "x: is " + what);
    EXPECT_EQ(refused(gzip(bytes)), "x: is " + what);
  }
  EXPECT_EQ(refused("hello\n"), "x:1: neither a trace nor a memory snapshot nor a log of RMM");
  EXPECT_EQ(refused(""), "x:1: the file is empty");
  EXPECT_EQ(
      refused("{\"a\": 1}"),
      "x: root: neither 'segments' nor 'device_traces' is there, so it is no memory snapshot");
  EXPECT_NE(refused(gzip(kTraceText).substr(0, 12)).find("the gzip data is truncated"),
            std::string::npos);
  const std::string cut = gzip(kSnapshot);
  EXPECT_EQ(refused(cut.substr(0, cut.size() - 3)), "x: the gzip data is truncated");
}

TEST(TraceFileTest, AnImportTellsWhatItLeftOut) {
  TraceSource source;
  EXPECT_EQ(source_text(source), "");
  source = {FileKind::kPickle, 3, 10, 2, 1, 0};
  EXPECT_EQ(source_text(source),
            "a memory snapshot, device 3: 10 events, 2 skipped, 1 allocations live at the start");
  source = {FileKind::kRmmLog, 0, 7, 0, 0, 0};
  EXPECT_EQ(source_text(source), "a log of RMM: 7 events");
}

}  // namespace
}  // namespace ashlar::tool
