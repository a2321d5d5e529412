#include "src/tool/page.h"

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

std::string page_with(std::string_view page, std::string_view data) {
  constexpr std::string_view kSlot = "@DATA@";
  const std::size_t at = page.find(kSlot);
  std::string out{page.substr(0, at)};
  out += data;
  out += page.substr(at + kSlot.size());
  return out;
}

}  // namespace ashlar::tool
