// Status and Result: a caller's misuse and the machine's failures as typed values.
//
// Purpose: a function that can fail returns a Status, or a Result if it has a value to return. No
// failure is reported by an exception of the library's own. A public function that is not noexcept
// can throw std::bad_alloc, if the host has no memory for what it builds. Built without exceptions
// (-fno-exceptions), the library ends the process there.
// Thread safety: plain values.
// Cost: a Status is two words, trivially copyable, and never allocates.
//
// Invariants:
//   (1) A Result holds a value exactly when its code is kOk.
//   (2) Codes are append only and keep their numbers: stored files contain them.
//   (3) why() is static text; two Statuses with one code are equal whatever their texts.
#pragma once

#include <optional>
#include <type_traits>
#include <utility>

#include <ashlar/base/assert.h>
#include <ashlar/base/export.h>

namespace ashlar::inline v0 {

/// What went wrong. Append only (invariant 2).
enum class Code : unsigned char {
  kOk = 0,
  // Answers of the machine.
  kNotReady = 1,        ///< the event's work is not finished; not an error
  kOutOfMemory = 2,     ///< the device, or the limit set on it, has too little memory left
  kOutOfAddresses = 3,  ///< no free address range of that size is left
  kUnsupported = 4,     ///< the device does not support the call
  /// refused because a stream captures; the capture is invalidated (CUDA errors 900..908)
  kCaptureUnsafe = 5,
  kCaptureInvalidated = 6,  ///< the capture was invalidated by an earlier call
  kDriverError = 7,         ///< any other driver error; the device remains usable
  kDeviceLost = 8,          ///< sticky: the context is lost and every later call fails (C26)
  kTornDown = 9,            ///< the driver was unloaded at process exit (C25)
  kDeadlock = 10,           ///< simulated machines only: the call would block forever
  /// the host has no memory for the library's own records; the device's memory is untouched
  kHostOutOfMemory = 11,
  kWriteFailed = 12,  ///< a file, or whatever else takes what is written, takes no more
  // Misuse by the caller (C16).
  kInvalidArgument = 20,  ///< a number or option is out of range
  kSizeOverflow = 21,     ///< rounding the size would wrap, or it exceeds kRequestBytesMax
  /// the address is not the start of a live block of this allocator
  kUnknownPointer = 22,
  /// already freed, while its uses are still pending (kUnknownPointer once they complete)
  kDoubleFree = 23,
  kWrongDevice = 24,    ///< the pointer, stream or event belongs to another device
  kInvalidHandle = 25,  ///< the handle is destroyed, or another device made it
  kReentrant = 26,      ///< an observer or callback made a call that it may not make (C24)
  kForked = 27,         ///< called in the child process after fork (C25)
  kBusy = 28,           ///< the object is in use: still mapped, still captured, already begun
  kNotFound = 29,       ///< the named object does not exist
  kMalformed = 30,      ///< the input cannot be parsed: trace, .ops, configuration string
};

/// The code's name as it appears in `.ops` files and JSON: "ok", "out-of-memory", ...; "unknown"
/// for a number that is no code. Static storage.
ASHLAR_API const char* code_name(Code code) noexcept;
/// The inverse of code_name; std::nullopt if `name` names no code.
ASHLAR_API std::optional<Code> code_from_name(const char* name) noexcept;

/// The outcome of a call: a code, and a static text that gives the reason.
class [[nodiscard]] Status {
 public:
  /// Success.
  constexpr Status() = default;
  /// An outcome with a reason. `why` is static text.
  constexpr Status(Code code, const char* why) : why_(why), code_(code) {}
  /// Success.
  static constexpr Status ok() { return {}; }

  /// True if the call succeeded.
  constexpr bool is_ok() const { return code_ == Code::kOk; }
  /// What went wrong; kOk if nothing did.
  constexpr Code code() const { return code_; }
  /// The reason, in static storage; "" when ok.
  constexpr const char* why() const { return why_; }
  friend constexpr bool operator==(const Status& a, const Status& b) { return a.code_ == b.code_; }

 private:
  const char* why_ = "";
  Code code_ = Code::kOk;
};

/// Prints `status` and the misuse on stderr, and aborts: what becomes of Result::value() of a failure.
[[noreturn]] ASHLAR_API void value_of_failure(const Status& status) noexcept;

/// A value, or the Status that explains its absence. T is a default-constructible value type that
/// is cheap to move.
template <class T>
class [[nodiscard]] Result {
 public:
  // Implicit, so that a function returns a value or a Status as it is.
  /// Success, with a value.
  constexpr Result(T value) : value_(std::move(value)) {}  // NOLINT(google-explicit-constructor)
  /// Failure. REQUIRES: `status` is not ok.
  // NOLINTNEXTLINE(google-explicit-constructor)
  constexpr Result(Status status) : status_(status) {
    ASHLAR_ASSERT(!status.is_ok(), "base: a Result without a value needs an error");
  }
  /// Failure, with a code and a static text that gives the reason.
  constexpr Result(Code code, const char* why) : Result(Status{code, why}) {}

  /// True if there is a value.
  constexpr bool is_ok() const { return status_.is_ok(); }
  /// The outcome; ok if there is a value.
  constexpr Status status() const { return status_; }
  /// The outcome's code; kOk if there is a value.
  constexpr Code code() const { return status_.code(); }
  /// The value. Of a failure: prints the status and aborts, in every build; a default value would
  /// pass for an answer, such as address 0.
  constexpr const T& value() const& {
    if (!is_ok()) [[unlikely]]
      value_of_failure(status_);
    return value_;
  }
  /// The value, moved out of this Result. Of a failure: as above.
  constexpr T value() && {
    if (!is_ok()) [[unlikely]]
      value_of_failure(status_);
    return std::move(value_);
  }
  /// The value, or `other` if there is none.
  constexpr T value_or(T other) const { return is_ok() ? value_ : std::move(other); }

 private:
  T value_{};
  Status status_;
};

}  // namespace ashlar::inline v0
