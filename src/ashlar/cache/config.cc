// The configuration string: `key:value,key:value`. config_check.cc has what makes a Config consistent.
//
// Thread safety: pure functions; config_from_environment reads the environment once per call.
//
// Keys and their value syntax are PyTorch's (torch.cuda memory-management notes); the parser is
// strict where PyTorch's is lax: digits only, no key twice, nothing after a value. Spaces around
// keys and values are ignored, and so is one trailing comma, as in PyTorch.
#include <ashlar/cache/config.h>

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <utility>

#include <ashlar/base/checked.h>
#include <ashlar/cache/config_limits.h>
#include <ashlar/device/device.h>

namespace ashlar::inline v0::cache {
namespace {

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// A setting's parser: nullptr, or why the value is bad (static text).
using SetValue = const char* (*)(std::string_view value, Config* config);

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
    const std::string_view entry = trim(list.substr(0, comma));
    const std::size_t colon = entry.find(':');
    if (colon == std::string_view::npos) return "has an entry that is not size:divisions";
    if (closed) return "has an entry after >";
    std::uint32_t count = 0;
    if (const char* why = parse_divisions(trim(entry.substr(colon + 1)), &count)) return why;
    const std::string_view key = trim(entry.substr(0, colon));
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

const char* set_backend(std::string_view value, Config*) {
  return value == "native" ? nullptr : "is neither native nor cudaMallocAsync";
}

// The value of a key that turns its feature off. Of a feature that is not built it is the one value
// that can be obeyed.
enum class Off : std::uint8_t { kNone, kFalse, kZero, kOne };

const char* text_of(Off off) {
  switch (off) {
    case Off::kNone: return "";
    case Off::kFalse: return "False";
    case Off::kZero: return "0";
    case Off::kOne: return "1";
  }
  return "";
}

// 0, and how people write it where a fraction is expected.
bool is_zero(std::string_view value) { return value == "0" || value == "0.0" || value == "0."; }

bool turns_off(Off off, std::string_view value) {
  return off == Off::kZero ? is_zero(value) : off != Off::kNone && value == text_of(off);
}

struct Key {
  std::string_view name;
  SetValue set;  // null: PyTorch knows it, and what it turns on is not built here
  Off off = Off::kNone;
};

constexpr std::array kKeys{
    Key{"backend", set_backend},
    Key{"backing", set_backing},
    Key{"expandable_segments", set_expandable},
    Key{"expandable_segments_reserve", nullptr},
    Key{"expandable_segments_reserve_by_class", nullptr},
    Key{"first_growth_mb", set_mib<&Config::first_growth>},
    Key{"garbage_collection_threshold", set_collection_threshold},
    Key{"granule", set_granule},
    Key{"graph_capture_record_stream_reuse", set_either_way},
    Key{"headroom_mb", set_mib<&Config::headroom>},
    Key{"large_request_mb", set_mib<&Config::large_request_min>},
    Key{"large_segment_mb", set_mib<&Config::large_segment>},
    Key{"max_non_split_rounding_mb", set_mib<&Config::max_non_split_rounding>},
    Key{"max_split_size_mb", set_mib<&Config::max_split_size>},
    Key{"move", set_move},
    Key{"move_us_max", set_move_us_max},
    Key{"page_handles_max", set_page_handles_max},
    Key{"per_process_memory_fraction", set_memory_fraction},
    Key{"pinned_max_cached_size_mb", nullptr, Off::kZero},
    Key{"pinned_max_round_threshold_mb", nullptr, Off::kZero},
    Key{"pinned_num_register_threads", nullptr, Off::kOne},
    Key{"pinned_reserve_segment_size_mb", nullptr, Off::kZero},
    Key{"pinned_use_background_threads", nullptr, Off::kFalse},
    Key{"pinned_use_cuda_host_register", nullptr, Off::kFalse},
    Key{"pinned_use_hip_host_register", nullptr, Off::kFalse},
    Key{"place_context", set_place_context},
    Key{"release_lock_on_cudamalloc", set_either_way},
    Key{"release_lock_on_hipmalloc", set_either_way},
    Key{"reuse", set_reuse},
    Key{"round_segment_mb", set_mib<&Config::segment_round>},
    Key{"roundup_power2_divisions", set_divisions},
    Key{"small_request_kb", set_kib<&Config::small_request_max>},
    Key{"small_segment_mb", set_mib<&Config::small_segment>},
    Key{"throw_on_cudamalloc_oom", nullptr, Off::kFalse},
    Key{"wait_ms", set_wait},
};

// Text from outside, made fit for one line of a message: control bytes become '?', and it is cut at
// 60 bytes.
std::string printable(std::string_view text) {
  constexpr std::size_t kShownMax = 60;
  std::string out;
  for (const char c : text.substr(0, kShownMax)) out += (c >= ' ' && c <= '~') ? c : '?';
  if (text.size() > kShownMax) out += "...";
  return out;
}

Status fail(Code code, const char* why, std::string text, std::string* error) {
  if (error != nullptr) *error = std::move(text);
  return {code, why};
}

// The length of the first `key:value` of `text`: up to a comma that stands in no brackets.
std::size_t setting_length(std::string_view text) {
  bool bracketed = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '[') bracketed = true;
    if (text[i] == ']') bracketed = false;
    if (text[i] == ',' && !bracketed) return i;
  }
  return text.size();
}

// Of a key whose feature is not built only the value that turns it off is taken.
Status refuse_unless_off(const Key& key, std::string_view value, std::string* error) {
  if (turns_off(key.off, value)) return Status::ok();
  std::string text = std::string{key.name} + ": known, but not built here";
  if (key.off != Off::kNone) text += std::string("; it can only be ") + text_of(key.off);
  return fail(Code::kUnsupported, "config: known key, not built", std::move(text), error);
}

using KeysSeen = std::array<bool, kKeys.size()>;

bool has_two_names_of_backing(const KeysSeen& seen) {
  unsigned names = 0;
  for (std::size_t i = 0; i < kKeys.size(); ++i)
    names += seen[i] && (kKeys[i].set == set_backing || kKeys[i].set == set_expandable);
  return names > 1;
}

Status apply(std::string_view setting, Config* config, KeysSeen* seen, std::string* error) {
  if (setting.empty())
    return fail(Code::kMalformed, "config: empty setting", "a setting is empty", error);
  const std::size_t colon = setting.find(':');
  const std::string_view name = trim(setting.substr(0, colon));
  std::size_t index = 0;
  while (index < kKeys.size() && kKeys[index].name != name) ++index;
  if (index == kKeys.size()) {
    return fail(Code::kMalformed, "config: unknown key", "unknown key '" + printable(name) + "'",
                error);
  }
  const std::string shown{name};
  if (colon == std::string_view::npos) {
    return fail(Code::kMalformed, "config: key without value", shown + ": lacks a value", error);
  }
  if ((*seen)[index])
    return fail(Code::kMalformed, "config: key given twice", shown + ": given twice", error);
  (*seen)[index] = true;
  const std::string_view value = trim(setting.substr(colon + 1));
  if (kKeys[index].set == nullptr) return refuse_unless_off(kKeys[index], value, error);
  if (kKeys[index].set == set_backend && value == "cudaMallocAsync") {
    return fail(Code::kUnsupported, "config: known backend, not built",
                "backend: 'cudaMallocAsync' is known, but not built here", error);
  }
  if (const char* why = kKeys[index].set(value, config)) {
    return fail(Code::kMalformed, "config: bad value",
                shown + ": '" + printable(value) + "' " + why, error);
  }
  return Status::ok();
}

}  // namespace

Result<Config> parse_config(std::string_view text, std::string* error) {
  Config config;
  KeysSeen seen{};
  std::string_view rest = trim(text);
  while (!rest.empty()) {
    const std::size_t length = setting_length(rest);
    if (const Status status = apply(trim(rest.substr(0, length)), &config, &seen, error);
        !status.is_ok())
      return status;
    rest = length == rest.size() ? std::string_view{} : trim(rest.substr(length + 1));
  }
  if (has_two_names_of_backing(seen))
    return fail(Code::kMalformed, "config: one setting under two names",
                "expandable_segments: given with backing, which is the same setting", error);
  if (const Status status = check_config(config); !status.is_ok()) {
    return fail(Code::kMalformed, status.why(), status.why(), error);
  }
  return config;
}

Result<Config> config_from_environment(std::string* error) {
  const char* text = std::getenv("ASHLAR_ALLOC_CONF");
  return parse_config(text == nullptr ? "" : text, error);
}

}  // namespace ashlar::inline v0::cache
