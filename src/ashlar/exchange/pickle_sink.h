// Documents as Python pickles of protocol 2 (PEP 307; Python's pickletools.py describes each opcode).
//
// Purpose: PyTorch's viewer reads a subset of the opcodes, with protocols 2 to 4. This form uses 21 of
// them, none of which makes a reader call anything.
// Thread safety: one thread at a time.
//
// Invariants:
//   (1) A list gets at most kPickledAtOnce elements by one APPENDS: the viewer passes them as the
//       arguments of one call, and engines refuse calls with more than about 10^5.
//   (2) Each distinct text, and each shared value, is in the memo; later ones refer to it.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include <ashlar/exchange/document_sink.h>
#include <ashlar/exchange/output_buffer.h>

namespace ashlar::inline v0::exchange {

/// As many as Python's own pickler takes.
inline constexpr unsigned kPickledAtOnce = 1000;

class PickleSink final : public DocumentSink {
 public:
  /// Throws std::bad_alloc.
  explicit PickleSink(ByteSink sink);

  void begin_dict() override;
  void end_dict() override;
  void begin_list() override;
  void end_list() override;
  void text(std::string_view text) override;
  void integer(std::uint64_t number) override;
  void negative(std::int64_t number) override;
  void boolean(bool value) override;
  void real(double number) override;
  void pair(std::uint64_t first, std::uint64_t second) override;
  bool begin_shared(SharedKey key) override;
  void end_shared(SharedKey key) override;
  Status finish() override;
  using DocumentSink::integer;
  using DocumentSink::text;

 private:
  struct Open {
    bool is_dict;
    unsigned pieces;  // since the last mark
  };

  void begin_piece();
  void begin(char opcode, bool is_dict);
  void end(char opcode);
  void append_integer(std::uint64_t number);
  void append_little_endian(std::uint64_t number, unsigned bytes);
  void put();
  void get(std::uint32_t at);

  OutputBuffer out_;
  std::vector<Open> open_;
  std::unordered_map<std::string, std::uint32_t> texts_;  // their places in the memo
  std::unordered_map<SharedKey, std::uint32_t> shared_;   // likewise
  std::uint32_t memo_size_ = 0;
};

}  // namespace ashlar::inline v0::exchange
