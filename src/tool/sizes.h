// Sizes in bytes as text: parsing and formatting.
//
// Thread safety: pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <ashlar/base/types.h>

namespace ashlar::tool {

/// "4096", "512K", "80GiB", "1T": a whole number and a unit in powers of 1024 (K, M, G, T, each
/// also with iB). Nothing if the text is anything else, or the size does not fit in 64 bits.
std::optional<Bytes> parse_size(std::string_view text);

/// Four significant digits and a binary unit: "1.234 GiB"; below 1 KiB "512 B".
std::string size_text(Bytes size);

}  // namespace ashlar::tool
