// What the pages of the tool share: data in a page's text.
//
// Thread safety: pure functions.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace ashlar::tool {

/// JSON that may stand inside a script element: no "<" is left in it.
std::string script_text(const nlohmann::ordered_json& json);

/// The page with the data, which is script_text(), in its slot.
std::string page_with(std::string_view page, std::string_view data);

}  // namespace ashlar::tool
