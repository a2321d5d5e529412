#include "src/tool/page.h"

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>

namespace ashlar::tool {

std::string script_text(const nlohmann::ordered_json& json) {
  std::string out;
  for (const char c : json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace)) {
    if (c == '<') {
      out += "\\u003c";
    } else {
      out += c;
    }
  }
  return out;
}

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t here = std::min<std::size_t>(bytes.size() - i, 3);
    std::uint32_t bits = 0;
    for (std::size_t k = 0; k < 3; ++k)
      bits = 256 * bits + (k < here ? static_cast<unsigned char>(bytes[i + k]) : 0u);
    for (std::size_t k = 0; k < 4; ++k)
      out += k <= here ? kDigits[(bits >> (6 * (3 - k))) & 63] : '=';
  }
  return out;
}

std::string page_with(std::string_view page, std::string_view data) {
  constexpr std::string_view kSlot = "@DATA@";
  const std::size_t at = page.find(kSlot);
  std::string out{page.substr(0, at)};
  out += data;
  out += page.substr(at + kSlot.size());
  return out;
}

}  // namespace ashlar::tool
