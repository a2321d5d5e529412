// Status and Result: a caller's misuse and the machine's failures as typed values.
//
// Purpose: nothing in the library throws; every fallible function returns one of these two.
// Thread safety: plain values. Cost: a Status is two words, trivially copyable, and never
// allocates.
#pragma once

#include <optional>
#include <type_traits>
#include <utility>

#include <ashlar/base/assert.h>
#include <ashlar/base/export.h>

namespace ashlar::inline v0 {

/// What went wrong. Append only: the numbers stand in stored files.
enum class Code : unsigned char {
  kOk = 0,
  // The machine's answers.
  kNotReady = 1,        ///< an event's work is not finished: not an error
  kOutOfMemory = 2,     ///< the device, or the limit set on it, has too little memory
  kOutOfAddresses = 3,  ///< no address range of that size is left
  kUnsupported = 4,     ///< this device cannot do that
  /// refused (and the capture invalidated) because a stream captures: CUDA's error 900..908
  kCaptureUnsafe = 5,
  kCaptureInvalidated = 6,  ///< the capture was invalidated earlier
  kDriverError = 7,         ///< any other driver error; the device goes on
  kDeviceLost = 8,          ///< sticky: the context is gone, every later call fails (C26)
  kTornDown = 9,            ///< the driver was unloaded: process exit (C25)
  kDeadlock = 10,           ///< simulated machines only: this call would block for ever
  // A caller's misuse (C16).
  kInvalidArgument = 20,  ///< a number or option out of its range
  kSizeOverflow = 21,     ///< a size whose rounding would wrap, or beyond kRequestBytesMax
  /// this allocator never issued that address, or it is not the start of a block
  kUnknownPointer = 22,
  /// already freed, and its other uses are not complete yet (later: kUnknownPointer)
  kDoubleFree = 23,
  kWrongDevice = 24,    ///< pointer, stream or event belongs to another device
  kInvalidHandle = 25,  ///< a destroyed or foreign handle
  kReentrant = 26,      ///< an observer or callback called what it may not call (C24)
  kForked = 27,         ///< called in a child made by fork (C25)
  kBusy = 28,           ///< the thing is in use now: still mapped, still captured, already begun
  kNotFound = 29,       ///< the named thing does not exist
  kMalformed = 30,      ///< unreadable input: trace, .ops, configuration string
};

/// The code's name as it appears in `.ops` files and JSON: "ok", "out-of-memory", ... Static
/// storage.
ASHLAR_API const char* code_name(Code code) noexcept;
/// The inverse of code_name; nothing for a text that names no code.
ASHLAR_API std::optional<Code> code_from_name(const char* name) noexcept;

/// The outcome of a call: a code and a static text saying why.
class [[nodiscard]] Status {
 public:
  constexpr Status() = default;
  constexpr Status(Code code, const char* why) : why_(why), code_(code) {}
  static constexpr Status ok() { return {}; }

  constexpr bool is_ok() const { return code_ == Code::kOk; }
  constexpr Code code() const { return code_; }
  /// Static storage; "" when ok.
  constexpr const char* why() const { return why_; }
  friend constexpr bool operator==(const Status& a, const Status& b) { return a.code_ == b.code_; }

 private:
  const char* why_ = "";
  Code code_ = Code::kOk;
};

/// A value, or the Status that says why there is none. `T` is a cheap value type.
template <class T>
class [[nodiscard]] Result {
 public:
  constexpr Result(T value) : value_(std::move(value)) {}
  constexpr Result(Status status) : status_(status) {
    ASHLAR_ASSERT(!status.is_ok(), "base: a Result without a value needs an error");
  }
  constexpr Result(Code code, const char* why) : Result(Status{code, why}) {}

  constexpr bool is_ok() const { return status_.is_ok(); }
  constexpr Status status() const { return status_; }
  constexpr Code code() const { return status_.code(); }
  /// REQUIRES: is_ok().
  constexpr const T& value() const& {
    ASHLAR_ASSERT(is_ok(), "base: value() of a failed Result");
    return value_;
  }
  constexpr T value() && {
    ASHLAR_ASSERT(is_ok(), "base: value() of a failed Result");
    return std::move(value_);
  }
  constexpr T value_or(T other) const { return is_ok() ? value_ : std::move(other); }

 private:
  T value_{};
  Status status_;
};

}  // namespace ashlar::inline v0
