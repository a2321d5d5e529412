// Fuzz target: the configuration string. Every text gives a consistent Config, or one clean line
// that says what is wrong. The same text with spaces around its punctuation gives the same answer.
//
// Imitates: hand-edited job scripts.
// Does not prove: that a key means what its name says (props/cache/config_test.cc).
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include <ashlar/cache/config.h>
#include <ashlar/device/device.h>

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

bool same(const ashlar::cache::Config& a, const ashlar::cache::Config& b) {
  return a.granule == b.granule && a.small_request_max == b.small_request_max &&
         a.small_segment == b.small_segment && a.large_request_min == b.large_request_min &&
         a.large_segment == b.large_segment && a.segment_round == b.segment_round &&
         a.max_split_size == b.max_split_size &&
         a.max_non_split_rounding == b.max_non_split_rounding &&
         a.roundup_divisions == b.roundup_divisions &&
         std::abs(a.memory_fraction - b.memory_fraction) <= 0 && a.reuse == b.reuse &&
         a.wait_ms == b.wait_ms;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  std::string error;
  const ashlar::Result<ashlar::cache::Config> result = ashlar::cache::parse_config(text, &error);
  const ashlar::Result<ashlar::cache::Config> again =
      ashlar::cache::parse_config(spaced(text), nullptr);
  require(result.is_ok() == again.is_ok());
  if (result.is_ok()) {
    require(error.empty());
    require(ashlar::cache::check_config(result.value()).is_ok());
    require(same(result.value(), again.value()));
    return 0;
  }
  require(result.code() == ashlar::Code::kMalformed || result.code() == ashlar::Code::kUnsupported);
  require(!error.empty() && error.size() < 300);
  for (const char c : error) require(c >= ' ' && c <= '~');
  return 0;
}
