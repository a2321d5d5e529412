// Whole files in and out, and gzip in memory.
//
// Thread safety: pure functions of the file system.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "src/tool/known_file.h"

namespace ashlar::tool {

/// Larger files are refused.
inline constexpr std::size_t kFileBytesMax = std::size_t{1} << 31;

/// The file's bytes; `-` is standard input, which can be read once. On failure `*error` is `path: reason`.
std::optional<std::string> read_file(const std::string& path, std::string* error);

/// Writes the file whole or not at all, as an OutputFile that opens it as `kind`. On failure `*error` is
/// `path: reason`.
bool write_file(const std::string& path, std::string_view bytes, KnownFile kind,
                std::string* error);

bool is_gzip(std::string_view bytes);
/// Gives the uncompressed bytes to `sink`, piece by piece, until it returns false. Returns nullptr, or
/// why the data is bad: truncated, damaged, or followed by other bytes.
const char* gunzip(std::string_view bytes, const std::function<bool(std::string_view)>& sink);
/// The bytes, unpacked if they are gzip. On failure, also beyond kFileBytesMax, `*error` is
/// `name: reason`.
std::optional<std::string> unpacked(std::string bytes, const std::string& name, std::string* error);
/// The text without the byte order mark of UTF-8 that some editors put before it.
std::string_view without_bom(std::string_view text);
/// Compresses at level 9, without a time stamp: the same bytes for the same input.
std::string gzip(std::string_view bytes);

}  // namespace ashlar::tool
