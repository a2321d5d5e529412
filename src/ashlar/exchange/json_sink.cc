#include <ashlar/exchange/json_sink.h>

#include <ashlar/exchange/utf8.h>
#include <cmath>

namespace ashlar::inline v0::exchange {

void append_json_text(OutputBuffer* out, std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string space;
  out->append('"');
  for (const char c : valid_utf8(text, &space)) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out->append('\\');
      out->append(c);
    } else if (byte < 0x20 || byte == 0x7f) {
      out->append("\\u00");
      out->append(kDigits[byte >> 4]);
      out->append(kDigits[byte & 15]);
    } else {
      out->append(c);
    }
  }
  out->append('"');
}

void JsonSink::separate() {
  if (open_.empty()) return;
  Open& open = open_.back();
  const bool is_value_of_key = open.is_dict && open.pieces % 2 == 1;
  if (is_value_of_key) {
    out_.append(':');
  } else if (open.pieces != 0) {
    out_.append(',');
  }
  ++open.pieces;
}

void JsonSink::begin(char bracket, bool is_dict) {
  separate();
  out_.append(bracket);
  open_.push_back({is_dict, 0});
}

void JsonSink::end(char bracket) {
  out_.append(bracket);
  open_.pop_back();
}

void JsonSink::text(std::string_view text) {
  separate();
  append_json_text(&out_, text);
}

void JsonSink::integer(std::uint64_t number) {
  separate();
  out_.append_number(number);
}

void JsonSink::negative(std::int64_t number) {
  separate();
  out_.append('-');
  out_.append_number(std::uint64_t{0} - static_cast<std::uint64_t>(number));
}

void JsonSink::boolean(bool value) {
  separate();
  out_.append(value ? "true" : "false");
}

void JsonSink::real(double number) {
  separate();
  if (!std::isfinite(number)) return out_.append("null");
  std::array<char, 32> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  const std::string_view written(digits.data(), static_cast<std::size_t>(end - digits.data()));
  out_.append(written);
  if (written.find_first_of(".e") == std::string_view::npos) out_.append(".0");
}

void JsonSink::pair(std::uint64_t first, std::uint64_t second) {
  begin_list();
  integer(first);
  integer(second);
  end_list();
}

Status JsonSink::finish() { return out_.flush(); }

}  // namespace ashlar::inline v0::exchange
