// UTF-8, as The Unicode Standard has it (table 3-7): no overlong forms, no surrogates.
//
// Purpose: texts of users may hold any bytes, and readers of pickles and JSON refuse what is not UTF-8.
// Thread safety: pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ashlar::inline v0::exchange {

/// The length of the character that `text` begins with, 1 to 4; 0 if it begins with none.
std::size_t utf8_length(std::string_view text) noexcept;

/// How much of a text is written: even if each byte becomes U+FFFD, of three bytes, the length fits in 32 bits.
inline constexpr std::size_t kTextBytesMax = std::size_t{1} << 30;

/// The first kTextBytesMax bytes of `text`: themselves if they are UTF-8, otherwise a copy in `*space`, in
/// which U+FFFD stands for each byte that belongs to no character. Throws std::bad_alloc. Cost: linear.
std::string_view valid_utf8(std::string_view text, std::string* space);

}  // namespace ashlar::inline v0::exchange
