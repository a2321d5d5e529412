// Puts data into the text of an HTML page.
//
// Thread safety: pure functions.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace ashlar::tool {

/// JSON that is safe inside a script element: without any "<".
std::string script_text(const nlohmann::ordered_json& json);

/// The bytes as base64.
std::string base64(std::string_view bytes);

/// The page with `data`, which is a script_text(), in place of @DATA@.
std::string page_with(std::string_view page, std::string_view data);

}  // namespace ashlar::tool
