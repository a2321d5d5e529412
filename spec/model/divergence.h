// Divergence: the first thing a checker found wrong.
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

/// Keeps the first report.
class Verdict {
 public:
  bool is_good() const { return first_.clause.empty(); }
  /// The text is its parts joined.
  template <class... Parts>
  [[gnu::cold, gnu::noinline]] void report(const char* clause, Parts... parts) {
    if (is_good()) first_ = {clause, joined(parts...)};
  }
  const Divergence& first() const { return first_; }
  void clear() { first_ = {}; }

 private:
  Divergence first_;
};

}  // namespace ashlar::spec
