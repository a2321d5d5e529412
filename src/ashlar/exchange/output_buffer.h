// Collects what is written, and gives it to a sink in pieces.
//
// Purpose: numbers and short texts are appended one by one; a sink is called every 64 KiB. Appending
// never allocates: a trace writer records frees where no memory may be left.
// Thread safety: one thread at a time. Throws what the sink throws, after which the piece is gone.
//
// Invariants:
//   (1) The buffer never grows beyond the capacity that it is built with.
//   (2) After a failure of the sink it is not called again, and what is appended is dropped.
#pragma once

#include <array>
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <ashlar/exchange/byte_sink.h>

namespace ashlar::inline v0::exchange {

class OutputBuffer {
 public:
  /// Throws std::bad_alloc.
  explicit OutputBuffer(ByteSink sink) : sink_(std::move(sink)) { bytes_.reserve(kSinkBytesMax); }

  void append(std::string_view text) {
    while (text.size() > kSinkBytesMax - bytes_.size()) {
      const std::size_t fits = kSinkBytesMax - bytes_.size();
      bytes_.append(text.substr(0, fits));
      text.remove_prefix(fits);
      pass_on();
    }
    bytes_.append(text);
  }
  void append(char byte) { append(std::string_view(&byte, 1)); }
  /// In digits, without a prefix.
  void append_number(std::uint64_t number, int base = 10) {
    std::array<char, 24> digits;
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number, base).ptr;
    append(std::string_view(digits.data(), static_cast<std::size_t>(end - digits.data())));
  }

  /// Whether bytes were dropped.
  bool has_failed() const noexcept { return has_failed_; }
  /// Gives what is left to the sink. kWriteFailed: it failed, now or before.
  Status flush() {
    if (!bytes_.empty()) pass_on();
    return has_failed_ ? Status{Code::kWriteFailed, "the sink took no more"} : Status::ok();
  }

 private:
  // Counts as failed until the sink has answered: it may throw.
  void pass_on() {
    const bool had_failed = std::exchange(has_failed_, true);
    const bool is_taken = !had_failed && sink_ != nullptr && sink_(bytes_);
    bytes_.clear();
    has_failed_ = !is_taken;
  }

  ByteSink sink_;
  std::string bytes_;
  bool has_failed_ = false;
};

}  // namespace ashlar::inline v0::exchange
