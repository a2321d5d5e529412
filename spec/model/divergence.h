// Divergence: the first violation that a checker found.
//
// Thread safety: plain values.
#pragma once

#include <string>

#include "spec/gpu/text_parts.h"

namespace ashlar::spec {

struct Divergence {
  std::string clause;  ///< "C1" .. "C26", a DEV row, "expect", or a fault's name
  std::string text;    ///< one line
  explicit operator bool() const { return !clause.empty(); }
};

/// An address as a part of a report.
struct Hex {
  std::uint64_t n;
};
inline Hex hex(std::uint64_t n) { return {n}; }
inline void append(std::string* text, Hex part) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string digits;
  do digits.insert(digits.begin(), kDigits[part.n % 16]);
  while ((part.n /= 16) != 0);
  *text += "0x" + digits;
}

/// Keeps the first report.
class Verdict {
 public:
  bool is_good() const { return first_.clause.empty(); }
  /// The text is its parts joined.
  template <class... Parts>
  [[gnu::cold, gnu::noinline]] void report(const char* clause, const Parts&... parts) {
    if (is_good()) first_ = {clause, joined(parts...)};
  }
  const Divergence& first() const { return first_; }
  void clear() { first_ = {}; }

 private:
  Divergence first_;
};

}  // namespace ashlar::spec
