// Pickles byte by byte, where an opcode or a length changes: numbers, places in the memo, parts of lists, dictionaries.
//
// Imitates: documents with many texts, many shared values and long lists. Does not prove: that Python reads them (read_back_test.sh).
#include <gtest/gtest.h>

#include <limits>

#include <ashlar/exchange/json_sink.h>
#include <ashlar/exchange/pickle_sink.h>

#include "props/exchange/small_records.h"

namespace ashlar::props {
namespace {

using exchange::PickleSink;
using namespace std::string_literals;

/// What is written of a value, without the pickle's head and tail.
template <class Write>
std::string bytes_of(Write&& write) {
  const std::string text = text_of([&](const exchange::ByteSink& bytes) {
    PickleSink sink(bytes);
    write(&sink);
    return sink.finish();
  });
  EXPECT_EQ(text.substr(0, 2) + text.back(), "\x80\x02.");
  return text.substr(2, text.size() - 3);
}
std::string whole(std::uint64_t number) {
  return bytes_of([number](PickleSink* sink) { sink->integer(number); });
}
std::string below_zero(std::int64_t number) {
  return bytes_of([number](PickleSink* sink) { sink->negative(number); });
}

TEST(PickleBytes, WholeNumbersChangeTheirOpcodeWhereTheyMust) {
  EXPECT_EQ(whole(1), "K\x01");
  EXPECT_EQ(whole(0xffff), "M\xff\xff");
  EXPECT_EQ(whole(0x1234), "M\x34\x12");
  EXPECT_EQ(whole(0x12345678), "J\x78\x56\x34\x12");
  EXPECT_EQ(whole(0x7fffffff), "J\xff\xff\xff\x7f");
  EXPECT_EQ(whole(0x80000000), "\x8a\x05\0\0\0\x80\0"s);
  const std::uint64_t one = 1;
  for (unsigned bytes = 5; bytes <= 8; ++bytes) {
    // The highest number of so many bytes whose highest bit is not set, and the one behind it.
    const std::uint64_t next = one << (8 * bytes - 1);
    const char length = static_cast<char>(bytes), longer = static_cast<char>(bytes + 1);
    EXPECT_EQ(whole(next - 1), "\x8a"s + length + std::string(bytes - 1, '\xff') + '\x7f');
    EXPECT_EQ(whole(next), "\x8a"s + longer + std::string(bytes - 1, '\0') + '\x80' + '\0');
  }
  EXPECT_EQ(whole(0x123456789abcdef0), "\x8a\x08\xf0\xde\xbc\x9a\x78\x56\x34\x12");
}

TEST(PickleBytes, NumbersBelowZeroChangeTheirOpcodeAtTheLeastOfFourBytes) {
  EXPECT_EQ(below_zero(-0x7fffffffll), "J\x01\0\0\x80"s);
  EXPECT_EQ(below_zero(-0x80000000ll), "J\0\0\0\x80"s);
  EXPECT_EQ(below_zero(-0x80000001ll), "\x8a\x08\xff\xff\xff\x7f\xff\xff\xff\xff");
  EXPECT_EQ(below_zero(std::numeric_limits<std::int64_t>::min()), "\x8a\x08\0\0\0\0\0\0\0\x80"s);
}

TEST(PickleBytes, RealNumbersAreBigEndian) {
  const auto real = [](double number) {
    return bytes_of([number](PickleSink* sink) { sink->real(number); });
  };
  EXPECT_EQ(real(-1.5), "G\xbf\xf8\0\0\0\0\0\0"s);
  EXPECT_EQ(real(5.447603722011605e-270), "G\x08\x07\x06\x05\x04\x03\x02\x01");
  EXPECT_EQ(real(0.1), "G\x3f\xb9\x99\x99\x99\x99\x99\x9a");
  EXPECT_EQ(real(std::numeric_limits<double>::infinity()), "N");
  EXPECT_EQ(real(std::numeric_limits<double>::quiet_NaN()), "N");
}

TEST(PickleBytes, APairIsATuple) {
  EXPECT_EQ(bytes_of([](PickleSink* sink) { sink->pair(1, 0x100); }), "K\x01M\0\x01\x86"s);
}

TEST(PickleBytes, ADictionaryIsSetAtOnce) {
  const auto dictionary = [](unsigned count) {
    return bytes_of([count](PickleSink* sink) {
      sink->begin_dict();
      for (unsigned i = 0; i < count; ++i) {
        sink->boolean(true);
        sink->boolean(false);
      }
      sink->end_dict();
    });
  };
  EXPECT_EQ(dictionary(0), "}");
  EXPECT_EQ(dictionary(1), "}(\x88\x89u");
  std::string pairs;
  for (int i = 0; i < 1500; ++i) pairs += "\x88\x89";
  EXPECT_EQ(dictionary(1500), "}(" + pairs + "u") << "only lists are written in parts";
}

TEST(PickleBytes, ListsInListsCountTheirElementsApart) {
  const std::string text = bytes_of([](PickleSink* sink) {
    sink->begin_list();
    for (int i = 0; i < 999; ++i) sink->boolean(true);
    sink->begin_list();
    sink->pair(1, 2);
    sink->end_list();
    sink->real(0.0);
    sink->negative(-1);
    sink->end_list();
  });
  EXPECT_EQ(text, "](" + std::string(999, '\x88') + "](K\x01K\x02\x86"s + "e" + "e(" +
                      "G\0\0\0\0\0\0\0\0J\xff\xff\xff\xff"s + "e");
}

TEST(PickleBytes, APartOfAListBeginsWithAnySortOfElement) {
  const auto list_of = [](auto&& element, int count) {
    return bytes_of([&](PickleSink* sink) {
      sink->begin_list();
      for (int i = 0; i < count; ++i) element(sink);
      sink->end_list();
    });
  };
  const auto twice = [&](auto&& element, const std::string& first, const std::string& next) {
    std::string thousand = first;
    for (int i = 1; i < 1000; ++i) thousand += next;
    EXPECT_EQ(list_of(element, 1), "](" + first + "e");
    EXPECT_EQ(list_of(element, 1001), "](" + thousand + "e(" + next + "e");
  };
  twice([](PickleSink* sink) { sink->negative(-1); }, "J\xff\xff\xff\xff", "J\xff\xff\xff\xff");
  twice([](PickleSink* sink) { sink->integer(7); }, "K\x07", "K\x07");
  twice([](PickleSink* sink) { sink->real(0.0); }, "G\0\0\0\0\0\0\0\0"s, "G\0\0\0\0\0\0\0\0"s);
  twice([](PickleSink* sink) { sink->pair(1, 2); }, "K\x01K\x02\x86", "K\x01K\x02\x86");
  twice([](PickleSink* sink) { sink->text("t"); }, "X\x01\0\0\0tq\0"s, "h\0"s);
  const auto shared = [](PickleSink* sink) {
    if (!sink->begin_shared(1)) return;
    sink->begin_list();
    sink->end_list();
    sink->end_shared(1);
  };
  twice(shared, "]q\0"s, "h\0"s);
}

TEST(PickleBytes, ATextHasItsLengthInBytesAndItsPlaceInTheMemo) {
  const std::string text = std::string(0x12345, 'x') + "\xc3\xa4";
  EXPECT_EQ(bytes_of([&text](PickleSink* sink) { sink->text(text); }),
            "X\x47\x23\x01\0"s + text + "q\0"s);
  EXPECT_EQ(bytes_of([](PickleSink* sink) { sink->text("a\xff"); }),
            "X\x04\0\0\0a\xef\xbf\xbdq\0"s);
}

TEST(PickleBytes, SharedValuesAreFoundByTheirKey) {
  const std::string text = bytes_of([](PickleSink* sink) {
    sink->begin_list();
    for (const exchange::SharedKey key : {7u, 0u, 7u, 0u, 8u, 7u}) {
      if (!sink->begin_shared(key)) continue;
      sink->begin_list();
      sink->integer(key);
      sink->end_list();
      sink->end_shared(key);
    }
    sink->end_list();
  });
  EXPECT_EQ(text, "](](K\x07"s + "eq\0](K\0eq\x01"s + "h\0h\x01](K\x08"s + "eq\x02h\0e"s);
}

TEST(PickleBytes, ASharedValueBehindManyIsFoundByFourBytes) {
  const std::string text = bytes_of([](PickleSink* sink) {
    sink->begin_list();
    for (int twice = 0; twice < 2; ++twice) {
      for (exchange::SharedKey key = 0; key < 258; ++key) {
        if (!sink->begin_shared(key)) continue;
        sink->begin_list();
        sink->end_list();
        sink->end_shared(key);
      }
    }
    sink->end_list();
  });
  EXPECT_NE(text.find("]q\xff]r\0\x01\0\0]r\x01\x01\0\0h\0h\x01"s), std::string::npos);
  EXPECT_EQ(text.substr(text.size() - 13), "h\xffj\0\x01\0\0j\x01\x01\0\0e"s);
}

TEST(JsonText, EachByteStandsForItselfOrIsEscaped) {
  for (unsigned byte = 0; byte < 0x80; ++byte) {
    const std::string character(1, static_cast<char>(byte));
    const std::string text = text_of([&](const exchange::ByteSink& bytes) {
      exchange::JsonSink sink(bytes);
      sink.text(character);
      return sink.finish();
    });
    const char* const digits = "0123456789abcdef";
    const std::string escaped = std::string("\\u00") + digits[byte / 16] + digits[byte % 16];
    const bool is_control = byte < 32 || byte == 127;
    const bool is_special = byte == '"' || byte == '\\';
    EXPECT_EQ(text, "\"" + (is_control ? escaped : (is_special ? "\\" : "") + character) + "\"")
        << byte;
  }
}

}  // namespace
}  // namespace ashlar::props
