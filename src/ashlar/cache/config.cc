// The configuration string: `key:value,key:value`. config_table.cc has its keys,
// config_check.cc what makes a Config consistent.
//
// Thread safety: pure functions; config_from_environment reads the environment once per call.
//
// Keys and their value syntax are PyTorch's (torch.cuda memory-management notes); the parser is
// strict where PyTorch's is lax: digits only, no key twice, nothing after a value. Spaces around
// keys and values are ignored, and so is one trailing comma, as in PyTorch.
#include <ashlar/cache/config.h>

#include <array>
#include <cstdlib>
#include <span>
#include <utility>
#include <vector>

#include <ashlar/base/nearest_word.h>
#include <ashlar/cache/config_table.h>

namespace ashlar::inline v0::cache {
namespace {

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

// Of a key whose feature is not built only the value that turns it off is taken.
Status refuse_unless_off(const ConfigRow& row, std::string_view value, std::string* error) {
  if (turns_off(row.off, value)) return Status::ok();
  std::string text = std::string{row.key.name} + ": known, but not built here";
  if (row.off != Off::kNone) text += std::string("; it can only be ") + text_of(row.off);
  text += " (" + std::string{row.key.meaning} + ")";
  return fail(Code::kUnsupported, "config: known key, not built", std::move(text), error);
}

/// How a text is read.
enum class Reading : std::uint8_t {
  kStrict,   ///< every setting is obeyed or an error
  kPyTorch,  ///< written for PyTorch: what is not obeyed is named and left out
};

/// Applies a text's settings to a Config, one by one.
class Reader {
 public:
  Reader(Reading reading, bool caches, std::string* error) : reading_(reading), error_(error) {
    config_.caches = caches;
  }

  /// Of a bad setting `*error` is the text, and false: `is_unheeded` says whether it is one that a
  /// text for PyTorch may have.
  Status apply(std::string_view setting, bool* is_unheeded);
  /// The setting that PyTorch allows beside one that it means nothing with, which is left out: pages where nothing
  /// is cached here, `max_split_size_mb` with pages. Empty if there is none. The driver's pool caches
  /// whatever PyTorch's variable says.
  std::string_view drop_idle_setting();
  Status finish();
  const Config& config() const { return config_; }

 private:
  Status unknown(std::string_view setting, std::string_view name);
  bool has_seen(std::string_view key) const;
  /// The text with PyTorch's name of a setting where it was given by that.
  std::string in_words_given(std::string text) const;

  const Reading reading_;
  std::string* const error_;
  Config config_;
  std::array<bool, kConfigKeys> seen_{};
  std::string_view split_limit_;  ///< the setting of max_split_size_mb
  std::string_view expandable_;   ///< of expandable_segments
};

Status Reader::unknown(std::string_view setting, std::string_view name) {
  if (setting.find(':') == std::string_view::npos && setting.find('=') != std::string_view::npos) {
    return fail(Code::kMalformed, "config: `=` for `:`",
                "'" + printable(setting) + "': use ':' between a key and its value", error_);
  }
  std::vector<std::string_view> names;
  for (const ConfigKey& key : config_keys()) names.push_back(key.name);
  return fail(Code::kMalformed, "config: unknown key",
              "unknown key '" + printable(name) + "'" + did_you_mean(name, names), error_);
}

Status Reader::apply(std::string_view setting, bool* is_unheeded) {
  if (setting.empty())
    return fail(Code::kMalformed, "config: empty setting", "a setting is empty", error_);
  const std::size_t colon = setting.find(':');
  const std::string_view name = trimmed_setting(setting.substr(0, colon));
  const std::span<const ConfigRow> rows = config_rows();
  std::size_t index = 0;
  while (index < rows.size() && rows[index].key.name != name) ++index;
  *is_unheeded =
      colon != std::string_view::npos && (index == rows.size() || !rows[index].key.is_pytorch);
  if (index == rows.size()) return unknown(setting, name);
  const std::string shown{name};
  if (reading_ == Reading::kPyTorch && *is_unheeded) {
    return fail(Code::kUnsupported, "config: no key of PyTorch's", shown + ": not PyTorch's",
                error_);
  }
  if (colon == std::string_view::npos) {
    return fail(Code::kMalformed, "config: key without value", shown + ": lacks a value", error_);
  }
  if (seen_[index])
    return fail(Code::kMalformed, "config: key given twice", shown + ": given twice", error_);
  seen_[index] = true;
  const std::string_view value = trimmed_setting(setting.substr(colon + 1));
  const ConfigRow& row = rows[index];
  if (row.set == nullptr) {
    *is_unheeded = true;
    return refuse_unless_off(row, value, error_);
  }
  if (const char* why = row.set(value, &config_)) {
    return fail(Code::kMalformed, "config: bad value",
                shown + ": '" + printable(value) + "' " + why, error_);
  }
  if (name == "max_split_size_mb") split_limit_ = setting;
  if (name == "expandable_segments") expandable_ = setting;
  return Status::ok();
}

void add_ignored(std::string_view setting, std::string* ignored) {
  if (ignored == nullptr || setting.empty()) return;
  if (!ignored->empty()) *ignored += ", ";
  *ignored += printable(setting);
}

std::string_view Reader::drop_idle_setting() {
  if (config_.backend != AllocatorBackend::kNative) config_.caches = true;
  if (config_.backing != Backing::kPages) return {};
  if (!config_.caches || config_.backend != AllocatorBackend::kNative) {
    config_.backing = Backing::kSegments;
    return expandable_;
  }
  config_.max_split_size = Config{}.max_split_size;
  return split_limit_;
}

bool Reader::has_seen(std::string_view key) const {
  const std::span<const ConfigRow> rows = config_rows();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (seen_[i] && rows[i].key.name == key) return true;
  }
  return false;
}

std::string Reader::in_words_given(std::string text) const {
  struct Word {
    std::string_view seen, own, of_pytorch;
  };
  constexpr Word kWords[] = {
      {"expandable_segments", "backing:pages", "expandable_segments:True"},
      {"large_segment_size_mb", "large_segment_mb", "large_segment_size_mb"},
  };
  for (const Word& word : kWords) {
    const std::size_t at = text.find(word.own);
    if (has_seen(word.seen) && at != std::string::npos)
      text.replace(at, word.own.size(), word.of_pytorch);
  }
  return text;
}

Status Reader::finish() {
  for (const KeyPair& pair : kKeyPairs) {
    if (has_seen(pair.of_pytorch) && has_seen(pair.own))
      return fail(Code::kMalformed, "config: one setting under two names",
                  std::string{pair.of_pytorch} + ": given with " + std::string{pair.own} +
                      ", which is the same setting",
                  error_);
  }
  if (has_seen("large_segment_size_mb") && !has_seen("max_non_split_rounding_mb"))
    config_.max_non_split_rounding = config_.large_segment;
  const Status status = check_config(config_);
  if (!status.is_ok())
    return fail(Code::kMalformed, status.why(), in_words_given(status.why()), error_);
  return status;
}

Result<Config> read_config(std::string_view text, Reading reading, bool caches,
                           std::string* ignored, std::string* error) {
  Reader reader(reading, caches, error);
  for (std::string_view rest = trimmed_setting(text); !rest.empty();) {
    const std::string_view setting = take_setting(&rest);
    bool is_unheeded = false;
    const Status status = reader.apply(setting, &is_unheeded);
    if (reading == Reading::kStrict || !is_unheeded) {
      if (!status.is_ok()) return status;
      continue;
    }
    if (status.is_ok()) continue;
    if (error != nullptr) error->clear();
    add_ignored(setting, ignored);
  }
  if (reading == Reading::kPyTorch) add_ignored(reader.drop_idle_setting(), ignored);
  if (const Status status = reader.finish(); !status.is_ok()) return status;
  return reader.config();
}

std::string_view environment_text(const char* name) {
  const char* const text = std::getenv(name);
  return text == nullptr ? "" : text;
}

}  // namespace

Result<Config> parse_config(std::string_view text, std::string* error) {
  return read_config(text, Reading::kStrict, true, nullptr, error);
}

Result<Config> config_from_environment(std::string* error) {
  return parse_config(environment_text("ASHLAR_ALLOC_CONF"), error);
}

Result<Config> parse_pytorch_config(std::string_view text, std::string* ignored,
                                    std::string* error) {
  if (ignored != nullptr) ignored->clear();
  return read_config(text, Reading::kPyTorch, true, ignored, error);
}

Result<Config> pytorch_config_from_environment(std::string* ignored, std::string* error) {
  if (ignored != nullptr) ignored->clear();
  const bool has_older_name = std::getenv("PYTORCH_CUDA_ALLOC_CONF") != nullptr;
  const char* const name = has_older_name ? "PYTORCH_CUDA_ALLOC_CONF" : "PYTORCH_ALLOC_CONF";
  constexpr const char* kNoCache = "PYTORCH_NO_CUDA_MEMORY_CACHING";
  const bool caches = std::getenv(kNoCache) == nullptr;
  Result<Config> config =
      read_config(environment_text(name), Reading::kPyTorch, caches, ignored, error);
  if (!caches && config.is_ok() && config.value().caches) add_ignored(kNoCache, ignored);
  return config;
}

}  // namespace ashlar::inline v0::cache
