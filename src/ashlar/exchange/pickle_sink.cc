#include <ashlar/exchange/pickle_sink.h>

#include <ashlar/exchange/utf8.h>
#include <bit>
#include <cmath>

namespace ashlar::inline v0::exchange {
namespace {

// The opcodes, by pickletools' names.
constexpr std::string_view kProto2 = "\x80\x02";
constexpr char kStop = '.';
constexpr char kMark = '(';
constexpr char kEmptyDict = '}';
constexpr char kEmptyList = ']';
constexpr char kSetItems = 'u';
constexpr char kAppends = 'e';
constexpr char kTuple2 = '\x86';
constexpr char kNone = 'N';
constexpr char kNewTrue = '\x88';
constexpr char kNewFalse = '\x89';
constexpr char kBinInt = 'J';
constexpr char kBinInt1 = 'K';
constexpr char kBinInt2 = 'M';
constexpr char kLong1 = '\x8a';
constexpr char kBinFloat = 'G';
constexpr char kBinUnicode = 'X';
constexpr char kBinPut = 'q';
constexpr char kLongBinPut = 'r';
constexpr char kBinGet = 'h';
constexpr char kLongBinGet = 'j';

constexpr std::uint64_t kIntMax = 0x7fffffff;  // of BININT, which is signed

}  // namespace

PickleSink::PickleSink(ByteSink sink) : out_(std::move(sink)) { out_.append(kProto2); }

// Before each key, value and element. The mark of a list's part is written when the part's first
// element is there, so that no part is empty.
void PickleSink::begin_piece() {
  if (open_.empty()) return;
  Open& open = open_.back();
  if (!open.is_dict && open.pieces == kPickledAtOnce) {
    out_.append(kAppends);
    open.pieces = 0;
  }
  if (open.pieces++ == 0) out_.append(kMark);
}

void PickleSink::begin(char opcode, bool is_dict) {
  begin_piece();
  out_.append(opcode);
  open_.push_back({is_dict, 0});
}

void PickleSink::end(char opcode) {
  if (open_.back().pieces != 0) out_.append(opcode);
  open_.pop_back();
}

void PickleSink::begin_dict() { begin(kEmptyDict, true); }
void PickleSink::end_dict() { end(kSetItems); }
void PickleSink::begin_list() { begin(kEmptyList, false); }
void PickleSink::end_list() { end(kAppends); }

void PickleSink::put() {
  const std::uint32_t at = memo_size_++;
  const bool is_short = at < 256;
  out_.append(is_short ? kBinPut : kLongBinPut);
  append_little_endian(at, is_short ? 1 : 4);
}

void PickleSink::get(std::uint32_t at) {
  const bool is_short = at < 256;
  out_.append(is_short ? kBinGet : kLongBinGet);
  append_little_endian(at, is_short ? 1 : 4);
}

void PickleSink::text(std::string_view text) {
  begin_piece();
  std::string space;
  const std::string_view valid = valid_utf8(text, &space);
  const auto [known, is_new] = texts_.try_emplace(std::string(valid), memo_size_);
  if (!is_new) return get(known->second);
  out_.append(kBinUnicode);
  append_little_endian(valid.size(), 4);
  out_.append(valid);
  put();
}

void PickleSink::append_little_endian(std::uint64_t number, unsigned bytes) {
  for (; bytes != 0; --bytes, number >>= 8) out_.append(static_cast<char>(number & 0xffu));
}

void PickleSink::append_integer(std::uint64_t number) {
  if (number < 1u << 8) {
    out_.append(kBinInt1);
    append_little_endian(number, 1);
  } else if (number < 1u << 16) {
    out_.append(kBinInt2);
    append_little_endian(number, 2);
  } else if (number <= kIntMax) {
    out_.append(kBinInt);
    append_little_endian(number, 4);
  } else {  // in two's complement, so the highest bit is the sign
    unsigned bytes = 5;
    while (bytes < 9 && number >> (8 * bytes - 1) != 0) ++bytes;
    out_.append(kLong1);
    out_.append(static_cast<char>(bytes));
    append_little_endian(number, bytes);
  }
}

void PickleSink::integer(std::uint64_t number) {
  begin_piece();
  append_integer(number);
}

void PickleSink::negative(std::int64_t number) {
  begin_piece();
  const bool is_short = number >= -static_cast<std::int64_t>(kIntMax) - 1;
  out_.append(is_short ? kBinInt : kLong1);
  if (!is_short) out_.append('\x08');
  append_little_endian(static_cast<std::uint64_t>(number), is_short ? 4 : 8);
}

void PickleSink::boolean(bool value) {
  begin_piece();
  out_.append(value ? kNewTrue : kNewFalse);
}

void PickleSink::real(double number) {
  begin_piece();
  if (!std::isfinite(number)) return out_.append(kNone);
  const auto bits = std::bit_cast<std::uint64_t>(number);
  out_.append(kBinFloat);
  for (unsigned shift = 64; shift != 0; shift -= 8)
    out_.append(static_cast<char>(bits >> (shift - 8) & 0xffu));
}

void PickleSink::pair(std::uint64_t first, std::uint64_t second) {
  begin_piece();
  append_integer(first);
  append_integer(second);
  out_.append(kTuple2);
}

bool PickleSink::begin_shared(SharedKey key) {
  const auto known = shared_.find(key);
  if (known == shared_.end()) return true;
  begin_piece();
  get(known->second);
  return false;
}

void PickleSink::end_shared(SharedKey key) {
  shared_.emplace(key, memo_size_);
  put();
}

Status PickleSink::finish() {
  out_.append(kStop);
  return out_.flush();
}

}  // namespace ashlar::inline v0::exchange
