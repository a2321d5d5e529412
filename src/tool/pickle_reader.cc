#include "src/tool/pickle_reader.h"

#include <algorithm>
#include <vector>

#include "src/tool/pickle_opcodes.h"

namespace ashlar::tool {
namespace {

using Op = PickleOpcode;

constexpr ValueId kUnset{0xffffffffu};

std::uint64_t little_endian(std::string_view bytes) {
  std::uint64_t number = 0;
  for (std::size_t i = bytes.size(); i-- > 0;)
    number = number << 8 | static_cast<unsigned char>(bytes[i]);
  return number;
}

/// The machine that a pickle is a program for: a stack of values, marks in it, and a memo.
class PickleMachine {
 public:
  explicit PickleMachine(std::string_view input) : input_(input), arena_(input) {}

  /// Runs the program. False: reason() says why, and offset() where.
  bool run() {
    if (!take_protocol()) return false;
    while (!is_stopped_) {
      opcode_at_ = at_;
      if (at_ >= input_.size()) return fail("the pickle is truncated");
      const auto code = static_cast<unsigned char>(input_[at_++]);
      if (!step(static_cast<Op>(code))) return false;
    }
    opcode_at_ = at_;
    if (at_ != input_.size()) return fail("bytes follow the pickle");
    return true;
  }

  std::size_t offset() const { return opcode_at_; }
  const std::string& reason() const { return reason_; }
  Document document() { return {std::move(arena_), stack_[0]}; }

 private:
  bool fail(std::string reason) {
    if (reason_.empty()) reason_ = std::move(reason);
    return false;
  }

  /// Takes the next bytes; nothing, with a reason, if there are not so many.
  std::optional<std::string_view> take(std::uint64_t count) {
    if (count > input_.size() - at_) {
      fail("the pickle is truncated");
      return std::nullopt;
    }
    const std::string_view bytes = input_.substr(at_, count);
    at_ += count;
    return bytes;
  }

  bool take_protocol() {
    if (input_.empty() || static_cast<Op>(static_cast<unsigned char>(input_[0])) != Op::kProto)
      return fail("a pickle of protocol 2 to 5 begins with PROTO");
    at_ = 1;
    const auto bytes = take(1);
    if (!bytes) return false;
    const auto protocol = static_cast<unsigned char>((*bytes)[0]);
    if (protocol >= kPickleProtocolMin && protocol <= kPickleProtocolMax) return true;
    return fail("protocol " + std::to_string(protocol) +
                ", only 2 to 5 are read: write it with pickle.dump(snapshot, file, protocol=4)");
  }

  bool push(std::optional<ValueId> value) {
    if (!value) return fail("more than " + std::to_string(kDocumentValuesMax) + " values");
    stack_.push_back(*value);
    return true;
  }

  bool push_number(std::uint64_t bits) { return push(arena_.add(ValueKind::kInteger, bits)); }

  bool push_text(std::size_t length_bytes) {
    const auto length = take(length_bytes);
    if (!length) return false;
    const auto text = take(little_endian(*length));
    return text && push(arena_.add_text(*text));
  }

  bool push_integer(std::size_t bytes, bool is_signed) {
    const auto taken = take(bytes);
    if (!taken) return false;
    std::uint64_t number = little_endian(*taken);
    if (is_signed) number = static_cast<std::uint64_t>(static_cast<std::int32_t>(number));
    return push_number(number);
  }

  /// LONG1: a length, and two's complement, the lowest byte first.
  bool push_long() {
    const auto length = take(1);
    if (!length) return false;
    const auto taken = take(static_cast<unsigned char>((*length)[0]));
    if (!taken) return false;
    std::string_view bytes = *taken;
    if (bytes.empty()) return push_number(0);
    const bool is_negative = (static_cast<unsigned char>(bytes.back()) & 0x80) != 0;
    const char sign = is_negative ? '\xff' : '\0';
    while (bytes.size() > 8 && bytes.back() == sign) bytes.remove_suffix(1);
    if (bytes.size() > 8) return push(arena_.add(ValueKind::kHuge));
    std::uint64_t number = little_endian(bytes);
    if (is_negative && bytes.size() < 8) number |= ~std::uint64_t{0} << (8 * bytes.size());
    const bool has_top_bit = number >> 63 != 0;
    if (is_negative && !has_top_bit) return push(arena_.add(ValueKind::kHuge));
    return push(
        arena_.add(has_top_bit && !is_negative ? ValueKind::kLarge : ValueKind::kInteger, number));
  }

  bool push_float() {
    const auto bytes = take(8);
    if (!bytes) return false;
    std::uint64_t bits = 0;
    for (const char byte : *bytes) bits = bits << 8 | static_cast<unsigned char>(byte);
    return push(arena_.add(ValueKind::kFloat, bits));
  }

  /// How many values stand above the last mark, or above the bottom.
  std::size_t above_mark() const { return stack_.size() - (marks_.empty() ? 0 : marks_.back()); }

  bool open_mark() {
    if (marks_.size() >= kDocumentDepthMax)
      return fail("more than " + std::to_string(kDocumentDepthMax) + " marks are open");
    marks_.push_back(static_cast<std::uint32_t>(stack_.size()));
    return true;
  }

  /// Replaces the last `count` values by one container of them.
  bool gather(ValueKind kind, std::size_t count) {
    const auto container = arena_.add(kind);
    if (!container) return push(container);
    const std::span<const ValueId> values = std::span<const ValueId>(stack_).last(count);
    if (!check_pairs(kind, values)) return false;
    if (!arena_.append(*container, values)) return push(std::nullopt);
    stack_.resize(stack_.size() - count);
    stack_.push_back(*container);
    return true;
  }

  bool gather_few(std::size_t count) {
    if (above_mark() < count) return fail("the stack has too few values");
    return gather(ValueKind::kTuple, count);
  }

  bool gather_marked(ValueKind kind) {
    if (marks_.empty()) return fail("there is no mark");
    const std::size_t count = above_mark();
    marks_.pop_back();
    return gather(kind, count);
  }

  /// Are the values of a dict pairs, with keys that Python could hash?
  bool check_pairs(ValueKind kind, std::span<const ValueId> values) {
    if (kind != ValueKind::kDict) return true;
    if (values.size() % 2 != 0) return fail("a key has no value");
    for (std::size_t i = 0; i < values.size(); i += 2) {
      const ValueKind key = arena_[values[i]].kind;
      if (key == ValueKind::kList || key == ValueKind::kDict)
        return fail("a key is a list or a dict");
    }
    return true;
  }

  /// Adds the last `count` values to the container that stands below them.
  bool extend(ValueKind kind, std::size_t count) {
    if (above_mark() < count + 1) return fail("the stack has too few values");
    const ValueId container = stack_[stack_.size() - count - 1];
    if (arena_[container].kind != kind)
      return fail(kind == ValueKind::kList ? "values are added to what is no list"
                                           : "values are added to what is no dict");
    const std::span<const ValueId> values = std::span<const ValueId>(stack_).last(count);
    if (!check_pairs(kind, values)) return false;
    if (!arena_.append(container, values)) return push(std::nullopt);
    stack_.resize(stack_.size() - count);
    return true;
  }

  bool extend_marked(ValueKind kind) {
    if (marks_.empty()) return fail("there is no mark");
    const std::size_t count = above_mark();
    marks_.pop_back();
    return extend(kind, count);
  }

  bool put(std::size_t index) {
    if (above_mark() == 0) return fail("the stack has too few values");
    if (index > memoised_ + kPickleMemoGapMax)
      return fail("memo index " + std::to_string(index) + " is not among the next ones");
    if (index >= memo_.size()) memo_.resize(index + 1, kUnset);
    if (memo_[index] == kUnset) ++memoised_;
    memo_[index] = stack_.back();
    return true;
  }

  bool put_at(std::size_t index_bytes) {
    const auto index = take(index_bytes);
    return index && put(little_endian(*index));
  }

  bool get_at(std::size_t index_bytes) {
    const auto bytes = take(index_bytes);
    if (!bytes) return false;
    const std::uint64_t index = little_endian(*bytes);
    if (index >= memo_.size() || memo_[index] == kUnset)
      return fail("memo index " + std::to_string(index) + " was never set");
    return push(memo_[index]);
  }

  /// FRAME: a hint of how many bytes follow. They are here already.
  bool skip_frame() {
    const auto length = take(8);
    if (!length) return false;
    if (little_endian(*length) > input_.size() - at_) return fail("the pickle is truncated");
    return true;
  }

  bool stop() {
    if (!marks_.empty()) return fail("a mark is open at the end");
    if (stack_.size() != 1)
      return fail("the stack has " + std::to_string(stack_.size()) + " values at the end, not one");
    is_stopped_ = true;
    return true;
  }

  bool refuse(Op op) {
    if (op == Op::kProto) return fail("a second PROTO");
    const auto code = static_cast<std::uint8_t>(op);
    const auto* const known =
        std::find_if(std::begin(kRefusedOpcodes), std::end(kRefusedOpcodes),
                     [code](const RefusedOpcode& refused) { return refused.code == code; });
    if (known == std::end(kRefusedOpcodes))
      return fail("byte " + std::to_string(code) + " is no opcode");
    return fail(std::string("opcode ") + known->name +
                (known->runs_code ? ", which would run code, is refused"
                                  : " does not occur in memory snapshots"));
  }

  bool step(Op op) {
    switch (op) {
      case Op::kMark: return open_mark();
      case Op::kStop: return stop();
      case Op::kFrame: return skip_frame();
      case Op::kNone: return push(arena_.add(ValueKind::kNone));
      case Op::kNewTrue: return push(arena_.add(ValueKind::kBool, 1));
      case Op::kNewFalse: return push(arena_.add(ValueKind::kBool, 0));
      case Op::kBinInt: return push_integer(4, true);
      case Op::kBinInt1: return push_integer(1, false);
      case Op::kBinInt2: return push_integer(2, false);
      case Op::kLong1: return push_long();
      case Op::kBinFloat: return push_float();
      case Op::kBinUnicode: return push_text(4);
      case Op::kShortBinUnicode: return push_text(1);
      case Op::kEmptyList: return gather(ValueKind::kList, 0);
      case Op::kEmptyTuple: return gather(ValueKind::kTuple, 0);
      case Op::kEmptyDict: return gather(ValueKind::kDict, 0);
      case Op::kTuple1: return gather_few(1);
      case Op::kTuple2: return gather_few(2);
      case Op::kTuple3: return gather_few(3);
      case Op::kTuple: return gather_marked(ValueKind::kTuple);
      case Op::kList: return gather_marked(ValueKind::kList);
      case Op::kDict: return gather_marked(ValueKind::kDict);
      case Op::kAppend: return extend(ValueKind::kList, 1);
      case Op::kAppends: return extend_marked(ValueKind::kList);
      case Op::kSetItem: return extend(ValueKind::kDict, 2);
      case Op::kSetItems: return extend_marked(ValueKind::kDict);
      case Op::kBinPut: return put_at(1);
      case Op::kLongBinPut: return put_at(4);
      case Op::kMemoize: return put(memoised_);
      case Op::kBinGet: return get_at(1);
      case Op::kLongBinGet: return get_at(4);
      default: return refuse(op);
    }
  }

  std::string_view input_;
  std::size_t at_ = 0;
  std::size_t opcode_at_ = 0;
  ValueArena arena_;
  std::vector<ValueId> stack_;
  std::vector<std::uint32_t> marks_;  // how many values stood on the stack when each was opened
  std::vector<ValueId> memo_;         // kUnset where nothing was put
  std::size_t memoised_ = 0;
  bool is_stopped_ = false;
  std::string reason_;
};

}  // namespace

bool is_pickle(std::string_view bytes) {
  return !bytes.empty() && static_cast<Op>(static_cast<unsigned char>(bytes[0])) == Op::kProto;
}

std::optional<Document> parse_pickle(std::string_view bytes, const std::string& name,
                                     std::string* error) {
  if (bytes.size() > kDocumentBytesMax) {
    *error = name + ": larger than 1 GiB";
    return std::nullopt;
  }
  PickleMachine machine(bytes);
  if (machine.run()) return machine.document();
  *error = name + ": offset " + std::to_string(machine.offset()) + ": " + machine.reason();
  return std::nullopt;
}

}  // namespace ashlar::tool
