#include <ashlar/exchange/utf8.h>

namespace ashlar::inline v0::exchange {
namespace {

unsigned byte_at(std::string_view text, std::size_t at) noexcept {
  return at < text.size() ? static_cast<unsigned char>(text[at]) : 0u;
}

bool is_continuation(unsigned byte) noexcept { return (byte & 0xc0u) == 0x80; }

}  // namespace

std::size_t utf8_length(std::string_view text) noexcept {
  const unsigned first = byte_at(text, 0);
  const unsigned second = byte_at(text, 1);
  if (text.empty()) return 0;
  if (first < 0x80) return 1;
  if (first < 0xc2 || first > 0xf4 || !is_continuation(second)) return 0;
  if (first < 0xe0) return 2;
  if (!is_continuation(byte_at(text, 2))) return 0;
  if (first < 0xf0) {
    const bool is_overlong = first == 0xe0 && second < 0xa0;
    const bool is_surrogate = first == 0xed && second >= 0xa0;
    return is_overlong || is_surrogate ? 0 : 3;
  }
  if (!is_continuation(byte_at(text, 3))) return 0;
  const bool is_overlong = first == 0xf0 && second < 0x90;
  const bool is_too_large = first == 0xf4 && second >= 0x90;
  return is_overlong || is_too_large ? 0 : 4;
}

std::string_view valid_utf8(std::string_view text, std::string* space) {
  text = text.substr(0, kTextBytesMax);
  std::size_t at = 0;
  while (const std::size_t length = utf8_length(text.substr(at))) at += length;
  if (at == text.size()) return text;
  space->assign(text.substr(0, at));
  while (at < text.size()) {
    const std::size_t length = utf8_length(text.substr(at));
    space->append(length == 0 ? std::string_view("\xef\xbf\xbd") : text.substr(at, length));
    at += length == 0 ? 1 : length;
  }
  return *space;
}

}  // namespace ashlar::inline v0::exchange
