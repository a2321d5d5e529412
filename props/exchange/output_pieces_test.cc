// The pieces in which a sink gets a file: all bytes in order, none longer than kSinkBytesMax, none behind a failure.
//
// Imitates: texts that end just before, at and behind the end of a piece; sinks that fail or throw.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include <ashlar/exchange/output_buffer.h>

#include "props/exchange/small_records.h"

namespace ashlar::props {
namespace {

using exchange::kSinkBytesMax;
using exchange::OutputBuffer;

/// A sink that keeps the pieces.
struct Pieces {
  std::vector<std::string> pieces;
  exchange::ByteSink sink() {
    return [this](std::string_view bytes) {
      pieces.emplace_back(bytes);
      return true;
    };
  }
};

std::string counted_bytes(std::size_t count) {
  std::string bytes;
  for (std::size_t i = 0; i < count; ++i) bytes += static_cast<char>('a' + i / 7 % 26);
  return bytes;
}

TEST(OutputPieces, EachButTheLastIsFull) {
  for (const std::size_t first : {std::size_t{0}, std::size_t{1}, kSinkBytesMax - 1, kSinkBytesMax,
                                  kSinkBytesMax + 1, 2 * kSinkBytesMax, 3 * kSinkBytesMax + 5}) {
    for (const std::size_t second : {std::size_t{0}, std::size_t{1}, kSinkBytesMax}) {
      Pieces got;
      OutputBuffer out(got.sink());
      const std::string text = counted_bytes(first + second);
      out.append(std::string_view(text).substr(0, first));
      out.append(std::string_view(text).substr(first));
      EXPECT_TRUE(out.flush().is_ok());
      std::string all;
      for (const std::string& piece : got.pieces) {
        const bool is_last = &piece == &got.pieces.back();
        EXPECT_TRUE(is_last ? piece.size() <= kSinkBytesMax : piece.size() == kSinkBytesMax);
        EXPECT_FALSE(piece.empty());
        all += piece;
      }
      EXPECT_EQ(all == text, true) << first << " " << second;
    }
  }
}

TEST(OutputPieces, AFlushGivesWhatThereIsOnce) {
  Pieces got;
  OutputBuffer out(got.sink());
  EXPECT_TRUE(out.flush().is_ok());
  EXPECT_TRUE(got.pieces.empty()) << "nothing is no piece";
  out.append('a');
  out.append_number(0);
  out.append_number(~std::uint64_t{0});
  out.append_number(255, 16);
  EXPECT_TRUE(out.flush().is_ok() && out.flush().is_ok());
  EXPECT_EQ(got.pieces, (std::vector<std::string>{"a018446744073709551615ff"}));
  out.append("later");
  EXPECT_TRUE(out.flush().is_ok());
  EXPECT_EQ(got.pieces.back(), "later");
}

TEST(OutputPieces, AfterAFailureNothingIsGivenAndNothingKept) {
  unsigned calls = 0;
  OutputBuffer out([&calls](std::string_view) { return ++calls < 3; });
  const std::string piece = counted_bytes(kSinkBytesMax);
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(out.has_failed(), i > 3) << i;
    out.append(piece);
  }
  EXPECT_EQ(calls, 3u);
  EXPECT_EQ(out.flush().code(), Code::kWriteFailed);
  EXPECT_EQ(out.flush().code(), Code::kWriteFailed) << "still";
  EXPECT_EQ(calls, 3u);
}

TEST(OutputPieces, ASinkThatThrewHasFailed) {
  unsigned calls = 0;
  OutputBuffer out([&calls](std::string_view) -> bool {
    ++calls;
    throw std::runtime_error("disk");
  });
  out.append("a");
  EXPECT_THROW(static_cast<void>(out.flush()), std::runtime_error);
  EXPECT_TRUE(out.has_failed());
  EXPECT_EQ(out.flush().code(), Code::kWriteFailed);
  EXPECT_EQ(calls, 1u);
}

TEST(OutputPieces, AFileIsClosedWithTheLastOfItsSinks) {
  const std::string path = testing::TempDir() + "output_pieces_test.txt";
  const int lowest = ::dup(STDERR_FILENO);
  ::close(lowest);
  std::ofstream(path) << "what was there before, and is longer";
  const auto text_there = [&path] {
    std::ifstream file(path);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  {
    const exchange::ByteSink first = exchange::file_sink(path).value();
    EXPECT_EQ(text_there(), "") << "emptied";
    const exchange::ByteSink second = first;
    EXPECT_TRUE(first("one ") && second("two"));
    EXPECT_EQ(text_there(), "one two") << "nothing waits in a buffer of the file's own";
  }
  EXPECT_EQ(text_there(), "one two");
  const int next = ::dup(STDERR_FILENO);
  EXPECT_EQ(next, lowest) << "the file's number is free again";
  ::close(next);
  std::remove(path.c_str());
}

}  // namespace
}  // namespace ashlar::props
