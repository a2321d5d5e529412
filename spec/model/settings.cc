// See settings.h. Written from the documented grammar, by regular expressions and one table of
// fields, where the library's parser scans by hand.
#include "spec/model/settings.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <map>
#include <regex>
#include <set>
#include <vector>

#include <ashlar/device/device.h>

namespace ashlar::spec {
namespace {

using cache::Config;
using Number = unsigned __int128;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kPiB = std::uint64_t{1} << 50;

/// Digits of at most 64 bits.
std::optional<std::uint64_t> number(const std::string& text) {
  if (!std::regex_match(text, std::regex("[0-9]+"))) return std::nullopt;
  Number value = 0;
  for (const char digit : text) {
    value = value * 10 + static_cast<unsigned>(digit - '0');
    if (value > ~std::uint64_t{0}) return std::nullopt;
  }
  return static_cast<std::uint64_t>(value);
}

struct SizeField {
  Bytes Config::*field;
  std::uint64_t unit;
};
const std::map<std::string, SizeField> kSizes{
    {"granule", {&Config::granule, 1}},
    {"small_request_kb", {&Config::small_request_max, 1024}},
    {"small_segment_mb", {&Config::small_segment, kMiB}},
    {"large_request_mb", {&Config::large_request_min, kMiB}},
    {"large_segment_mb", {&Config::large_segment, kMiB}},
    {"large_segment_size_mb", {&Config::large_segment, kMiB}},
    {"round_segment_mb", {&Config::segment_round, kMiB}},
    {"max_split_size_mb", {&Config::max_split_size, kMiB}},
    {"max_non_split_rounding_mb", {&Config::max_non_split_rounding, kMiB}},
    {"headroom_mb", {&Config::headroom, kMiB}},
    {"first_growth_mb", {&Config::first_growth, kMiB}},
};

/// Keys with a fixed set of values, none of which changes a field: what turns a feature off that is
/// not built, and what means the same here either way.
const std::map<std::string, std::set<std::string>> kIndifferent{
    {"expandable_segments_reserve", {}},
    {"expandable_segments_reserve_by_class", {}},
    {"graph_capture_record_stream_reuse", {"True", "False"}},
    {"pinned_free_catch_all", {"True", "False"}},
    {"pinned_max_cached_size_mb", {"0", "0.0", "0."}},
    {"pinned_max_round_threshold_mb", {"0", "0.0", "0."}},
    {"pinned_num_register_threads", {"1"}},
    {"pinned_reserve_segment_size_mb", {"0", "0.0", "0."}},
    {"pinned_use_background_threads", {"False"}},
    {"pinned_use_cuda_host_register", {"False"}},
    {"pinned_use_hip_host_register", {"False"}},
    {"release_lock_on_cudamalloc", {"True", "False"}},
    {"release_lock_on_hipmalloc", {"True", "False"}},
    {"throw_on_cudamalloc_oom", {"True", "False"}},
};

std::optional<std::uint32_t> divisions(const std::string& text) {
  const auto count = number(text);
  if (!count || *count > 1024 || std::popcount(*count) > 1) return std::nullopt;
  return static_cast<std::uint32_t>(*count);
}

/// One number for all sizes, or `[K:D, ..., >:D]`.
bool set_divisions(const std::string& value, Config* config) {
  auto& rows = config->roundup_divisions;
  std::smatch list;
  if (!std::regex_match(value, list, std::regex(R"(\[(.*)\])"))) {
    const auto count = divisions(value);
    if (count) rows.fill(*count);
    return count.has_value();
  }
  rows.fill(0);
  std::string rest = list[1].str() + ",";
  std::optional<std::size_t> last;  // the row of the last entry
  bool is_closed = false;
  const std::regex entry(R"( *([0-9]+|>) *: *([0-9]+) *,)");
  for (std::smatch found; !rest.empty(); rest = found.suffix().str()) {
    if (!std::regex_search(rest, found, entry, std::regex_constants::match_continuous))
      return false;
    const auto count = divisions(found[2].str());
    if (!count || is_closed) return false;
    std::size_t begin = last ? *last + 1 : 0;
    std::size_t end = rows.size();
    if (found[1].str() == ">") {
      if (!last) return false;
      is_closed = true;
    } else {
      const auto mib = number(found[1].str());
      if (!mib || std::popcount(*mib) != 1 || *mib > 32768) return false;
      const auto row = static_cast<std::size_t>(std::countr_zero(*mib));
      if (row < begin) return false;
      if (last) begin = row;
      end = row + 1;
      last = row;
    }
    for (std::size_t i = begin; i < end; ++i) rows[i] = *count;
  }
  return true;
}

bool set_wait(const std::string& value, Config* config) {
  const auto ms = number(value);
  if (value == "never") config->wait_ms = 0;
  else if (value == "forever") config->wait_ms = device::kWaitForever;
  else if (ms && *ms < device::kWaitForever) config->wait_ms = static_cast<std::uint32_t>(*ms);
  else return false;
  return true;
}

bool set_decimal(const std::string& value, double* field) {
  static const std::regex decimal(R"(-?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?)");
  if (!std::regex_match(value, decimal)) return false;
  errno = 0;
  *field = std::strtod(value.c_str(), nullptr);
  // What a double holds as a subnormal number is in range.
  return errno != ERANGE || (*field != 0 && std::isfinite(*field));
}

bool set_field(const std::string& key, const std::string& value, Config* config) {
  if (const auto size = kSizes.find(key); size != kSizes.end()) {
    const auto count = number(value);
    if (!count || Number{*count} * size->second.unit > kPiB) return false;
    config->*size->second.field = Bytes{*count * size->second.unit};
    return true;
  }
  if (key == "reuse") {
    const std::vector<std::string> words{"own", "completed", "ordered"};
    const auto at = std::find(words.begin(), words.end(), value);
    config->reuse = static_cast<cache::Reuse>(at - words.begin());
    return at != words.end();
  }
  if (key == "backing") {
    config->backing = value == "pages" ? cache::Backing::kPages : cache::Backing::kSegments;
    if (value == "auto") config->backing = cache::Backing::kAuto;
    return value == "pages" || value == "segments" || value == "auto";
  }
  if (key == "backend") {
    config->backend = value == "native" ? cache::AllocatorBackend::kNative
                                        : cache::AllocatorBackend::kCudaMallocAsync;
    return value == "native" || value == "cudaMallocAsync";
  }
  if (key == "cache") {
    config->caches = value == "on";
    return value == "on" || value == "off";
  }
  if (key == "expandable_segments") {
    config->backing = value == "True" ? cache::Backing::kPages : cache::Backing::kSegments;
    return value == "True" || value == "False";
  }
  if (key == "move") {
    const std::vector<std::string> words{"never", "limit", "eager"};
    const auto at = std::find(words.begin(), words.end(), value);
    config->move = static_cast<cache::Move>(at - words.begin());
    return at != words.end();
  }
  if (key == "move_us_max") {
    const auto count = number(value);
    config->move_us_max = static_cast<std::uint32_t>(count.value_or(0));
    return count && *count < std::uint64_t{1} << 32;
  }
  if (key == "page_handles_max") {
    const auto count = number(value);
    config->page_handles_max = count.value_or(0);
    return count.has_value();
  }
  if (key == "place_context") {
    const auto count = number(value);
    config->place_context = static_cast<std::uint32_t>(count.value_or(0));
    return count && *count >= 1 && *count <= 64;
  }
  if (key == "wait_ms") return set_wait(value, config);
  if (key == "per_process_memory_fraction") return set_decimal(value, &config->memory_fraction);
  if (key == "garbage_collection_threshold")
    return set_decimal(value, &config->collection_threshold);
  if (key == "roundup_power2_divisions") return set_divisions(value, config);
  const auto indifferent = kIndifferent.find(key);
  return indifferent != kIndifferent.end() && indifferent->second.count(value) != 0;
}

bool caches_here(const Config& c) {
  return c.caches && c.backend == cache::AllocatorBackend::kNative;
}

bool is_consistent(const Config& c) {
  const auto size = [](Bytes bytes) { return bytes.count(); };
  if (!std::has_single_bit(size(c.granule)) || size(c.granule) < 16 || size(c.granule) > 65536)
    return false;
  for (const Bytes each : {c.small_request_max, c.small_segment, c.large_request_min,
                           c.large_segment, c.segment_round}) {
    if (size(each) == 0 || size(each) % size(c.granule) != 0) return false;
  }
  for (const Bytes segment : {c.small_segment, c.large_segment, c.segment_round}) {
    if (size(segment) < kPageBytes) return false;
  }
  if (obeyed_settings(c).backing == cache::Backing::kSegments &&
      (c.move == cache::Move::kEager || c.first_growth != Bytes{} || c.page_handles_max != 0))
    return false;
  const std::uint64_t first = size(c.first_growth);
  if (first != 0 && (first % size(c.granule) != 0 || first < kPageBytes || first > 512 * kMiB))
    return false;
  return c.small_request_max <= c.small_segment && c.small_request_max <= c.large_request_min &&
         c.large_request_min <= c.large_segment && c.large_segment < c.max_split_size &&
         c.small_segment < c.max_split_size && c.large_segment <= c.max_non_split_rounding &&
         (c.backing != cache::Backing::kPages ||
          (c.max_split_size == Bytes::max() && caches_here(c))) &&
         c.place_context >= 1 && c.place_context <= 64 && c.memory_fraction > 0 &&
         c.memory_fraction <= 1 && c.collection_threshold >= 0 && c.collection_threshold < 1;
}

}  // namespace

std::optional<Config> read_settings(const std::string& text) {
  Config config;
  std::set<std::string> seen;
  if (std::regex_match(text, std::regex(" *"))) return config;
  // A value in brackets may hold commas; one comma may end the text.
  static const std::regex setting(R"( *([^:, ]+) *: *((?:[^,\[\]]|\[[^\[\]]*\])*?) *(,|$) *)");
  std::string rest = text;
  for (std::smatch found; !rest.empty(); rest = found.suffix().str()) {
    if (!std::regex_search(rest, found, setting, std::regex_constants::match_continuous))
      return std::nullopt;
    const std::string key = found[1].str();
    if (!seen.insert(key).second || !set_field(key, found[2].str(), &config)) return std::nullopt;
  }
  if (seen.count("backing") + seen.count("expandable_segments") > 1) return std::nullopt;
  if (seen.count("large_segment_mb") + seen.count("large_segment_size_mb") > 1) return std::nullopt;
  if (seen.count("large_segment_size_mb") != 0 && seen.count("max_non_split_rounding_mb") == 0)
    config.max_non_split_rounding = config.large_segment;
  return is_consistent(config) ? std::optional(config) : std::nullopt;
}

Config obeyed_settings(Config config) {
  config.caches = caches_here(config);
  if (config.backing != cache::Backing::kAuto) return config;
  const bool is_whole = config.max_split_size != Bytes::max() || !config.caches;
  config.backing = is_whole ? cache::Backing::kSegments : cache::Backing::kPages;
  return config;
}

const char* differing_field(const Config& subject, const Config& asked) {
  for (const auto& [key, size] : kSizes) {
    if (subject.*size.field != asked.*size.field) return key.c_str();
  }
  if (subject.roundup_divisions != asked.roundup_divisions) return "roundup_power2_divisions";
  if (subject.memory_fraction != asked.memory_fraction) return "per_process_memory_fraction";
  if (subject.collection_threshold != asked.collection_threshold)
    return "garbage_collection_threshold";
  if (subject.reuse != asked.reuse) return "reuse";
  if (subject.backing != asked.backing) return "backing";
  if (subject.caches != asked.caches) return "cache";
  if (subject.backend != asked.backend) return "backend";
  if (subject.move != asked.move) return "move";
  if (subject.move_us_max != asked.move_us_max) return "move_us_max";
  if (subject.page_handles_max != asked.page_handles_max) return "page_handles_max";
  if (subject.place_context != asked.place_context) return "place_context";
  return subject.wait_ms != asked.wait_ms ? "wait_ms" : nullptr;
}

}  // namespace ashlar::spec
