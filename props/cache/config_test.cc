// The configuration string (row DEV-22): what each key does, and that every mistake is an error.
//
// Imitates: settings people have in their job scripts, and their slips. Does not prove: that the
// allocator obeys them.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include <ashlar/cache/config.h>
#include <ashlar/device/device.h>

namespace ashlar {
namespace {

struct Parsed {
  Code code;
  cache::Config config;
  std::string error;
};

Parsed parse(std::string_view text) {
  std::string error;
  const Result<cache::Config> result = cache::parse_config(text, &error);
  return {result.code(), result.value_or(cache::Config{}), error};
}

bool is_default(const cache::Config& c) {
  const cache::Config d;
  return c.granule == d.granule && c.small_request_max == d.small_request_max &&
         c.small_segment == d.small_segment && c.large_request_min == d.large_request_min &&
         c.large_segment == d.large_segment && c.segment_round == d.segment_round &&
         c.max_split_size == d.max_split_size &&
         c.max_non_split_rounding == d.max_non_split_rounding &&
         c.roundup_divisions == d.roundup_divisions && c.memory_fraction == d.memory_fraction &&
         c.collection_threshold == d.collection_threshold && c.headroom == d.headroom &&
         c.backing == d.backing && c.caches == d.caches && c.backend == d.backend &&
         c.move == d.move && c.move_us_max == d.move_us_max && c.first_growth == d.first_growth &&
         c.page_handles_max == d.page_handles_max && c.place_context == d.place_context &&
         c.reuse == d.reuse && c.wait_ms == d.wait_ms;
}

TEST(ConfigTest, AnEmptyStringGivesTheDefaults) {
  EXPECT_EQ(parse("").code, Code::kOk);
  EXPECT_EQ(parse("   ").code, Code::kOk);
  EXPECT_EQ(parse("").config.wait_ms, 1000u);
  EXPECT_TRUE(cache::check_config(cache::Config{}).is_ok());
}

TEST(ConfigTest, EveryBuiltKeySetsItsField) {
  const Parsed p = parse(
      "max_split_size_mb:128,max_non_split_rounding_mb:40,per_process_memory_fraction:0.25,"
      "release_lock_on_cudamalloc:True,backend:native,reuse:ordered,wait_ms:7,small_request_kb:512,"
      "small_segment_mb:4,"
      "large_request_mb:12,large_segment_mb:32,round_segment_mb:8,granule:256,roundup_power2_"
      "divisions:4");
  ASSERT_EQ(p.code, Code::kOk) << p.error;
  EXPECT_EQ(p.config.max_split_size, 128_MiB);
  EXPECT_EQ(p.config.max_non_split_rounding, 40_MiB);
  EXPECT_DOUBLE_EQ(p.config.memory_fraction, 0.25);
  EXPECT_EQ(p.config.reuse, cache::Reuse::kOrdered);
  EXPECT_EQ(p.config.wait_ms, 7u);
  EXPECT_EQ(p.config.small_request_max, 512_KiB);
  EXPECT_EQ(p.config.small_segment, 4_MiB);
  EXPECT_EQ(p.config.large_request_min, 12_MiB);
  EXPECT_EQ(p.config.large_segment, 32_MiB);
  EXPECT_EQ(p.config.segment_round, 8_MiB);
  EXPECT_EQ(p.config.granule, 256_B);
  for (const std::uint32_t divisions : p.config.roundup_divisions) EXPECT_EQ(divisions, 4u);
}

TEST(ConfigTest, ADivisionListFillsBelowItsFirstKeyAndAfterItsLast) {
  const Parsed p = parse("roundup_power2_divisions:[256:1,512:2,1024:4,>:8]");
  ASSERT_EQ(p.code, Code::kOk) << p.error;
  const std::array<std::uint32_t, 16> expected{1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 4, 8, 8, 8, 8, 8};
  EXPECT_EQ(p.config.roundup_divisions, expected);
}

TEST(ConfigTest, WhatADivisionListDoesNotNameIsRoundedPlainly) {
  const Parsed p = parse("roundup_power2_divisions:[4:2, 16:8] , wait_ms:1");
  ASSERT_EQ(p.code, Code::kOk) << p.error;
  const std::array<std::uint32_t, 16> expected{2, 2, 2, 0, 8};
  EXPECT_EQ(p.config.roundup_divisions, expected);
}

TEST(ConfigTest, TheLastPowerOfTwoMayBeNamedAndFollowedByMore) {
  EXPECT_EQ(parse("roundup_power2_divisions:[32768:2,>:4]").config.roundup_divisions[15], 2u);
}

TEST(ConfigTest, SpacesAndOneTrailingCommaAreIgnored) {
  EXPECT_EQ(parse(" wait_ms : 5 , reuse : own ,").config.wait_ms, 5u);
  EXPECT_EQ(parse("wait_ms:5,,").code, Code::kMalformed);
  EXPECT_EQ(parse(",wait_ms:5").code, Code::kMalformed);
}

TEST(ConfigTest, WaitTakesWordsToo) {
  EXPECT_EQ(parse("wait_ms:never").config.wait_ms, 0u);
  EXPECT_EQ(parse("wait_ms:forever").config.wait_ms, device::kWaitForever);
  EXPECT_EQ(parse("wait_ms:4294967294").config.wait_ms, 4294967294u);
  EXPECT_EQ(parse("wait_ms:4294967295").code, Code::kMalformed) << "a number must not mean forever";
}

TEST(ConfigTest, KnownKeysThatAreNotBuiltAreNamed) {
  for (const std::string key :
       {"expandable_segments_reserve:1", "expandable_segments_reserve:0",
        "expandable_segments_reserve_by_class:1", "pinned_max_cached_size_mb:64",
        "pinned_max_round_threshold_mb:64", "pinned_use_hip_host_register:True",
        "pinned_use_cuda_host_register:True", "pinned_num_register_threads:8",
        "pinned_use_background_threads:True", "pinned_reserve_segment_size_mb:64"}) {
    const Parsed p = parse(key);
    EXPECT_EQ(p.code, Code::kUnsupported) << key;
    EXPECT_EQ(p.error.rfind(key.substr(0, key.find(':')), 0), 0u) << p.error;
  }
  EXPECT_EQ(parse("pinned_use_background_threads:True").error,
            "pinned_use_background_threads: known, but not built here; it can only be False (of "
            "page-locked memory: PinnedConfig::reap_ms)");
  EXPECT_EQ(
      parse("expandable_segments_reserve:1").error,
      "expandable_segments_reserve: known, but not built here (a range of addresses is as long "
      "as its growth asks for: no reserve is made ahead)");
}

/// Every key that PyTorch has (c10's AllocatorConfig and CUDAAllocatorConfig, November 2026), with a value that asks
/// for something.
constexpr std::pair<const char*, bool> kPyTorchSettings[] = {
    {"backend:cudaMallocAsync", true},
    {"expandable_segments:True", true},
    {"expandable_segments_reserve:40G", false},
    {"expandable_segments_reserve_by_class:[a:0.5]", false},
    {"garbage_collection_threshold:0.8", true},
    {"graph_capture_record_stream_reuse:True", true},
    {"large_segment_size_mb:12", true},
    {"max_non_split_rounding_mb:64", true},
    {"max_split_size_mb:128", true},
    {"per_process_memory_fraction:0.5", true},
    {"pinned_free_catch_all:True", true},
    {"pinned_max_cached_size_mb:64", false},
    {"pinned_max_round_threshold_mb:64", false},
    {"pinned_num_register_threads:8", false},
    {"pinned_reserve_segment_size_mb:64", false},
    {"pinned_use_background_threads:True", false},
    {"pinned_use_cuda_host_register:True", false},
    {"pinned_use_hip_host_register:True", false},
    {"release_lock_on_cudamalloc:True", true},
    {"release_lock_on_hipmalloc:True", true},
    {"roundup_power2_divisions:[256:1,512:2,>:8]", true},
    {"throw_on_cudamalloc_oom:True", true},
};
TEST(ConfigTest, EveryKeyThatPyTorchHasIsObeyedOrRefusedByName) {
  std::vector<std::string> names;
  for (const auto& [setting, is_built] : kPyTorchSettings) {
    const std::string text = setting;
    names.push_back(text.substr(0, text.find(':')));
    const Parsed p = parse(text);
    EXPECT_EQ(p.code, is_built ? Code::kOk : Code::kUnsupported) << p.error;
    if (is_built) continue;
    EXPECT_EQ(p.error.rfind(names.back() + ": known, but not built here", 0), 0u) << p.error;
    EXPECT_EQ(p.error.back(), ')') << "it says why: " << p.error;
  }
  std::vector<std::string> in_table;
  for (const cache::ConfigKey& key : cache::config_keys()) {
    if (key.is_pytorch) in_table.emplace_back(key.name);
  }
  EXPECT_EQ(names, in_table);
}

TEST(ConfigTest, PyTorchsNameForLargeSegmentsSetsWhatItSetsThere) {
  const Parsed p = parse("large_segment_size_mb:12");
  EXPECT_EQ(p.config.large_segment, 12_MiB);
  EXPECT_EQ(p.config.max_non_split_rounding, 12_MiB) << "its default is the segment's size";
  EXPECT_EQ(parse("large_segment_size_mb:64").config.max_non_split_rounding, 64_MiB);
  EXPECT_EQ(
      parse("max_non_split_rounding_mb:70,large_segment_size_mb:64").config.max_non_split_rounding,
      70_MiB);
  EXPECT_EQ(parse("large_segment_mb:12").config.max_non_split_rounding, 20_MiB);
  EXPECT_EQ(parse("large_segment_mb:30,large_segment_size_mb:30").error,
            "large_segment_size_mb: given with large_segment_mb, which is the same setting");
  EXPECT_EQ(parse("large_segment_size_mb:8").code, Code::kMalformed);
  EXPECT_EQ(parse("large_segment_size_mb:0").error,
            "large_segment_size_mb: must be a positive multiple of the granule");
  EXPECT_EQ(parse("large_segment_size_mb:1,large_request_mb:1").error,
            "large_segment_size_mb: must be at least 2 MiB");
  EXPECT_EQ(parse("large_segment_size_mb:600,max_split_size_mb:100").error,
            "max_split_size_mb: must be more than large_segment_size_mb, which is 20 unless set");
}

TEST(ConfigTest, WithoutACacheMemoryComesInSegments) {
  EXPECT_TRUE(parse("cache:on").config.caches);
  EXPECT_FALSE(parse("cache:off").config.caches);
  EXPECT_EQ(parse("cache:False").error, "cache: 'False' is neither on nor off");
  EXPECT_EQ(parse("cache:off,backing:pages").error,
            "backing:pages: not with cache:off, whose memory comes in segments");
  EXPECT_EQ(parse("cache:off,expandable_segments:True").error,
            "expandable_segments:True: not with cache:off, whose memory comes in segments");
  EXPECT_EQ(
      parse("backend:cudaMallocAsync,expandable_segments:True").error,
      "expandable_segments:True: not with backend:cudaMallocAsync, whose memory has no pages");
  EXPECT_EQ(parse("cache:off,backing:segments").code, Code::kOk);
  EXPECT_EQ(parse("backend:cudaMallocAsync").config.backend,
            cache::AllocatorBackend::kCudaMallocAsync);
  EXPECT_EQ(parse("backend:native").config.backend, cache::AllocatorBackend::kNative);
  EXPECT_EQ(parse("backend:cudaMallocAsync,backing:pages").code, Code::kMalformed);
  EXPECT_EQ(parse("backend:cudaMallocAsync,move:eager").code, Code::kMalformed);
  for (const char* both :
       {"cache:off,backend:cudaMallocAsync", "backend:cudaMallocAsync,cache:off"})
    EXPECT_EQ(parse(both).error,
              "cache:off: not with backend:cudaMallocAsync, whose pool keeps freed memory");
  EXPECT_EQ(parse("cache:off,backend:native").code, Code::kOk);
}

TEST(ConfigTest, TheValueThatTurnsAFeatureOffIsTakenThoughTheFeatureIsNotBuilt) {
  for (const char* off :
       {"release_lock_on_cudamalloc:False", "release_lock_on_hipmalloc:False",
        "graph_capture_record_stream_reuse:False", "pinned_free_catch_all:False",
        "throw_on_cudamalloc_oom:False", "backend:native", "pinned_use_cuda_host_register:False",
        "pinned_use_hip_host_register:False", "pinned_use_background_threads:False",
        "pinned_num_register_threads:1", "pinned_reserve_segment_size_mb:0",
        "pinned_max_cached_size_mb:0", "pinned_max_round_threshold_mb:0"}) {
    EXPECT_EQ(parse(off).code, Code::kOk) << off << ": " << parse(off).error;
    EXPECT_EQ(parse(std::string(off) + "," + off).code, Code::kMalformed) << "given twice";
  }
  EXPECT_EQ(parse("pinned_num_register_threads:0").code, Code::kUnsupported);
}

TEST(ConfigTest, WhatOnlyPagesObeyIsRefusedWhereThereAreNone) {
  for (const char* setting : {"move:eager", "first_growth_mb:4", "page_handles_max:8"}) {
    EXPECT_EQ(parse(setting).code, Code::kOk) << setting;
    EXPECT_EQ(parse(std::string("backing:pages,") + setting).code, Code::kOk) << setting;
    const std::string key(setting, std::string(setting).find(':'));
    for (const std::string segments :
         {"backing:segments,", "max_split_size_mb:64,", "cache:off,"}) {
      const Parsed p = parse(segments + setting);
      EXPECT_EQ(p.code, Code::kMalformed) << segments << setting;
      EXPECT_EQ(p.error.rfind(key + ": ", 0), 0u) << p.error;
    }
  }
  EXPECT_EQ(parse("backing:segments,move:never").code, Code::kOk);
}

TEST(ConfigTest, ExpandableSegmentsArePagesAndTheBackingHasOneName) {
  EXPECT_EQ(parse("").config.backing, cache::Backing::kAuto);
  EXPECT_EQ(parse("backing:auto").config.backing, cache::Backing::kAuto);
  EXPECT_EQ(parse("expandable_segments:True").config.backing, cache::Backing::kPages);
  EXPECT_EQ(parse("expandable_segments:False").config.backing, cache::Backing::kSegments);
  EXPECT_EQ(parse("expandable_segments:false").error,
            "expandable_segments: 'false' is neither True nor False");
  for (const char* twice :
       {"expandable_segments:True,backing:pages", "backing:segments,expandable_segments:True"}) {
    EXPECT_EQ(parse(twice).code, Code::kMalformed) << twice;
    EXPECT_EQ(parse(twice).error,
              "expandable_segments: given with backing, which is the same setting");
  }
  EXPECT_EQ(parse("max_split_size_mb:64,expandable_segments:True").code, Code::kMalformed);
  EXPECT_EQ(parse("max_split_size_mb:64").config.backing, cache::Backing::kAuto);
}

TEST(ConfigTest, ACollectionsThresholdIsAPartOfTheLimit) {
  EXPECT_EQ(parse("garbage_collection_threshold:0.8").config.collection_threshold, 0.8);
  EXPECT_EQ(parse("garbage_collection_threshold:0").config.collection_threshold, 0.0);
  for (const char* bad : {"garbage_collection_threshold:1", "garbage_collection_threshold:-0.1",
                          "garbage_collection_threshold:", "garbage_collection_threshold:half",
                          "garbage_collection_threshold:nan"})
    EXPECT_EQ(parse(bad).code, Code::kMalformed) << bad;
  cache::Config config;
  config.collection_threshold = 1;
  EXPECT_EQ(cache::check_config(config).code(), Code::kInvalidArgument);
  config.collection_threshold = -1;
  EXPECT_EQ(cache::check_config(config).code(), Code::kInvalidArgument);
}

TEST(ConfigTest, HeadroomIsInMebibytes) {
  EXPECT_EQ(parse("headroom_mb:300").config.headroom, 300_MiB);
  EXPECT_EQ(parse("headroom_mb:").code, Code::kMalformed);
  cache::Config config;
  config.headroom = Bytes{std::uint64_t{1} << 60};
  EXPECT_EQ(cache::check_config(config).code(), Code::kInvalidArgument);
}

TEST(ConfigTest, AContextOfPlacesIsOneTo64Requests) {
  EXPECT_EQ(cache::Config{}.place_context, 64u);
  EXPECT_EQ(parse("place_context:1").config.place_context, 1u);
  EXPECT_EQ(parse("place_context:64").config.place_context, 64u);
  cache::Config config;
  for (const std::uint32_t bad : {0u, 65u}) {
    config.place_context = bad;
    EXPECT_STREQ(cache::check_config(config).why(), "place_context: must be from 1 to 64");
  }
}

/// Expects each text to be refused with its line.
void expect_lines(std::initializer_list<std::pair<const char*, const char*>> slips) {
  for (const auto& [text, line] : slips) {
    const Parsed p = parse(text);
    EXPECT_EQ(p.code, Code::kMalformed) << text;
    EXPECT_EQ(p.error, line);
  }
}

TEST(ConfigTest, EachSlipHasItsOwnLine) {
  expect_lines({
      {"max_spilt_size_mb:64",
       "unknown key 'max_spilt_size_mb'; did you mean 'max_split_size_mb'?"},
      {"wait_ms", "wait_ms: lacks a value"},
      {"wait_ms:5,wait_ms:6", "wait_ms: given twice"},
      {"wait_ms:5x",
       "wait_ms: '5x' is neither a number of milliseconds below 4294967295 nor never nor forever"},
      {"wait_ms:-1",
       "wait_ms: '-1' is neither a number of milliseconds below 4294967295 nor never nor forever"},
      {"max_split_size_mb:", "max_split_size_mb: '' is not a whole number in range"},
      {"max_split_size_mb:20",
       "max_split_size_mb: must be more than large_segment_mb, which is 20 unless set"},
      {"max_split_size_mb:21,small_segment_mb:21",
       "max_split_size_mb: must be more than small_segment_mb"},
      {"max_split_size_mb:99999999999999999999",
       "max_split_size_mb: '99999999999999999999' is not a whole number in range"},
      {"max_split_size_mb:17592186044416", "max_split_size_mb: '17592186044416' is over 1 PiB"},
      {"max_non_split_rounding_mb:19",
       "max_non_split_rounding_mb: must be at least large_segment_mb, which is 20 unless set"},
      {"per_process_memory_fraction:0", "per_process_memory_fraction: '0' is not in (0, 1]"},
      {"per_process_memory_fraction:1.01", "per_process_memory_fraction: '1.01' is not in (0, 1]"},
      {"per_process_memory_fraction:nan", "per_process_memory_fraction: 'nan' is not in (0, 1]"},
      {"per_process_memory_fraction:half", "per_process_memory_fraction: 'half' is not a number"},
      {"release_lock_on_cudamalloc:1", "release_lock_on_cudamalloc: '1' is neither True nor False"},
      {"backend:hip", "backend: 'hip' is neither native nor cudaMallocAsync"},
      {"place_context:0", "place_context: '0' is not a whole number from 1 to 64"},
      {"place_context:65", "place_context: '65' is not a whole number from 1 to 64"},
      {"reuse:all", "reuse: 'all' is none of own, completed, ordered"},
      {"small_segment_mb:1", "small_segment_mb: must be at least 2 MiB"},
      {"round_segment_mb:1", "round_segment_mb: must be at least 2 MiB"},
      {"large_segment_mb:1,large_request_mb:1", "large_segment_mb: must be at least 2 MiB"},
      {"granule:500", "granule: must be a power of two from 16 to 65536"},
      {"granule:0", "granule: must be a power of two from 16 to 65536"},
      {"small_request_kb:0", "small_request_kb: must be a positive multiple of the granule"},
      {"small_segment_mb:0", "small_segment_mb: must be a positive multiple of the granule"},
      {"small_request_kb:4096,large_request_mb:16",
       "small_request_kb: must fit into small_segment_mb"},
      {"small_request_kb:2048,large_request_mb:1",
       "large_request_mb: must not be below small_request_kb"},
      {"large_request_mb:21", "large_request_mb: must fit into large_segment_mb"},
      {"round_segment_mb:0", "round_segment_mb: must be a positive multiple of the granule"},
      {"large_segment_mb:0", "large_segment_mb: must be a positive multiple of the granule"},
      {"large_request_mb:0", "large_request_mb: must be a positive multiple of the granule"},
  });
}

TEST(ConfigTest, EachSlipOfTheDivisionsHasItsOwnLine) {
  expect_lines({
      {"roundup_power2_divisions:3",
       "roundup_power2_divisions: '3' has a number of divisions that is not a power of two"},
      {"roundup_power2_divisions:2048",
       "roundup_power2_divisions: '2048' has more than 1024 divisions"},
      {"roundup_power2_divisions:[256:1", "roundup_power2_divisions: '[256:1' lacks its ]"},
      {"roundup_power2_divisions:[]",
       "roundup_power2_divisions: '[]' has an entry that is not size:divisions"},
      {"roundup_power2_divisions:[256]",
       "roundup_power2_divisions: '[256]' has an entry that is not size:divisions"},
      {"roundup_power2_divisions:[256:x]",
       "roundup_power2_divisions: '[256:x]' has a number of divisions that is not a whole number"},
      {"roundup_power2_divisions:[300:2]",
       "roundup_power2_divisions: '[300:2]' has a size that is not a power of two in MiB"},
      {"roundup_power2_divisions:[65536:2]",
       "roundup_power2_divisions: '[65536:2]' has a size over 32768 MiB"},
      {"roundup_power2_divisions:[512:2,256:2]",
       "roundup_power2_divisions: '[512:2,256:2]' has sizes that do not ascend"},
      {"roundup_power2_divisions:[256:2,256:2]",
       "roundup_power2_divisions: '[256:2,256:2]' has sizes that do not ascend"},
      {"roundup_power2_divisions:[>:2]", "roundup_power2_divisions: '[>:2]' begins with >"},
      {"roundup_power2_divisions:[256:1,>:2,512:2]",
       "roundup_power2_divisions: '[256:1,>:2,512:2]' has an entry after >"},
      {"wait\n_ms:5", "unknown key 'wait?_ms'; did you mean 'wait_ms'?"},
  });
}

TEST(ConfigTest, AVeryLongValueIsShownShort) {
  const Parsed p = parse("reuse:" + std::string(5000, 'x'));
  EXPECT_EQ(p.code, Code::kMalformed);
  EXPECT_LT(p.error.size(), 200u);
}

TEST(ConfigTest, AMisspeltKeyAndAnEqualsSignAreAnsweredWithWhatIsMeant) {
  EXPECT_EQ(parse("granul:512").error, "unknown key 'granul'; did you mean 'granule'?");
  EXPECT_EQ(parse("max_split_size:64").error,
            "unknown key 'max_split_size'; did you mean 'max_split_size_mb'?");
  EXPECT_EQ(parse("quite_another:1").error, "unknown key 'quite_another'");
  EXPECT_EQ(parse("granule=512").error, "'granule=512': use ':' between a key and its value");
  EXPECT_EQ(parse("granule=512").code, Code::kMalformed);
}

// The default that the table states is the one that an empty text gives.
TEST(ConfigTest, EveryKeyOfTheTableTakesItsStatedDefaultWhichChangesNothing) {
  ASSERT_GT(cache::config_keys().size(), 30u);
  std::string_view before;
  for (const cache::ConfigKey& key : cache::config_keys()) {
    EXPECT_LT(before, key.name) << "in the order of names";
    before = key.name;
    EXPECT_EQ(parse(std::string(key.name)).error, std::string(key.name) + ": lacks a value");
    if (key.default_value.empty()) continue;
    const Parsed p = parse(std::string(key.name) + ":" + std::string(key.default_value));
    EXPECT_EQ(p.code, Code::kOk) << key.name << ": " << p.error;
    EXPECT_TRUE(is_default(p.config)) << key.name;
  }
}

TEST(ConfigTest, ATextForPyTorchIsObeyedAsFarAsItIsBuiltAndTheRestIsNamed) {
  std::string ignored = "stale", error;
  const auto config = cache::parse_pytorch_config(
      "max_split_size_mb:64, expandable_segments_reserve:0.5,granule:256,backend:cudaMallocAsync,"
      "not_known_yet:[1:2,3:4],pinned_num_register_threads:1",
      &ignored, &error);
  ASSERT_TRUE(config.is_ok()) << error;
  EXPECT_EQ(config.value().max_split_size, 64_MiB);
  EXPECT_EQ(config.value().granule, Bytes{512}) << "a key that PyTorch does not have";
  EXPECT_EQ(ignored, "expandable_segments_reserve:0.5, granule:256, not_known_yet:[1:2,3:4]");
  EXPECT_EQ(config.value().backend, cache::AllocatorBackend::kCudaMallocAsync);
  EXPECT_EQ(error, "");
  EXPECT_FALSE(cache::parse_pytorch_config("max_split_size_mb:x", &ignored, &error).is_ok());
  EXPECT_EQ(error, "max_split_size_mb: 'x' is not a whole number in range");
  EXPECT_EQ(ignored, "");
  EXPECT_TRUE(cache::parse_pytorch_config("a:1", nullptr, nullptr).is_ok());
}

TEST(ConfigTest, ALimitOfSplitsBesideExpandableSegmentsIsLeftOutOfATextForPyTorch) {
  for (const char* text : {"expandable_segments:True, max_split_size_mb:128 ,",
                           "max_split_size_mb:128,expandable_segments:True"}) {
    std::string ignored, error;
    const auto config = cache::parse_pytorch_config(text, &ignored, &error);
    ASSERT_TRUE(config.is_ok()) << error;
    EXPECT_EQ(config.value().backing, cache::Backing::kPages);
    EXPECT_EQ(config.value().max_split_size, Bytes::max());
    EXPECT_EQ(ignored, "max_split_size_mb:128");
    EXPECT_TRUE(cache::parse_pytorch_config(text, nullptr, nullptr).is_ok());
    EXPECT_FALSE(cache::parse_config(text, &error).is_ok()) << "in Ashlar's own it is an error";
  }
  std::string ignored, error;
  const auto segments = cache::parse_pytorch_config(
      "expandable_segments:False,max_split_size_mb:128", &ignored, &error);
  ASSERT_TRUE(segments.is_ok()) << error;
  EXPECT_EQ(segments.value().max_split_size, 128_MiB);
  EXPECT_EQ(ignored, "");
}

TEST(ConfigTest, ExpandableSegmentsBesideTheDriversPoolAreLeftOutOfATextForPyTorch) {
  for (const char* text : {"backend:cudaMallocAsync,expandable_segments:True",
                           "expandable_segments:True,backend:cudaMallocAsync"}) {
    std::string ignored, error;
    const auto config = cache::parse_pytorch_config(text, &ignored, &error);
    ASSERT_TRUE(config.is_ok()) << error;
    EXPECT_EQ(config.value().backend, cache::AllocatorBackend::kCudaMallocAsync);
    EXPECT_EQ(config.value().backing, cache::Backing::kSegments);
    EXPECT_EQ(ignored, "expandable_segments:True");
    EXPECT_FALSE(cache::parse_config(text, nullptr).is_ok()) << "a text of the caller's own";
  }
}

TEST(ConfigTest, TheVariableOfPyTorchIsReadOnlyByTheFunctionThatNamesIt) {
  ASSERT_EQ(setenv("PYTORCH_CUDA_ALLOC_CONF", "max_split_size_mb:64", 1), 0);
  ASSERT_EQ(unsetenv("ASHLAR_ALLOC_CONF"), 0);
  std::string ignored, error;
  EXPECT_EQ(cache::pytorch_config_from_environment(&ignored, &error).value().max_split_size,
            64_MiB);
  EXPECT_EQ(cache::config_from_environment(&error).value().max_split_size, Bytes::max());
  ASSERT_EQ(setenv("PYTORCH_ALLOC_CONF", "max_split_size_mb:80", 1), 0);
  EXPECT_EQ(cache::pytorch_config_from_environment(&ignored, &error).value().max_split_size, 64_MiB)
      << "the older name comes first, as in PyTorch";
  ASSERT_EQ(unsetenv("PYTORCH_CUDA_ALLOC_CONF"), 0);
  EXPECT_EQ(cache::pytorch_config_from_environment(&ignored, &error).value().max_split_size,
            80_MiB);
  ASSERT_EQ(unsetenv("PYTORCH_ALLOC_CONF"), 0);
  EXPECT_EQ(cache::pytorch_config_from_environment(&ignored, &error).value().max_split_size,
            Bytes::max());
}

TEST(ConfigTest, PyTorchsVariableThatBypassesTheCacheDoesSoWhateverItsValue) {
  ASSERT_EQ(setenv("PYTORCH_NO_CUDA_MEMORY_CACHING", "0", 1), 0);
  ASSERT_EQ(setenv("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True,max_split_size_mb:64", 1),
            0);
  std::string ignored, error;
  const auto config = cache::pytorch_config_from_environment(&ignored, &error);
  ASSERT_TRUE(config.is_ok()) << error;
  EXPECT_FALSE(config.value().caches);
  EXPECT_EQ(config.value().backing, cache::Backing::kSegments);
  EXPECT_EQ(config.value().max_split_size, 64_MiB);
  EXPECT_EQ(ignored, "expandable_segments:True");
  EXPECT_TRUE(cache::config_from_environment(&error).value().caches);
  ASSERT_EQ(
      setenv("PYTORCH_CUDA_ALLOC_CONF", "backend:cudaMallocAsync,expandable_segments:True", 1), 0);
  EXPECT_TRUE(cache::pytorch_config_from_environment(&ignored, &error).value().caches)
      << "PyTorch looks at the variable for its own allocator alone";
  EXPECT_EQ(ignored, "expandable_segments:True, PYTORCH_NO_CUDA_MEMORY_CACHING");
  EXPECT_TRUE(cache::pytorch_config_from_environment(nullptr, nullptr).is_ok());
  ASSERT_EQ(unsetenv("PYTORCH_NO_CUDA_MEMORY_CACHING"), 0);
  EXPECT_TRUE(cache::pytorch_config_from_environment(&ignored, &error).value().caches);
  ASSERT_EQ(unsetenv("PYTORCH_CUDA_ALLOC_CONF"), 0);
}

TEST(ConfigTest, FieldsSetByProgramAreCheckedToo) {
  cache::Config config;
  for (const double fraction : {-1.0, 0.0, 1.0000001, std::nan("")}) {
    config.memory_fraction = fraction;
    EXPECT_STREQ(cache::check_config(config).why(),
                 "per_process_memory_fraction: must be in (0, 1]");
  }
  config = cache::Config{};
  config.roundup_divisions[3] = 6;
  EXPECT_STREQ(cache::check_config(config).why(),
               "roundup_power2_divisions: must be 0 or a power of two up to 1024");
  config = cache::Config{};
  config.reuse = static_cast<cache::Reuse>(9);
  EXPECT_STREQ(cache::check_config(config).why(), "reuse: must be own, completed or ordered");
  config = cache::Config{};
  config.large_segment = Bytes{std::uint64_t{1} << 51};
  EXPECT_FALSE(cache::check_config(config).is_ok());
}

TEST(ConfigTest, TheEnvironmentIsReadAndItsAbsenceMeansDefaults) {
  ASSERT_EQ(setenv("ASHLAR_ALLOC_CONF", "wait_ms:42", 1), 0);
  EXPECT_EQ(cache::config_from_environment(nullptr).value_or(cache::Config{}).wait_ms, 42u);
  ASSERT_EQ(setenv("ASHLAR_ALLOC_CONF", "nonsense", 1), 0);
  std::string error;
  EXPECT_EQ(cache::config_from_environment(&error).code(), Code::kMalformed);
  EXPECT_EQ(error, "unknown key 'nonsense'");
  ASSERT_EQ(unsetenv("ASHLAR_ALLOC_CONF"), 0);
  EXPECT_TRUE(cache::config_from_environment(nullptr).is_ok());
}

}  // namespace
}  // namespace ashlar
