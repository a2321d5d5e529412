// Sizes in bytes as text: parsing and formatting.
//
// Thread safety: pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <ashlar/base/types.h>

namespace ashlar::tool {

/// What parse_size() takes, for messages.
inline constexpr char kSizeForms[] =
    "4096, 512K, 80GiB or 1.5GiB (powers of 1024), 10GB (powers of 1000)";

/// A number, with a unit or without: K to E and KiB to EiB are powers of 1024, kB or KB to EB powers
/// of 1000, B one byte. A number with a unit may have up to nine decimals, and is rounded down to
/// bytes. Nothing if the text is anything else, or the size does not fit in 64 bits.
std::optional<Bytes> parse_size(std::string_view text);

/// Four significant digits and a binary unit: "1.234 GiB"; below 1 KiB "512 B".
std::string size_text(Bytes size);

}  // namespace ashlar::tool
