// The configuration string and what follows from it, against the judge's own reading of the text
// (spec/model/settings.h) and against plain arithmetic.
//
// Imitates: every key with values at the ends of its range and beyond, keys together, spaces and
// slips; texts of any bytes; requests of any size. Does not prove: that the judge's grammar is
// PyTorch's.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cctype>
#include <cstring>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <ashlar/cache/config.h>
#include <ashlar/cache/rounding.h>

#include "spec/model/settings.h"

namespace ashlar::cache {
namespace {

const std::vector<std::string> kKeys{"granule",
                                     "small_request_kb",
                                     "small_segment_mb",
                                     "large_request_mb",
                                     "large_segment_mb",
                                     "large_segment_size_mb",
                                     "round_segment_mb",
                                     "max_split_size_mb",
                                     "max_non_split_rounding_mb",
                                     "headroom_mb",
                                     "first_growth_mb",
                                     "page_handles_max",
                                     "move_us_max",
                                     "backing",
                                     "cache",
                                     "move",
                                     "place_context",
                                     "reuse",
                                     "wait_ms",
                                     "per_process_memory_fraction",
                                     "roundup_power2_divisions",
                                     "backend",
                                     "expandable_segments",
                                     "expandable_segments_reserve",
                                     "expandable_segments_reserve_by_class",
                                     "garbage_collection_threshold",
                                     "graph_capture_record_stream_reuse",
                                     "pinned_free_catch_all",
                                     "pinned_max_cached_size_mb",
                                     "pinned_max_round_threshold_mb",
                                     "pinned_num_register_threads",
                                     "pinned_reserve_segment_size_mb",
                                     "pinned_use_background_threads",
                                     "pinned_use_cuda_host_register",
                                     "pinned_use_hip_host_register",
                                     "release_lock_on_cudamalloc",
                                     "release_lock_on_hipmalloc",
                                     "throw_on_cudamalloc_oom",
                                     "no_such_key"};

constexpr const char* kValues[] = {"",
                                   "-1",
                                   "-0",
                                   "+1",
                                   "x",
                                   "1x",
                                   "0x1",
                                   "1 2",
                                   "3",
                                   "5",
                                   "7",
                                   "10",
                                   "12",
                                   "20",
                                   "21",
                                   "24",
                                   "40",
                                   "100",
                                   "1000",
                                   "own",
                                   "completed",
                                   "ordered",
                                   "pages",
                                   "segments",
                                   "auto",
                                   "on",
                                   "off",
                                   "limit",
                                   "eager",
                                   "512",
                                   "513",
                                   "4294967295",
                                   "4294967296",
                                   "never",
                                   "forever",
                                   "True",
                                   "False",
                                   "true",
                                   "native",
                                   "cudaMallocAsync",
                                   "0.0",
                                   "0.",
                                   "0.5",
                                   ".5",
                                   "1.",
                                   "1.0",
                                   "1.0000001",
                                   "1e-3",
                                   "-0.5",
                                   "nan",
                                   "[]",
                                   "[",
                                   "]",
                                   "[1:1",
                                   "1:1]",
                                   "[1]",
                                   "[:]",
                                   "[1:]",
                                   "[:1]",
                                   "[1:2,2:4]",
                                   "[2:2,1:4]",
                                   "[1:2,1:4]",
                                   "[1:3]",
                                   "[3:1]",
                                   "[1:1024]",
                                   "[1:2048]",
                                   "[0:1]",
                                   "[>:1]",
                                   "[1:2,>:4]",
                                   "[1:2,>:4,8:2]",
                                   "[ 1 : 2 , > : 4 ]",
                                   "[32768:2]",
                                   "[65536:2]",
                                   "[1:0,>:1]",
                                   "[4:2,64:8,>:16]",
                                   "[1:1,]",
                                   "[,1:1]",
                                   "[1:1]]",
                                   "99999999999999999999"};

std::vector<std::string> values() {
  std::vector<std::string> all(std::begin(kValues), std::end(kValues));
  // Around every power of two, among them a PiB in each unit, and what no longer fits 64 bits.
  for (unsigned bit = 0; bit <= 64; ++bit) {
    const unsigned __int128 power = static_cast<unsigned __int128>(1) << bit;
    for (const int near : {-1, 0, 1}) {
      std::string text;
      for (auto n = power + static_cast<unsigned __int128>(near); n > 0; n /= 10)
        text.insert(text.begin(), static_cast<char>('0' + static_cast<int>(n % 10)));
      all.push_back(text.empty() ? "0" : text);
    }
    if (bit < 64) all.push_back("[" + std::to_string(std::uint64_t{1} << bit) + ":2]");
  }
  return all;
}

/// A text that ends where no byte may be read.
class GuardedText {
 public:
  explicit GuardedText(const std::string& text) : size_(text.size()) {
    EXPECT_NE(at_, MAP_FAILED);
    EXPECT_EQ(::mprotect(static_cast<char*>(at_) + kRoom, kRoom, PROT_NONE), 0);
    EXPECT_LE(size_, kRoom);
    std::memcpy(static_cast<char*>(at_) + kRoom - size_, text.data(), size_);
  }
  ~GuardedText() { ::munmap(at_, 2 * kRoom); }
  GuardedText(const GuardedText&) = delete;
  GuardedText& operator=(const GuardedText&) = delete;
  std::string_view view() const { return {static_cast<char*>(at_) + kRoom - size_, size_}; }

 private:
  static constexpr std::size_t kRoom = 65536;
  std::size_t size_;
  void* at_ =
      ::mmap(nullptr, 2 * kRoom, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
};

/// Compares the parser with the judge. Returns whether the text is good.
bool expect_same(const std::string& text) {
  std::string error;
  const Result<Config> parsed = parse_config(GuardedText(text).view(), &error);
  const std::optional<Config> asked = spec::read_settings(text);
  EXPECT_EQ(parsed.is_ok(), asked.has_value()) << text << ": " << error;
  EXPECT_EQ(parsed.code(), parse_config(text, nullptr).code());
  if (parsed.is_ok() && asked) {
    EXPECT_STREQ(spec::differing_field(parsed.value(), *asked), nullptr) << text;
    EXPECT_TRUE(check_config(parsed.value()).is_ok()) << text;
    EXPECT_EQ(error, "");
  } else {
    EXPECT_TRUE(parsed.code() == Code::kMalformed || parsed.code() == Code::kUnsupported) << text;
    EXPECT_FALSE(error.empty()) << text;
    for (const char c : error) EXPECT_TRUE(c >= ' ' && c <= '~') << text;
  }
  return parsed.is_ok();
}

TEST(ConfigModelTest, EveryKeyTakesTheValuesThatTheJudgeTakesAndMeansTheSame) {
  unsigned good = 0;
  for (const std::string& key : kKeys) {
    for (const std::string& value : values()) good += expect_same(key + ":" + value);
  }
  EXPECT_GT(good, 200u);
}

/// Each size at the ends of what the others permit.
TEST(ConfigModelTest, SettingsThatDependOnEachOtherAreJudgedTogether) {
  std::mt19937_64 random(1);
  const std::vector<std::string> sizes{"1", "2", "3", "4", "19", "20", "21", "22", "32", "64"};
  unsigned good = 0;
  for (int round = 0; round < 1500; ++round) {
    std::string text;
    for (std::size_t key = 0; key < 9; ++key) {
      if (random() % 3 != 0) continue;
      std::string value = sizes[random() % sizes.size()];
      if (key == 0) value = std::to_string(8u << random() % 15);
      if (key == 1) value = std::to_string(512u << random() % 5);
      text += (text.empty() ? "" : ",") + kKeys[key] + ":" + value;
    }
    good += expect_same(text);
  }
  EXPECT_GT(good, 100u);
}

TEST(ConfigModelTest, AnyMixOfKeysSpacesAndSlipsIsReadAsTheJudgeReadsIt) {
  std::mt19937_64 random(2);
  const std::vector<std::string> all = values();
  const auto spaces = [&] { return std::string(random() % 8 == 0 ? 1 + random() % 2 : 0, ' '); };
  for (int round = 0; round < 1000; ++round) {
    std::string text = spaces();
    for (std::uint64_t parts = random() % 4; parts > 0; --parts) {
      text += spaces() + kKeys[random() % kKeys.size()] + spaces();
      if (random() % 20 != 0) text += ":" + spaces();
      text += all[random() % all.size()] + spaces();
      if (parts > 1 || random() % 8 == 0) text += ",";
    }
    if (random() % 10 == 0 && !text.empty()) text.erase(random() % text.size(), 1);
    expect_same(text);
  }
}

std::string shown(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size() && i < 60; ++i)
    out += std::isprint(static_cast<unsigned char>(text[i])) != 0 ? text[i] : '?';
  return text.size() > 60 ? out + "..." : out;
}

TEST(ConfigModelTest, AnErrorShowsForeignTextInPrintableCharactersCutAt60Bytes) {
  std::string error;
  std::vector<std::string> texts;
  for (int byte = 1; byte < 256; ++byte) {
    if (byte == ',' || byte == ':' || byte == '[' || byte == ' ') continue;
    texts.push_back("a" + std::string(1, static_cast<char>(byte)) + "b");
  }
  texts.emplace_back("a  b c");
  for (std::size_t length = 1; length < 130; ++length) texts.emplace_back(length, 'q');
  for (const std::string& text : texts) {
    EXPECT_EQ(parse_config(text + ":1", &error).code(), Code::kMalformed);
    EXPECT_EQ(error, "unknown key '" + shown(text) + "'");
    EXPECT_EQ(parse_config("reuse:" + text, &error).code(), Code::kMalformed);
    EXPECT_EQ(error, "reuse: '" + shown(text) + "' is none of own, completed, ordered");
  }
}

TEST(ConfigModelTest, AnErrorSaysWhichRuleItIsThatWasBroken) {
  const auto expect = [](const std::string& text, Code code, const std::string& line) {
    std::string error;
    EXPECT_EQ(parse_config(GuardedText(text).view(), &error).code(), code) << text;
    EXPECT_EQ(error, line);
  };
  for (const char* text : {",", ",wait_ms:5", "wait_ms:5,,", "wait_ms:5, ,reuse:own", ", ,"})
    expect(text, Code::kMalformed, "a setting is empty");
  for (const std::string value : {"", "x", "0.5x", "0x1p-1", "1e999x"}) {
    expect("per_process_memory_fraction:" + value, Code::kMalformed,
           "per_process_memory_fraction: '" + value + "' is not a number");
  }
  for (const std::string value : {"1e999", "-1e999", "-11e-3004"}) {
    expect("garbage_collection_threshold:" + value, Code::kMalformed,
           "garbage_collection_threshold: '" + value + "' is out of range");
  }
  // A value that one key knows means nothing to another.
  for (std::size_t key = 0; key < 12; ++key) {
    std::string error;
    EXPECT_EQ(parse_config(kKeys[key] + ":cudaMallocAsync", &error).code(), Code::kMalformed);
    EXPECT_EQ(error.rfind(kKeys[key] + ": 'cudaMallocAsync' ", 0), 0u) << error;
  }
}

/// Fields set by a program, one at a time, at the ends of their range.
TEST(ConfigModelTest, EveryFieldIsGoodFromItsLeastToItsGreatestValueAndNoFurther) {
  const Bytes pib{std::uint64_t{1} << 50};
  struct Range {
    Bytes Config::*field;
    Bytes least, greatest, step;
  };
  const Range ranges[] = {
      {&Config::small_request_max, 512_B, 2_MiB, 512_B},
      {&Config::small_segment, 2_MiB, pib, 512_B},
      {&Config::large_request_min, 1_MiB, 20_MiB, 512_B},
      {&Config::large_segment, 10_MiB, 20_MiB, 512_B},
      {&Config::segment_round, 2_MiB, pib, 512_B},
      {&Config::max_non_split_rounding, 20_MiB, pib, 1_B},
      {&Config::max_split_size, 20_MiB + 1_B, Bytes::max(), 1_B},
  };
  for (const Range& range : ranges) {
    const auto is_good = [&](Bytes value) {
      Config config;
      if (range.field == &Config::small_request_max) config.large_request_min = 20_MiB;
      config.*range.field = value;
      return check_config(config).is_ok();
    };
    EXPECT_TRUE(is_good(range.least));
    EXPECT_TRUE(is_good(range.least + range.step));
    EXPECT_TRUE(is_good(range.greatest));
    EXPECT_FALSE(is_good(range.least - range.step));
    EXPECT_FALSE(is_good(0_B));
    if (range.greatest == Bytes::max()) continue;
    EXPECT_FALSE(is_good(range.greatest + range.step));
    if (range.step == 512_B) {
      EXPECT_FALSE(is_good(range.greatest - 1_B));
    }
  }
  for (std::uint64_t granule = 1; granule <= 1 << 18; ++granule) {
    Config config;
    config.granule = Bytes{granule};
    const bool is_power = (granule & (granule - 1)) == 0;
    ASSERT_EQ(check_config(config).is_ok(), is_power && granule >= 16 && granule <= 65536);
  }
  for (std::size_t row = 0; row < 16; ++row) {
    for (std::uint32_t divisions = 0; divisions <= 4096; ++divisions) {
      Config config;
      config.roundup_divisions[row] = divisions;
      const bool is_power = (divisions & (divisions - 1)) == 0;
      ASSERT_EQ(check_config(config).is_ok(), is_power && divisions <= 1024);
    }
  }
}

using Wide = unsigned __int128;
constexpr Wide kMax64 = ~std::uint64_t{0};

Wide round_up_to(Wide n, Wide to) { return (n + to - 1) / to * to; }

/// Rows DEV-1 to DEV-4 of one size, step by step, in numbers that cannot wrap.
void expect_plain_arithmetic(const Config& c, std::uint64_t size) {
  unsigned row = 0;  // of the power of two at or below the size, in MiB
  while (row < 15 && (Wide{2} << 20 << row) <= size) ++row;
  const Wide steps = c.roundup_divisions[row];
  Wide power = 1;
  while (power * 2 <= size) power *= 2;
  const bool is_stepped = steps > 1 && size / steps >= c.granule.count();
  const Wide rounded = round_up_to(size, is_stepped ? power / steps : c.granule.count());
  const auto got = rounded_size(c, Bytes{size});
  ASSERT_EQ(got.has_value(), rounded <= kMax64) << size;
  if (got) {
    ASSERT_EQ(got->count(), rounded) << size;
  }
  const Bytes request{size};
  const bool is_small = size <= c.small_request_max.count();
  ASSERT_EQ(pool_of(c, request), is_small ? PoolId::kSmall : PoolId::kLarge);
  const bool is_over = size >= c.max_split_size.count();
  Wide segment = round_up_to(size, c.segment_round.count());
  if (!is_over && segment >= c.max_split_size.count() && segment <= kMax64)
    segment = std::max(Wide{size}, Wide{(2_MiB).count()});
  if (size < c.large_request_min.count()) segment = c.large_segment.count();
  if (is_small) segment = c.small_segment.count();
  const auto asked = segment_size(c, request);
  ASSERT_EQ(asked.has_value(), segment <= kMax64) << size;
  if (asked) {
    ASSERT_EQ(asked->count(), segment) << size;
  }
  const Wide end =
      is_over ? Wide{size} + c.max_non_split_rounding.count() : Wide{c.max_split_size.count()};
  ASSERT_EQ(fit_end(c, request).count(), std::min(end, kMax64));
  for (const std::uint64_t rest : {std::uint64_t{0}, std::uint64_t{1}, c.granule.count() - 1,
                                   c.granule.count(), c.small_request_max.count() - 1,
                                   c.small_request_max.count(), c.small_request_max.count() + 1}) {
    if (size > kMax64 - rest) continue;
    const bool is_split =
        is_small ? rest >= c.granule.count() : !is_over && rest > c.small_request_max.count();
    ASSERT_EQ(should_split(c, request, Bytes{size + rest}), is_split) << size << " " << rest;
  }
}

TEST(RoundingModelTest, SizesAreThoseOfPlainArithmetic) {
  std::mt19937_64 random(3);
  std::vector<std::uint64_t> sizes;
  for (unsigned bit = 0; bit < 64; ++bit) {
    for (const int near : {-513, -512, -1, 0, 1, 511, 512, 513}) {
      const std::uint64_t size = (std::uint64_t{1} << bit) + static_cast<std::uint64_t>(near);
      if (size != 0) sizes.push_back(size);
    }
    for (int i = 0; i < 8; ++i) sizes.push_back((random() | std::uint64_t{1} << 63) >> bit);
  }
  for (int round = 0; round < 40; ++round) {
    Config c;
    if (round % 2 == 1) c.granule = Bytes{std::uint64_t{16} << random() % 13};
    for (auto& row : c.roundup_divisions) row = random() % 3 == 0 ? 0 : 1u << random() % 11;
    if (round % 3 == 1) c.max_split_size = Bytes{(21 + random() % 100) << 20};
    if (round % 4 == 3) c.segment_round = Bytes{(2 + random() % 40) << 20};
    if (round % 5 == 4) c.large_request_min = Bytes{(1 + random() % 20) << 20};
    ASSERT_TRUE(check_config(c).is_ok());
    std::vector<std::uint64_t> near = sizes;  // and sizes around each setting
    for (const Bytes setting : {c.small_request_max, c.large_request_min, c.max_split_size}) {
      for (const Bytes off : {0_B, c.granule, c.segment_round}) {
        for (const std::uint64_t one : {0u, 1u, 2u})
          near.push_back(setting.count() - off.count() + 1 - one);
      }
    }
    for (const std::uint64_t size : near) {
      if (size != 0) expect_plain_arithmetic(c, size);
      if (HasFatalFailure()) return;
    }
  }
}

}  // namespace
}  // namespace ashlar::cache
