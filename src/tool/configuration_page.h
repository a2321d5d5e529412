// The configuration keys as text: for `ashlar replay --help` and docs/configuration.md. Both are made
// of the library's table.
//
// Thread safety: pure functions.
#pragma once

#include <string>

namespace ashlar::tool {

/// Two lines for each key that can be set, within 100 columns.
std::string configuration_keys_text();

/// docs/configuration.md, whole. `ashlar --configuration-page` prints it.
std::string configuration_page();

}  // namespace ashlar::tool
