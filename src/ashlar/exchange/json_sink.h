// Documents as JSON (RFC 8259), without spaces, in UTF-8.
//
// Thread safety: one thread at a time.
#pragma once

#include <vector>

#include <ashlar/exchange/document_sink.h>
#include <ashlar/exchange/output_buffer.h>

namespace ashlar::inline v0::exchange {

/// A text as JSON has it, with its quotes.
void append_json_text(OutputBuffer* out, std::string_view text);

/// Numbers have up to 64 bits: JSON has no limit, though JavaScript's readers round beyond 2^53.
class JsonSink final : public DocumentSink {
 public:
  explicit JsonSink(ByteSink sink) : out_(std::move(sink)) {}

  void begin_dict() override { begin('{', true); }
  void end_dict() override { end('}'); }
  void begin_list() override { begin('[', false); }
  void end_list() override { end(']'); }
  void text(std::string_view text) override;
  void integer(std::uint64_t number) override;
  void negative(std::int64_t number) override;
  void boolean(bool value) override;
  void real(double number) override;
  void pair(std::uint64_t first, std::uint64_t second) override;
  bool begin_shared(SharedKey /*key*/) override { return true; }
  void end_shared(SharedKey /*key*/) override {}
  Status finish() override;
  using DocumentSink::integer;
  using DocumentSink::text;

 private:
  struct Open {
    bool is_dict;
    std::uint64_t pieces;  // keys and values so far
  };

  void separate();
  void begin(char bracket, bool is_dict);
  void end(char bracket);

  OutputBuffer out_;
  std::vector<Open> open_;
};

}  // namespace ashlar::inline v0::exchange
