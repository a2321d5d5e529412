// The keys of the configuration string, with their values' parsers.
//
// Thread safety: constants and pure functions.
#include <ashlar/cache/config_table.h>

#include <charconv>
#include <limits>

#include <ashlar/base/checked.h>
#include <ashlar/cache/config_limits.h>
#include <ashlar/device/device.h>

namespace ashlar::inline v0::cache {
namespace {

bool parse_number(std::string_view text, std::uint64_t* out) {
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, *out);
  return error == std::errc{} && rest == end;
}

const char* parse_size(std::string_view text, Bytes unit, Bytes* out) {
  std::uint64_t number = 0;
  if (!parse_number(text, &number)) return "is not a whole number in range";
  const auto size = checked_multiply(unit, number);
  if (!size || *size > kConfigBytesMax) return "is over 1 PiB";
  *out = *size;
  return nullptr;
}

template <Bytes Config::*Field>
const char* set_mib(std::string_view value, Config* config) {
  return parse_size(value, 1_MiB, &(config->*Field));
}

template <Bytes Config::*Field>
const char* set_kib(std::string_view value, Config* config) {
  return parse_size(value, 1_KiB, &(config->*Field));
}

const char* set_granule(std::string_view value, Config* config) {
  return parse_size(value, 1_B, &config->granule);
}

const char* parse_decimal(std::string_view value, double* number) {
  const char* end = value.data() + value.size();
  const auto [rest, error] = std::from_chars(value.data(), end, *number);
  // Too close to 0 for a double counts as out of range too.
  if (error == std::errc::result_out_of_range && rest == end) return "is out of range";
  return error != std::errc{} || rest != end ? "is not a number" : nullptr;
}

const char* set_memory_fraction(std::string_view value, Config* config) {
  double fraction = 0;
  if (const char* why = parse_decimal(value, &fraction)) return why;
  if (!(fraction > 0 && fraction <= 1)) return "is not in (0, 1]";
  config->memory_fraction = fraction;
  return nullptr;
}

const char* set_collection_threshold(std::string_view value, Config* config) {
  double threshold = 0;
  if (const char* why = parse_decimal(value, &threshold)) return why;
  if (!(threshold >= 0 && threshold < 1)) return "is not in [0, 1)";
  config->collection_threshold = threshold;
  return nullptr;
}

// What is done whatever the value says. No stream's lock is held during a driver call. Inside a capture a block is
// reused where the graph's own order proves its recorded uses finished.
const char* set_either_way(std::string_view value, Config*) {
  return value == "True" || value == "False" ? nullptr : "is neither True nor False";
}

// A value that is one of a few words, and the setting that each of them means.
template <typename Value>
struct Word {
  std::string_view text;
  Value value;
};

template <typename Value, std::size_t Count>
const char* set_word(std::string_view text, const Word<Value> (&words)[Count], Value* out,
                     const char* why) {
  for (const Word<Value>& word : words) {
    if (word.text != text) continue;
    *out = word.value;
    return nullptr;
  }
  return why;
}

const char* set_reuse(std::string_view value, Config* config) {
  constexpr Word<Reuse> kWords[] = {
      {"own", Reuse::kOwn}, {"completed", Reuse::kCompleted}, {"ordered", Reuse::kOrdered}};
  return set_word(value, kWords, &config->reuse, "is none of own, completed, ordered");
}

const char* set_backing(std::string_view value, Config* config) {
  constexpr Word<Backing> kWords[] = {
      {"segments", Backing::kSegments}, {"pages", Backing::kPages}, {"auto", Backing::kAuto}};
  return set_word(value, kWords, &config->backing, "is none of segments, pages, auto");
}

const char* set_expandable(std::string_view value, Config* config) {
  constexpr Word<Backing> kWords[] = {{"False", Backing::kSegments}, {"True", Backing::kPages}};
  return set_word(value, kWords, &config->backing, "is neither True nor False");
}

const char* set_cache(std::string_view value, Config* config) {
  constexpr Word<bool> kWords[] = {{"on", true}, {"off", false}};
  return set_word(value, kWords, &config->caches, "is neither on nor off");
}

const char* set_move(std::string_view value, Config* config) {
  constexpr Word<Move> kWords[] = {
      {"never", Move::kNever}, {"limit", Move::kLimit}, {"eager", Move::kEager}};
  return set_word(value, kWords, &config->move, "is none of never, limit, eager");
}

const char* set_move_us_max(std::string_view value, Config* config) {
  std::uint64_t number = 0;
  if (!parse_number(value, &number) || number > std::numeric_limits<std::uint32_t>::max())
    return "is not a number of microseconds below 4294967296";
  config->move_us_max = static_cast<std::uint32_t>(number);
  return nullptr;
}

const char* set_page_handles_max(std::string_view value, Config* config) {
  return parse_number(value, &config->page_handles_max) ? nullptr : "is not a whole number";
}

const char* set_place_context(std::string_view value, Config* config) {
  std::uint64_t number = 0;
  if (!parse_number(value, &number) || number < 1 || number > kPlaceContextMax)
    return "is not a whole number from 1 to 64";
  config->place_context = static_cast<std::uint32_t>(number);
  return nullptr;
}

const char* set_wait(std::string_view value, Config* config) {
  std::uint64_t number = 0;
  if (value == "never") {
    config->wait_ms = 0;
  } else if (value == "forever") {
    config->wait_ms = device::kWaitForever;
  } else if (parse_number(value, &number) && number < device::kWaitForever) {
    config->wait_ms = static_cast<std::uint32_t>(number);
  } else {
    return "is neither a number of milliseconds below 4294967295 nor never nor forever";
  }
  return nullptr;
}

const char* parse_divisions(std::string_view text, std::uint32_t* out) {
  std::uint64_t number = 0;
  if (!parse_number(text, &number)) return "has a number of divisions that is not a whole number";
  if (number > kRoundupDivisionsMax) return "has more than 1024 divisions";
  if (number != 0 && !is_power_of_two(number))
    return "has a number of divisions that is not a power of two";
  *out = static_cast<std::uint32_t>(number);
  return nullptr;
}

// One `[K:D,...,>:D]`. An entry K:D applies to sizes in [K, 2K) MiB. The first entry also applies
// to smaller sizes, `>` to all sizes from twice the last key on. Sizes of no entry are rounded to
// the granule.
const char* set_division_list(std::string_view list, Config* config) {
  auto& divisions = config->roundup_divisions;
  divisions.fill(0);
  std::size_t next = 0;  // the index after the last entry's
  bool closed = false;   // `>` was seen
  bool first = true;
  while (true) {
    const std::size_t comma = list.find(',');
    const std::string_view entry = trimmed_setting(list.substr(0, comma));
    const std::size_t colon = entry.find(':');
    if (colon == std::string_view::npos) return "has an entry that is not size:divisions";
    if (closed) return "has an entry after >";
    std::uint32_t count = 0;
    if (const char* why = parse_divisions(trimmed_setting(entry.substr(colon + 1)), &count))
      return why;
    const std::string_view key = trimmed_setting(entry.substr(0, colon));
    if (key == ">") {
      if (first) return "begins with >";
      closed = true;
      for (std::size_t i = next; i < divisions.size(); ++i) divisions[i] = count;
    } else {
      std::uint64_t mib = 0;
      if (!parse_number(key, &mib) || !is_power_of_two(mib))
        return "has a size that is not a power of two in MiB";
      std::size_t index = 0;
      while (index < divisions.size() && (std::uint64_t{1} << index) != mib) ++index;
      if (index == divisions.size()) return "has a size over 32768 MiB";
      if (!first && index < next) return "has sizes that do not ascend";
      for (std::size_t i = first ? 0 : index; i <= index; ++i) divisions[i] = count;
      next = index + 1;
    }
    first = false;
    if (comma == std::string_view::npos) return nullptr;
    list.remove_prefix(comma + 1);
  }
}

const char* set_divisions(std::string_view value, Config* config) {
  if (!value.empty() && value.front() == '[') {
    if (value.back() != ']') return "lacks its ]";
    return set_division_list(value.substr(1, value.size() - 2), config);
  }
  std::uint32_t count = 0;
  if (const char* why = parse_divisions(value, &count)) return why;
  config->roundup_divisions.fill(count);
  return nullptr;
}

const char* set_backend(std::string_view value, Config* config) {
  constexpr Word<AllocatorBackend> kWords[] = {
      {"native", AllocatorBackend::kNative},
      {"cudaMallocAsync", AllocatorBackend::kCudaMallocAsync}};
  return set_word(value, kWords, &config->backend, "is neither native nor cudaMallocAsync");
}

// One row for each key, in the order of their names.
constexpr std::array kRows{
    ConfigRow{
        {"backend", "native or cudaMallocAsync", "native",
         "who keeps freed memory: this allocator, or the driver's stream-ordered pool", true, true},
        set_backend,
        Off::kNone},
    ConfigRow{{"backing", "segments, pages or auto", "auto",
               "where memory comes from: segments of fixed size, or pages mapped into ranges of "
               "addresses",
               false, true},
              set_backing,
              Off::kNone},
    ConfigRow{
        {"cache", "on or off", "on",
         "off: each allocation is memory of its own from the driver, and goes back when it is "
         "freed",
         false, true},
        set_cache,
        Off::kNone},
    ConfigRow{{"expandable_segments", "True or False", "",
               "True is backing:pages, False backing:segments", true, true},
              set_expandable,
              Off::kNone},
    ConfigRow{{"expandable_segments_reserve", "", "",
               "a range of addresses is as long as its growth asks for: no reserve is made ahead",
               true, false},
              nullptr,
              Off::kNone},
    ConfigRow{{"expandable_segments_reserve_by_class", "", "",
               "as expandable_segments_reserve; streams have no classes", true, false},
              nullptr,
              Off::kNone},
    ConfigRow{
        {"first_growth_mb", "0, or 2 to 512", "0",
         "the large pool first grows by segments of this size, in MiB; 0: never", false, true},
        set_mib<&Config::first_growth>,
        Off::kNone},
    ConfigRow{
        {"garbage_collection_threshold", "0 to below 1", "0",
         "idle segments go back while over this part of the memory limit is reserved; 0: never",
         true, true},
        set_collection_threshold,
        Off::kNone},
    ConfigRow{{"granule", "power of two, 16 to 65536", "512",
               "requests are rounded up to a multiple of this, in bytes", false, true},
              set_granule,
              Off::kNone},
    ConfigRow{
        {"graph_capture_record_stream_reuse", "True or False", "", "done either way", true, true},
        set_either_way,
        Off::kNone},
    ConfigRow{{"headroom_mb", "whole number", "0",
               "memory of each device that is left to others, in MiB", false, true},
              set_mib<&Config::headroom>,
              Off::kNone},
    ConfigRow{{"large_request_mb", "whole number", "10",
               "large requests below this are cut from segments of large_segment_mb", false, true},
              set_mib<&Config::large_request_min>,
              Off::kNone},
    ConfigRow{{"large_segment_mb", "whole number, at least 2", "20", "the size of those segments",
               false, true},
              set_mib<&Config::large_segment>,
              Off::kNone},
    ConfigRow{{"large_segment_size_mb", "whole number, at least 2", "",
               "large_segment_mb, and max_non_split_rounding_mb unless that is set", true, true},
              set_mib<&Config::large_segment>,
              Off::kNone},
    ConfigRow{{"max_non_split_rounding_mb", "whole number", "20",
               "an unsplit block may be larger than its request by less than this", true, true},
              set_mib<&Config::max_non_split_rounding>,
              Off::kNone},
    ConfigRow{{"max_split_size_mb", "whole number over large_segment_mb", "",
               "blocks of this size or more are never split; none unless set", true, true},
              set_mib<&Config::max_split_size>,
              Off::kNone},
    ConfigRow{
        {"move", "never, limit or eager", "limit",
         "when a page moves: never, in place of an out-of-memory, or before the driver is asked",
         false, true},
        set_move,
        Off::kNone},
    ConfigRow{{"move_us_max", "whole number", "2000",
               "the modelled microseconds one allocation may spend on moves, with move:eager",
               false, true},
              set_move_us_max,
              Off::kNone},
    ConfigRow{{"page_handles_max", "whole number", "0",
               "the most pages of a device at a time; 0: no bound", false, true},
              set_page_handles_max,
              Off::kNone},
    ConfigRow{{"per_process_memory_fraction", "over 0, to 1", "1",
               "the most that is reserved, as a part of the device's memory", true, true},
              set_memory_fraction,
              Off::kNone},
    ConfigRow{{"pinned_free_catch_all", "True or False", "",
               "done either way: a free of page-locked memory throws nothing", true, true},
              set_either_way,
              Off::kNone},
    ConfigRow{{"pinned_max_cached_size_mb", "0", "0",
               "page-locked memory is bounded by PinnedConfig::cache and given back by a trim",
               true, false},
              nullptr,
              Off::kZero},
    ConfigRow{
        {"pinned_max_round_threshold_mb", "0", "0",
         "of page-locked memory: PinnedConfig::rounds_to_power_of_two, which is off", true, false},
        nullptr,
        Off::kZero},
    ConfigRow{{"pinned_num_register_threads", "1", "1",
               "of page-locked memory: PinnedSpaceOptions::touch_threads", true, false},
              nullptr,
              Off::kOne},
    ConfigRow{{"pinned_reserve_segment_size_mb", "0", "0",
               "of page-locked memory: PinnedConfig::reserve", true, false},
              nullptr,
              Off::kZero},
    ConfigRow{{"pinned_use_background_threads", "False", "False",
               "of page-locked memory: PinnedConfig::reap_ms", true, false},
              nullptr,
              Off::kFalse},
    ConfigRow{{"pinned_use_cuda_host_register", "False", "False",
               "of page-locked memory: PinnedSpaceOptions::by", true, false},
              nullptr,
              Off::kFalse},
    ConfigRow{{"pinned_use_hip_host_register", "False", "False",
               "of page-locked memory: PinnedSpaceOptions::by", true, false},
              nullptr,
              Off::kFalse},
    ConfigRow{
        {"place_context", "1 to 64", "64",
         "how many requests must repeat before one is expected at its earlier place", false, true},
        set_place_context,
        Off::kNone},
    ConfigRow{{"release_lock_on_cudamalloc", "True or False", "",
               "done either way: no lock is held in a driver call", true, true},
              set_either_way,
              Off::kNone},
    ConfigRow{{"release_lock_on_hipmalloc", "True or False", "", "done either way", true, true},
              set_either_way,
              Off::kNone},
    ConfigRow{{"reuse", "own, completed or ordered", "completed",
               "when a stream may take memory that another stream's heap holds idle", false, true},
              set_reuse,
              Off::kNone},
    ConfigRow{{"round_segment_mb", "whole number, at least 2", "2",
               "larger requests get a segment rounded up to a multiple of this", false, true},
              set_mib<&Config::segment_round>,
              Off::kNone},
    ConfigRow{{"roundup_power2_divisions", "power of two, or [size:divisions,...,>:divisions]", "0",
               "requests are rounded up to one of so many steps between powers of two; 0: not",
               true, true},
              set_divisions,
              Off::kNone},
    ConfigRow{{"small_request_kb", "whole number", "1024", "the largest request of the small pool",
               false, true},
              set_kib<&Config::small_request_max>,
              Off::kNone},
    ConfigRow{{"small_segment_mb", "whole number, at least 2", "2",
               "the size of the small pool's segments", false, true},
              set_mib<&Config::small_segment>,
              Off::kNone},
    ConfigRow{
        {"throw_on_cudamalloc_oom", "True or False", "",
         "done either way: what exceeds the memory limit is refused before the driver is asked",
         true, true},
        set_either_way,
        Off::kNone},
    ConfigRow{
        {"wait_ms", "whole number, never or forever", "1000",
         "how long an allocation may wait for work that still uses freed memory, in milliseconds",
         false, true},
        set_wait,
        Off::kNone},
};

constexpr auto kKeys = [] {
  std::array<ConfigKey, kRows.size()> keys{};
  for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = kRows[i].key;
  return keys;
}();
static_assert(kRows.size() == kConfigKeys);

}  // namespace

std::span<const ConfigRow> config_rows() noexcept { return kRows; }

std::span<const ConfigKey> config_keys() noexcept { return kKeys; }

}  // namespace ashlar::inline v0::cache
