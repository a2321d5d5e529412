// Divergence: the first thing a checker found wrong.
//
// Thread safety: plain values.
#pragma once

#include <string>
#include <utility>

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
  void report(const char* clause, std::string text) {
    if (is_good()) first_ = {clause, std::move(text)};
  }
  const Divergence& first() const { return first_; }
  void clear() { first_ = {}; }

 private:
  Divergence first_;
};

}  // namespace ashlar::spec
