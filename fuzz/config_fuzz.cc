// Fuzz target: the configuration string. Every text gives a consistent Config, or one clean line
// that says what is wrong. The same text with spaces around its punctuation gives the same answer,
// and so does the judge's own reading of it.
//
// Imitates: hand-edited job scripts.
// Does not prove: that a key means what its name says (props/cache/config_test.cc).
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include <ashlar/cache/config.h>

#include "spec/model/settings.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

std::string spaced(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == ',' || c == ':') {
      out += ' ';
      out += c;
      out += ' ';
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  std::string error;
  const ashlar::Result<ashlar::cache::Config> result = ashlar::cache::parse_config(text, &error);
  const ashlar::Result<ashlar::cache::Config> again =
      ashlar::cache::parse_config(spaced(text), nullptr);
  require(result.is_ok() == again.is_ok());
  if (size <= ashlar::spec::kSettingsTextMax) {
    const auto read = ashlar::spec::read_settings(std::string(text));
    require(read.has_value() == result.is_ok());
    require(!read || ashlar::spec::differing_field(result.value(), *read) == nullptr);
  }
  if (result.is_ok()) {
    require(error.empty());
    require(ashlar::cache::check_config(result.value()).is_ok());
    require(ashlar::spec::differing_field(result.value(), again.value()) == nullptr);
    return 0;
  }
  require(result.code() == ashlar::Code::kMalformed || result.code() == ashlar::Code::kUnsupported);
  require(!error.empty() && error.size() < 300);
  for (const char c : error) require(c >= ' ' && c <= '~');
  return 0;
}
