// What a document is given to, piece by piece: dictionaries, lists, texts and numbers.
//
// Purpose: a document is walked over once, whatever form it is written in.
// Thread safety: one thread at a time.
//
// REQUIRES: in a dictionary, texts (the keys) and values alternate; what begins also ends.
#pragma once

#include <cstdint>
#include <string_view>

#include <ashlar/base/status.h>

namespace ashlar::inline v0::exchange {

/// A number that tells apart the values that a document repeats.
using SharedKey = std::uint64_t;

/// One form. Every member can throw std::bad_alloc, and what the byte sink throws.
class DocumentSink {
 public:
  DocumentSink() = default;
  virtual ~DocumentSink() = default;
  DocumentSink(const DocumentSink&) = delete;
  DocumentSink& operator=(const DocumentSink&) = delete;

  virtual void begin_dict() = 0;
  virtual void end_dict() = 0;
  virtual void begin_list() = 0;
  virtual void end_list() = 0;
  /// A key or a value. Bytes that are not UTF-8 become U+FFFD.
  virtual void text(std::string_view text) = 0;
  virtual void integer(std::uint64_t number) = 0;
  virtual void negative(std::int64_t number) = 0;  ///< REQUIRES: number < 0
  virtual void boolean(bool value) = 0;
  /// A number that is not finite is none.
  virtual void real(double number) = 0;
  /// Two numbers: a tuple, or a list where there are none.
  virtual void pair(std::uint64_t first, std::uint64_t second) = 0;
  /// Whether the caller must now write the value that `key` names, and then call end_shared(key). False:
  /// the value stands in the document before, and is referred to.
  virtual bool begin_shared(SharedKey key) = 0;
  virtual void end_shared(SharedKey key) = 0;
  /// Ends the document. kWriteFailed: the byte sink took no more.
  virtual Status finish() = 0;

  void integer(std::string_view key, std::uint64_t number) {
    text(key);
    integer(number);
  }
  void text(std::string_view key, std::string_view value) {
    text(key);
    text(value);
  }
};

}  // namespace ashlar::inline v0::exchange
