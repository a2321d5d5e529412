// What the reader and the writer of problem_csv.h have in common.
//
// Thread safety: constants and pure functions.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <ashlar/plan/problem_csv.h>

namespace ashlar::inline v0::plan {

/// The columns, in the order in which they are written.
enum class Column : std::uint8_t {
  kId,
  kLower,
  kUpper,
  kSize,
  kAlignment,
  kGaps,
  kHint,
  kPinned,
  kGroup,
  kSpace,
  kOffset
};

inline constexpr std::size_t kColumns = 11;
inline constexpr std::size_t kColumnsRequired = 4;  ///< the first four
inline constexpr std::array<const char*, kColumns> kColumnNames{
    "id",   "lower",  "upper", "size",  "alignment", "gaps",
    "hint", "pinned", "group", "space", "offset"};

inline const char* name_of(Column column) { return kColumnNames[static_cast<std::size_t>(column)]; }

/// Whether the text may be an id or the name of a group or space: every reader of CSV and every
/// terminal has to take it literally.
inline bool is_csv_name(std::string_view text) {
  return !text.empty() && text.size() <= kCsvNameMax &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return c >= ' ' && c <= '~' && c != ',' && c != '"'; });
}

}  // namespace ashlar::inline v0::plan
