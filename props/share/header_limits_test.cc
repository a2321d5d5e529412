// The limits of a header that another process sent, each reached and passed by one, and the reason that a refusal gives.
//
// Imitates: a process of another version, and one that wants numbers to wrap. Does not prove: anything of bytes that nobody thought of
// (the fuzz target share_header).
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "props/share/share_worlds.h"

namespace ashlar::props {
namespace {

using device::ShareKind;
using share::read_header;
using share::ShareHeader;
using share::write_header;

constexpr Bytes kMax = Bytes::max();

/// Two pages in a segment of four.
ShareHeader two_pages() {
  ShareHeader header;
  header.segment_size = 8_MiB;
  header.parts_offset = 2_MiB;
  header.offset = 1_MiB;
  header.size = 1_MiB;
  header.parts.resize(2);
  for (share::SharedPart& part : header.parts) {
    part.size = 2_MiB;
    part.handle.kind = ShareKind::kFabric;
  }
  return header;
}

struct Case {
  const char* reason;  ///< a part of it; null: it is read
  std::function<void(ShareHeader&)> change;
};

void expect_each(const std::vector<Case>& cases) {
  for (const Case& each : cases) {
    ShareHeader header = two_pages();
    each.change(header);
    const auto read = read_header(write_header(header));
    SCOPED_TRACE(&each - cases.data());
    EXPECT_EQ(read.code(), each.reason == nullptr ? Code::kOk : Code::kMalformed);
    if (each.reason != nullptr) {
      EXPECT_NE(std::string(read.status().why()).find(each.reason), std::string::npos)
          << read.status().why();
    }
  }
}

TEST(HeaderLimitsTest, PartsLieInsideOfTheirSegment) {
  constexpr char kOutside[] = "not inside of their segment";
  expect_each({
      {nullptr, [](ShareHeader& h) { h.parts_offset = 4_MiB; }},  // up to its end
      {kOutside, [](ShareHeader& h) { h.parts_offset = 4_MiB + 1_B; }},
      {kOutside, [](ShareHeader& h) { h.parts_offset = 8_MiB; }},
      {kOutside, [](ShareHeader& h) { h.parts_offset = 8_MiB + 1_B; }},
      {kOutside, [](ShareHeader& h) { h.parts_offset = kMax; }},
      {nullptr, [](ShareHeader& h) { h.segment_size = 6_MiB; }},
      {kOutside, [](ShareHeader& h) { h.segment_size = 6_MiB - 1_B; }},
      {kOutside, [](ShareHeader& h) { h.segment_size = Bytes{}; }},
      {nullptr, [](ShareHeader& h) { h.parts[1].size = 4_MiB; }},
      {kOutside, [](ShareHeader& h) { h.parts[1].size = 4_MiB + 1_B; }},
      {kOutside, [](ShareHeader& h) { h.parts[1].size = kMax; }},  // the sum would wrap
      {kOutside, [](ShareHeader& h) { h.parts[1].size = kMax - 2_MiB + 1_B; }},
  });
}

TEST(HeaderLimitsTest, NoNumberIsTooLargeThatDoesNotWrap) {
  expect_each({{nullptr, [](ShareHeader& h) {
                  h.segment_size = h.parts[1].size = kMax;
                  h.parts_offset = h.offset = Bytes{};
                  h.parts[1].size -= 2_MiB;
                  h.size = kMax;
                }}});
}

TEST(HeaderLimitsTest, TheAllocationLiesInsideOfItsParts) {
  constexpr char kOutside[] = "not inside of its parts";
  expect_each({
      {nullptr, [](ShareHeader& h) { h.size = 3_MiB; }},
      {kOutside, [](ShareHeader& h) { h.size = 3_MiB + 1_B; }},
      {kOutside, [](ShareHeader& h) { h.size = 4_MiB + 1_B; }},
      {kOutside, [](ShareHeader& h) { h.size = kMax; }},  // the sum would wrap
      {kOutside, [](ShareHeader& h) { h.size = kMax - 1_MiB + 1_B; }},
      {kOutside, [](ShareHeader& h) { h.size = Bytes{}; }},
      {nullptr, [](ShareHeader& h) { h.offset = 3_MiB; }},
      {kOutside, [](ShareHeader& h) { h.offset = 3_MiB + 1_B; }},
      {kOutside, [](ShareHeader& h) { h.offset = kMax; }},
      {kOutside, [](ShareHeader& h) { h.parts.clear(); }},
      {kOutside,
       [](ShareHeader& h) {
         h.parts.clear();
         h.size = h.offset = Bytes{};
       }},
      {kOutside,
       [](ShareHeader& h) {
         h.parts.clear();
         h.parts_offset = h.segment_size;  // no part lies outside of it
       }},
  });
}

TEST(HeaderLimitsTest, EachPartSaysWhatItIs) {
  const auto segment = [](Bytes size) {
    return [size](ShareHeader& h) {
      h.parts.resize(1);
      h.parts[0] = {size, 1, {}};
      h.parts[0].handle.kind = ShareKind::kSegment;
      h.parts_offset = Bytes{};
    };
  };
  expect_each({
      {"a part without a size", [](ShareHeader& h) { h.parts[0].size = Bytes{}; }},
      {"a part without a size", [](ShareHeader& h) { h.parts[1].size = Bytes{}; }},
      {"unknown kind", [](ShareHeader& h) { h.parts[1].handle.kind = ShareKind::kNone; }},
      {"among other parts", [](ShareHeader& h) { h.parts[1].handle.kind = ShareKind::kSegment; }},
      {nullptr, segment(8_MiB)},
      {"not the whole segment", segment(8_MiB - 1_B)},
  });
}

TEST(HeaderLimitsTest, TheReasonSaysWhereTheBytesEnd) {
  std::vector<std::byte> bytes = write_header(two_pages());
  constexpr std::size_t kFixed = 88;
  const auto reason = [&] { return std::string(read_header(bytes).status().why()); };
  bytes.pop_back();
  EXPECT_NE(reason().find("another length than its parts"), std::string::npos) << reason();
  bytes.resize(kFixed);
  EXPECT_NE(reason().find("another length than its parts"), std::string::npos) << reason();
  bytes.pop_back();
  EXPECT_NE(reason().find("cut short"), std::string::npos) << reason();
}

TEST(HeaderLimitsTest, AHeaderOfAnotherVersionSaysThatItIs) {
  for (const std::size_t at :
       {std::size_t{8}, std::size_t{28}}) {  // the version, and what it leaves free
    std::vector<std::byte> bytes = write_header(two_pages());
    bytes[at] ^= std::byte{2};
    const auto read = read_header(bytes);
    EXPECT_EQ(read.code(), Code::kMalformed) << at;
    EXPECT_NE(std::string(read.status().why()).find("another version"), std::string::npos) << at;
  }
}

TEST(HeaderLimitsTest, AHeaderHasAtMostTheMostParts) {
  ShareHeader header = two_pages();
  header.parts.resize(share::kSharedPartsMax, header.parts.front());
  header.segment_size = header.parts_offset + 2_MiB * share::kSharedPartsMax;
  const std::vector<std::byte> most = write_header(header);
  EXPECT_EQ(most.size(), share::header_bytes_max());
  EXPECT_EQ(read_header(most).code(), Code::kOk);
  header.parts.push_back(header.parts.front());
  header.segment_size += 2_MiB;
  EXPECT_EQ(read_header(write_header(header)).code(), Code::kMalformed);
}

}  // namespace
}  // namespace ashlar::props
