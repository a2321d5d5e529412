// The readers of documents: pickles opcode by opcode, JSON, and what they refuse.
//
// Imitates: what CPython and PyTorch write; damaged files; pickles that are made to harm the reader. Does
// not prove: anything about arbitrary bytes (fuzz/trace_import_fuzz.cc), or about what a document means
// (snapshot_import_test.cc).
#include <gtest/gtest.h>

#include "props/tool/pickles.h"
#include "src/tool/json_document.h"
#include "src/tool/pickle_opcodes.h"
#include "src/tool/pickle_reader.h"

namespace ashlar::tool {
namespace {

using namespace std::string_literals;
using props::pickle_of;
using props::show;

std::string shown(const std::string& bytes) {
  std::string error;
  const auto document = parse_pickle(bytes, "p", &error);
  return document ? show(document->arena, document->root) : error;
}

std::string shown_json(const std::string& text) {
  std::string error;
  const auto document = parse_json_document(text, "j", &error);
  return document ? show(document->arena, document->root) : error;
}

TEST(PickleReaderTest, EachOpcodeOfASnapshotIsRead) {
  const std::pair<std::string, std::string> cases[] = {
      {"N", "None"},
      {"\x88", "True"},
      {"\x89", "False"},
      {"K\xff"s, "255"},
      {"M\xff\xff"s, "65535"},
      {"J\xfe\xff\xff\xff"s, "-2"},
      {"J\x01\x02\x03\x04"s, "67305985"},
      {"\x8a\x00"s, "0"},
      {"\x8a\x01\x80"s, "-128"},
      {"\x8a\x01\x7f"s, "127"},
      {"\x8a\x02\x00\x80"s, "-32768"},
      {"\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f"s, "9223372036854775807"},
      {"\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x80"s, "-9223372036854775808"},
      {"\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\x00"s, "18446744073709551615"},
      {"\x8a\x09\xff\xff\xff\xff\xff\xff\xff\x7f\xff"s, "huge"},
      {"\x8a\x09\xfe\xff\xff\xff\xff\xff\xff\xff\xff"s, "-2"},
      {"\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\x01"s, "huge"},
      {"G\x3f\xf8\x00\x00\x00\x00\x00\x00"s, "1.5"},
      {"X\x03\x00\x00\x00"s + "abc", "'abc'"},
      {"\x8c\x03"s + "abc", "'abc'"},
      {"]", "[]"},
      {"}", "{}"},
      {")", "()"},
      {"K\x01\x85"s, "(1,)"},
      {"K\x01K\x02\x86"s, "(1, 2)"},
      {"K\x01K\x02K\x03\x87"s, "(1, 2, 3)"},
      {"(K\x01K\x02K\x03K\x04t"s, "(1, 2, 3, 4)"},
      {"(K\x01K\x02l"s, "[1, 2]"},
      {"(K\x01K\x02"s + "d", "{1: 2}"},
      {"]K\x01"s + "a", "[1]"},
      {"](K\x01K\x02"s + "e", "[1, 2]"},
      {"](e", "[]"},
      {"](K\x01K\x02"s + "e(K\x03"s + "e", "[1, 2, 3]"},
      {"}K\x01K\x02s"s, "{1: 2}"},
      {"}(K\x01K\x02K\x03K\x04u"s, "{1: 2, 3: 4}"},
      {"](K\x07q\x00h\x00"s + "e", "[7, 7]"},
      {"](K\x07r\x00\x01\x00\x00j\x00\x01\x00\x00"s + "e",
       "p: offset 6: memo index 256 is not among the next ones"},
      {"](K\x07r\x01\x00\x00\x00j\x01\x00\x00\x00"s + "e", "[7, 7]"},
      {"](K\x07\x94h\x00K\x08\x94h\x01"s + "e", "[7, 7, 8, 8]"},
      {"\x95\x01\x00\x00\x00\x00\x00\x00\x00N"s, "None"},
  };
  for (const auto& [opcodes, text] : cases) EXPECT_EQ(shown(pickle_of(opcodes)), text);
}

TEST(PickleReaderTest, EveryOtherOpcodeIsRefusedByNameAtItsOffset) {
  for (const RefusedOpcode& refused : kRefusedOpcodes) {
    const std::string code(1, static_cast<char>(refused.code));
    EXPECT_EQ(shown(pickle_of("N" + code)),
              "p: offset 3: opcode "s + refused.name +
                  (refused.runs_code ? ", which would run code, is refused"
                                     : " does not occur in memory snapshots"));
  }
  // What a harmful pickle looks like: os.system of a text.
  EXPECT_EQ(shown(pickle_of("cos\nsystem\nX\x02\x00\x00\x00ls\x85R"s)),
            "p: offset 2: opcode GLOBAL, which would run code, is refused");
  EXPECT_EQ(shown(pickle_of("\x8c\x02os\x8c\x06system\x93"s)),
            "p: offset 14: opcode STACK_GLOBAL, which would run code, is refused");
  // Each byte is an opcode that is read, one that is refused by name, or none.
  unsigned unknown = 0;
  for (unsigned code = 0; code < 256; ++code) {
    const std::string text = shown(pickle_of(std::string(1, static_cast<char>(code))));
    if (text == "p: offset 2: byte " + std::to_string(code) + " is no opcode") ++unknown;
  }
  EXPECT_EQ(unknown, 256u - 32u - std::size(kRefusedOpcodes));
}

TEST(PickleReaderTest, OnlyTheProtocols2To5AreRead) {
  for (const char protocol : {'\x02', '\x03', '\x04', '\x05'})
    EXPECT_EQ(shown("\x80"s + protocol + "N."), "None");
  const std::string advice =
      ", only 2 to 5 are read: write it with pickle.dump(snapshot, file, protocol=4)";
  for (const int protocol : {0, 1, 6, 255}) {
    EXPECT_EQ(shown("\x80"s + static_cast<char>(protocol) + "N."),
              "p: offset 0: protocol " + std::to_string(protocol) + advice);
  }
  EXPECT_EQ(shown("(dp0\n."), "p: offset 0: a pickle of protocol 2 to 5 begins with PROTO");
  EXPECT_EQ(shown(pickle_of("\x80\x02N"s)), "p: offset 2: a second PROTO");
}

TEST(PickleReaderTest, AListMayGrowAnyNumberOfTimes) {
  std::string opcodes = "]";
  std::string expected;
  for (char i = 1; i < 6; ++i) {
    opcodes += "(K"s + i + "e";
    expected += (i == 1 ? "" : ", ") + std::to_string(i);
  }
  std::string error;
  const std::string bytes = props::pickle_of(opcodes);
  const auto document = parse_pickle(bytes, "p", &error);
  ASSERT_TRUE(document.has_value()) << error;
  EXPECT_EQ(props::show(document->arena, document->root), "[" + expected + "]");
}

TEST(PickleReaderTest, WhatTheMachineCannotDoIsRefused) {
  const std::string few = "the stack has too few values";
  const std::pair<std::string, std::string> cases[] = {
      {"", "2: the stack has 0 values at the end, not one"},
      {"NN", "4: the stack has 2 values at the end, not one"},
      {"N(", "4: a mark is open at the end"},
      {"t", "2: there is no mark"},
      {"l", "2: there is no mark"},
      {"d", "2: there is no mark"},
      {"]e", "3: there is no mark"},
      {"}u", "3: there is no mark"},
      {"\x85", "2: " + few},
      {"N\x86", "3: " + few},
      {"N(\x85", "4: " + few},
      {"Na", "3: " + few},
      {"}Ns", "4: " + few},
      {"(Ne", "4: " + few},
      {"q\x00"s, "2: " + few},
      {"(q\x00"s, "3: " + few},
      {"\x94", "2: " + few},
      {"h\x00"s, "2: memo index 0 was never set"},
      {"Nq\x01h\x00"s, "5: memo index 0 was never set"},
      {"Nr\xff\xff\xff\xff"s, "3: memo index 4294967295 is not among the next ones"},
      {"NNa", "4: values are added to what is no list"},
      {")Na", "4: values are added to what is no list"},
      {"]NNs", "5: values are added to what is no dict"},
      {"}(Nu", "5: a key has no value"},
      {"(Nd", "4: a key has no value"},
      {"}]Ns", "5: a key is a list or a dict"},
      {"X\xff\xff\xff\xff"s, "2: the pickle is truncated"},
      {"\x8a\xff\x00"s, "2: the pickle is truncated"},
      {"\x95\xff\xff\xff\xff\xff\xff\xff\xffN"s, "2: the pickle is truncated"},
      {"N.N", "4: bytes follow the pickle"},
  };
  for (const auto& [opcodes, text] : cases)
    EXPECT_EQ(shown(pickle_of(opcodes)), "p: offset " + text) << opcodes;
}

TEST(PickleReaderTest, MarksDoNotNestWithoutEnd) {
  const std::string marks(kDocumentDepthMax, '(');
  std::string closes;
  for (std::size_t i = 0; i < kDocumentDepthMax; ++i) closes += 't';
  EXPECT_EQ(shown(pickle_of(marks + closes)).size(), 3 * kDocumentDepthMax - 1);
  EXPECT_EQ(shown(pickle_of("(" + marks + closes)), "p: offset 66: more than 64 marks are open");
}

// Each level holds the one below twice: as text it would be 2^40 values.
TEST(PickleReaderTest, WhatAPickleSharesStaysShared) {
  std::string bomb = "N\x94"s;
  for (char level = 0; level < 40; ++level) bomb += "h"s + level + "h"s + level + "\x86\x94";
  bomb = pickle_of("(" + bomb + "t");
  std::string error;
  const auto shared = parse_pickle(bomb, "p", &error);
  ASSERT_TRUE(shared.has_value()) << error;
  EXPECT_EQ(shared->arena.size(), 42u);
  EXPECT_EQ(shared->arena[shared->root].length, 41u);
}

TEST(PickleReaderTest, AContainerMayHoldItself) {
  std::string error;
  const std::string bytes = pickle_of("]q\x00h\x00"s + "a");
  const auto document = parse_pickle(bytes, "p", &error);
  ASSERT_TRUE(document.has_value()) << error;
  EXPECT_EQ(document->arena.items(document->root), std::vector<ValueId>{document->root});
}

TEST(PickleReaderTest, OfEqualKeysTheLastCounts) {
  std::string error;
  const std::string bytes = pickle_of("}(X\x01\x00\x00\x00kK\x01X\x01\x00\x00\x00kK\x02u"s);
  const auto document = parse_pickle(bytes, "p", &error);
  ASSERT_TRUE(document.has_value()) << error;
  const auto found = document->arena.find(document->root, "k");
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(show(document->arena, *found), "2");
  EXPECT_FALSE(document->arena.find(document->root, "l").has_value());
}

/// A document with every type that a snapshot has, as Python's program text.
const char* const kPythonDocument =
    "{\"segments\": [], \"device_traces\": [[{\"action\": \"alloc\", \"addr\": 139637976727552, "
    "\"size\": -5, \"stream\": 70000, \"small\": 300, \"f\": 1.5, \"t\": (0, 1), \"u\": (1,), "
    "\"v\": (1, 2, 3, 4), \"n\": None, \"b\": True, \"c\": False, \"e\": (), \"big\": 2**64, "
    "\"g\": "
    "-2**63}] * 2], \"text\": \"x\" * 300}";
const char* const kShownDocument =
    "{'segments': [], 'device_traces': [[{'action': 'alloc', 'addr': 139637976727552, 'size': -5, "
    "'stream': 70000, 'small': 300, 'f': 1.5, 't': (0, 1), 'u': (1,), 'v': (1, 2, 3, 4), 'n': "
    "None, "
    "'b': True, 'c': False, 'e': (), 'big': huge, 'g': -9223372036854775808}";

TEST(PickleReaderTest, WhatPythonWritesInEachProtocolIsRead) {
  if (!props::has_python()) GTEST_SKIP() << "there is no python3";
  for (const int protocol : {2, 3, 4, 5}) {
    const std::string bytes =
        props::python("import pickle, sys; pickle.dump("s + kPythonDocument +
                      ", sys.stdout.buffer, protocol=" + std::to_string(protocol) + ")");
    EXPECT_EQ(shown(bytes).rfind(kShownDocument, 0), 0u) << protocol << ": " << shown(bytes);
    // A file that was cut off anywhere is refused.
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      const std::string cut = shown(bytes.substr(0, size));
      EXPECT_EQ(cut.rfind("p: offset ", 0), 0u) << size;
    }
  }
}

/// {'a': [1, -1, 2.5], 'b': (None, True)} as CPython 3.11 writes it in protocols 2 and 4.
TEST(PickleReaderTest, StoredPicklesOfPythonAreRead) {
  const std::string expected = "{'a': [1, -1, 2.5], 'b': (None, True)}";
  EXPECT_EQ(shown(props::unhex("80027d71002858010000006171015d7102284b014affffffff474004"
                               "0000000000006558010000006271034e88867104752e")),
            expected);
  EXPECT_EQ(shown(props::unhex("80049525000000000000007d94288c0161945d94284b014affffffff"
                               "474004000000000000658c0162944e888694752e")),
            expected);
}

TEST(JsonDocumentTest, TheSameValuesAreReadFromJson) {
  EXPECT_EQ(shown_json(R"({"a": [1, -1, 2.5, "x\ny"], "b": [null, true, false]})"),
            "{'a': [1, -1, 2.5, 'x\ny'], 'b': [None, True, False]}");
  EXPECT_EQ(shown_json("[18446744073709551615, -9223372036854775808, 1e300]"),
            "[18446744073709551615, -9223372036854775808, 1e+300]");
  EXPECT_EQ(shown_json("\xef\xbb\xbf[]"), "[]");
}

TEST(JsonDocumentTest, EachFaultHasItsOffset) {
  EXPECT_EQ(shown_json(""), "j: offset 1: the text is no JSON");
  EXPECT_EQ(shown_json("[1, x]"), "j: offset 5: the text is no JSON");
  EXPECT_EQ(shown_json("[1] 2"), "j: offset 5: the text is no JSON");
  EXPECT_EQ(shown_json("[NaN]"), "j: offset 2: the text is no JSON");
  const std::string deep(kDocumentDepthMax, '[');
  EXPECT_EQ(shown_json("[" + deep), "j: offset 65: nested deeper than 64");
  const std::string text = R"({"segments": [{"address": 1, "blocks": []}], "x": "\u00e9"})";
  for (std::size_t size = 0; size < text.size(); ++size)
    EXPECT_EQ(shown_json(text.substr(0, size)).rfind("j: offset ", 0), 0u) << size;
}

TEST(JsonDocumentTest, KeysThatRepeatAreStoredOnce) {
  std::string error;
  std::string text = "[";
  for (int i = 0; i < 100; ++i) text += R"({"address": 5},)";
  const auto document = parse_json_document(text + "0]", "j", &error);
  ASSERT_TRUE(document.has_value()) << error;
  EXPECT_EQ(document->arena.size(), 1u + 1 + 100 * 2 + 1);
}

}  // namespace
}  // namespace ashlar::tool
