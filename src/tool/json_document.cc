#include "src/tool/json_document.h"

#include <bit>
#include <iterator>
#include <nlohmann/json.hpp>
#include <vector>

namespace ashlar::tool {
namespace {

using Json = nlohmann::json;

/// Goes over bytes and tells how far it is: nlohmann-json does not tell its handlers.
class CountedBytes {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountedBytes(const char* at, std::size_t* count) : at_(at), count_(count) {}
  reference operator*() const { return *at_; }
  CountedBytes& operator++() {
    ++at_;
    ++*count_;
    return *this;
  }
  CountedBytes operator++(int) {
    const CountedBytes before = *this;
    ++*this;
    return before;
  }
  friend bool operator==(const CountedBytes& a, const CountedBytes& b) { return a.at_ == b.at_; }

 private:
  const char* at_;
  std::size_t* count_;
};

/// Fills an arena with what nlohmann-json's parser reports. The names of its functions are the parser's.
class Handler {
 public:
  bool null() { return push(arena_.add(ValueKind::kNone)); }
  bool boolean(bool value) { return push(arena_.add(ValueKind::kBool, value ? 1 : 0)); }
  bool number_integer(std::int64_t value) {
    return push(arena_.add(ValueKind::kInteger, static_cast<std::uint64_t>(value)));
  }
  bool number_unsigned(std::uint64_t value) {
    return push(arena_.add(value >> 63 != 0 ? ValueKind::kLarge : ValueKind::kInteger, value));
  }
  bool number_float(double value, const std::string& /*digits*/) {
    return push(arena_.add(ValueKind::kFloat, std::bit_cast<std::uint64_t>(value)));
  }
  bool string(const std::string& value) { return push(arena_.add_copy(value)); }
  bool binary(const Json::binary_t& /*bytes*/) { return fail("binary data in JSON"); }
  bool key(const std::string& value) { return string(value); }
  bool start_object(std::size_t /*size*/) { return open(ValueKind::kDict); }
  bool start_array(std::size_t /*size*/) { return open(ValueKind::kList); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool parse_error(std::size_t position, const std::string& /*token*/,
                   const nlohmann::detail::exception& /*why*/) {
    position_ = position;
    return fail("the text is no JSON");
  }

  const std::string& reason() const { return reason_; }
  /// Where the parser found an error, if it was the parser.
  std::optional<std::size_t> position() const { return position_; }
  Document document() { return {std::move(arena_), stack_[0]}; }

 private:
  struct Open {
    ValueId container;
    std::size_t begin;  // how many values stood on the stack before it
  };

  bool fail(std::string reason) {
    if (reason_.empty()) reason_ = std::move(reason);
    return false;
  }
  bool push(std::optional<ValueId> value) {
    if (!value) return fail("more than " + std::to_string(kDocumentValuesMax) + " values");
    stack_.push_back(*value);
    return true;
  }
  bool open(ValueKind kind) {
    if (open_.size() >= kDocumentDepthMax)
      return fail("nested deeper than " + std::to_string(kDocumentDepthMax));
    const auto container = arena_.add(kind);
    if (container) open_.push_back({*container, stack_.size()});
    return container || push(container);
  }
  bool close() {
    const Open top = open_.back();
    open_.pop_back();
    const auto values = std::span<const ValueId>(stack_).subspan(top.begin);
    if (!arena_.append(top.container, values)) return push(std::nullopt);
    stack_.resize(top.begin);
    return push(top.container);
  }

  ValueArena arena_;
  std::vector<ValueId> stack_;
  std::vector<Open> open_;
  std::optional<std::size_t> position_;
  std::string reason_;
};

}  // namespace

std::optional<Document> parse_json_document(std::string_view bytes, const std::string& name,
                                            std::string* error) {
  if (bytes.size() > kDocumentBytesMax) {
    *error = name + ": larger than 1 GiB";
    return std::nullopt;
  }
  Handler handler;
  std::size_t read = 0;
  const CountedBytes begin(bytes.data(), &read);
  const CountedBytes end(bytes.data() + bytes.size(), &read);
  if (Json::sax_parse(begin, end, &handler)) return handler.document();
  const std::size_t offset = handler.position().value_or(read);
  *error = name + ": offset " + std::to_string(offset) + ": " + handler.reason();
  return std::nullopt;
}

}  // namespace ashlar::tool
