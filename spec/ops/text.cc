// Parser and printer of `.ops` text: see text.h.
#include "spec/ops/text.h"

#include <ashlar/base/status.h>
#include <ashlar/device/device.h>

#include <limits>
#include <optional>

#include "spec/ops/opcode_table.h"

namespace ashlar::spec {

namespace {

constexpr const char* kSubjects[] = {"pool", "cache", "gpu"};
constexpr const char* kAccessNames[] = {"r", "w", "rw"};
constexpr const char* kModeNames[] = {"global", "thread-local", "relaxed"};
constexpr const char* kFailNames[] = {"once", "on"};
constexpr std::string_view kBlanks = " \t\r";

/// Takes the next word off `*rest`; empty when there is none.
std::string_view next_word(std::string_view* rest) {
  const std::size_t begin = rest->find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) {
    *rest = {};
    return {};
  }
  const std::size_t end = std::min(rest->find_first_of(kBlanks, begin), rest->size());
  const std::string_view word = rest->substr(begin, end - begin);
  rest->remove_prefix(end);
  return word;
}

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

std::optional<std::uint64_t> parse_number(std::string_view word) {
  if (word.empty()) return std::nullopt;
  constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t n = 0;
  for (const char c : word) {
    if (c < '0' || c > '9') return std::nullopt;
    const auto digit = static_cast<std::uint64_t>(c - '0');
    if (n > (kMax - digit) / 10) return std::nullopt;
    n = n * 10 + digit;
  }
  return n;
}

std::optional<std::uint64_t> parse_bytes(std::string_view word) {
  unsigned shift = 0;
  if (word.size() > 3 && word.substr(word.size() - 2) == "iB") {
    const char unit = word[word.size() - 3];
    shift = unit == 'K' ? 10 : unit == 'M' ? 20 : unit == 'G' ? 30 : 0;
    if (shift == 0) return std::nullopt;
    word.remove_suffix(3);
  }
  const std::optional<std::uint64_t> n = parse_number(word);
  if (!n || *n > (std::numeric_limits<std::uint64_t>::max() >> shift)) return std::nullopt;
  return *n << shift;
}

template <std::size_t n>
std::optional<std::uint64_t> parse_choice(std::string_view word, const char* const (&names)[n]) {
  for (std::size_t i = 0; i < n; ++i) {
    if (word == names[i]) return i;
  }
  return std::nullopt;
}

/// The letter of a kind that is a name, else 0.
char name_letter(ArgKind kind) {
  switch (kind) {
    case ArgKind::kNewPointer:
    case ArgKind::kPointer: return 'p';
    case ArgKind::kStream: return 's';
    case ArgKind::kDevice: return 'd';
    case ArgKind::kEvent: return 'e';
    case ArgKind::kSegment: return 'm';
    case ArgKind::kRange: return 'v';
    case ArgKind::kPage: return 'h';
    default: return 0;
  }
}

std::optional<std::uint64_t> parse_arg(ArgKind kind, std::string_view word) {
  if (const char letter = name_letter(kind)) {
    if (word.size() < 2 || word[0] != letter) return std::nullopt;
    const std::optional<std::uint64_t> n = parse_number(word.substr(1));
    return n && *n < kNamesMax ? n : std::nullopt;
  }
  switch (kind) {
    case ArgKind::kBytes: return parse_bytes(word);
    case ArgKind::kCount: return parse_number(word);
    case ArgKind::kAccess: return parse_choice(word, kAccessNames);
    case ArgKind::kMode: return parse_choice(word, kModeNames);
    case ArgKind::kFailMode: return parse_choice(word, kFailNames);
    case ArgKind::kCallKind:
      for (unsigned i = 0; i < device::kCallKinds; ++i) {
        if (word == device::call_name(static_cast<device::CallKind>(i))) return i;
      }
      return std::nullopt;
    case ArgKind::kFailure:
      for (std::size_t i = 0; i < kFailureCodes.size(); ++i) {
        if (word == code_name(kFailureCodes[i])) return i;
      }
      return std::nullopt;
    case ArgKind::kCode: {
      const std::optional<Code> code = code_from_name(std::string(word).c_str());
      return code ? std::optional<std::uint64_t>(static_cast<std::uint64_t>(*code)) : std::nullopt;
    }
    default: return std::nullopt;
  }
}

std::string print_arg(ArgKind kind, std::uint64_t value) {
  if (const char letter = name_letter(kind)) return letter + std::to_string(value);
  switch (kind) {
    case ArgKind::kAccess: return kAccessNames[value % std::size(kAccessNames)];
    case ArgKind::kMode: return kModeNames[value % std::size(kModeNames)];
    case ArgKind::kFailMode: return kFailNames[value % std::size(kFailNames)];
    case ArgKind::kCallKind:
      return device::call_name(static_cast<device::CallKind>(value % device::kCallKinds));
    case ArgKind::kFailure: return code_name(kFailureCodes[value % kFailureCodes.size()]);
    case ArgKind::kCode: return code_name(static_cast<Code>(value));
    default: return std::to_string(value);
  }
}

std::string quoted(std::string_view word) {
  std::string text = "'";
  for (const char c : word.substr(0, 40)) text += c >= ' ' && c <= '~' ? c : '?';
  return text + "'";
}

bool parse_version(std::string_view line, Subject* subject, std::string* reason) {
  std::string_view rest = line.substr(0, line.find('#'));
  if (next_word(&rest) != "ashlar-ops") {
    *reason = "not an .ops file: the first line must be 'ashlar-ops 1 pool|cache|gpu'";
    return false;
  }
  const std::string_view version = next_word(&rest);
  if (version != "1") {
    *reason = "version " + quoted(version) + " is not known; this program reads version 1";
    return false;
  }
  const std::string_view name = next_word(&rest);
  const std::optional<std::uint64_t> which = parse_choice(name, kSubjects);
  if (!which || !next_word(&rest).empty()) {
    *reason = "the subject must be pool, cache or gpu, not " + quoted(name);
    return false;
  }
  *subject = static_cast<Subject>(*which);
  return true;
}

}  // namespace

const char* arg_hint(ArgKind kind) {
  switch (kind) {
    case ArgKind::kNewPointer:
    case ArgKind::kPointer: return "a pointer's name (p0, p1, ...)";
    case ArgKind::kStream: return "a stream's name (s0, s1, ...)";
    case ArgKind::kDevice: return "a device's name (d0, d1, ...)";
    case ArgKind::kEvent: return "an event's name (e0, e1, ...)";
    case ArgKind::kSegment: return "a segment's name (m0, m1, ...)";
    case ArgKind::kRange: return "a reservation's name (v0, v1, ...)";
    case ArgKind::kPage: return "a page handle's name (h0, h1, ...)";
    case ArgKind::kBytes: return "a size in bytes (512, 4KiB, 2MiB, 1GiB)";
    case ArgKind::kCount: return "a number";
    case ArgKind::kCallKind: return "a driver call's name (segment-alloc, event-query, ...)";
    case ArgKind::kCode: return "an outcome's name (ok, out-of-memory, ...)";
    case ArgKind::kFailure: return "out-of-memory, out-of-addresses, unsupported or driver-error";
    case ArgKind::kAccess: return "r, w or rw";
    case ArgKind::kMode: return "global, thread-local or relaxed";
    case ArgKind::kFailMode: return "once or on";
    case ArgKind::kText: return "a text, to the end of the line";
    case ArgKind::kNone: break;
  }
  return "nothing";
}

const char* subject_name(Subject subject) { return kSubjects[static_cast<unsigned>(subject)]; }

int parse_op(std::string_view line, Op* op, std::string* reason) {
  std::string_view rest = line.substr(0, line.find('#'));
  const std::string_view name = next_word(&rest);
  if (name.empty()) return 0;
  const OpInfo* info = find_op(std::string(name).c_str());
  if (info == nullptr) {
    *reason = "unknown operation " + quoted(name);
    return -1;
  }
  Op parsed;
  parsed.slot = info->slot;
  for (unsigned i = 0; i < kArgsMax && info->args[i] != ArgKind::kNone; ++i) {
    if (info->args[i] == ArgKind::kText) {
      parsed.text = std::string(trimmed(rest));
      rest = {};
      break;
    }
    const std::string_view word = next_word(&rest);
    const std::optional<std::uint64_t> value = parse_arg(info->args[i], word);
    if (!value) {
      *reason = std::string(info->name) + ": argument " + std::to_string(i + 1) + " must be " +
                arg_hint(info->args[i]) +
                (word.empty() ? ", and is missing" : ", not " + quoted(word));
      return -1;
    }
    parsed.arg[i] = *value;
  }
  if (const std::string_view extra = next_word(&rest); !extra.empty()) {
    *reason = std::string(info->name) + ": nothing may follow, but " + quoted(extra) + " does";
    return -1;
  }
  *op = std::move(parsed);
  return 1;
}

bool parse_ops(std::string_view text, OpFile* file, TextError* error) {
  OpFile parsed;
  std::uint32_t line_number = 0;
  bool has_version = false;
  while (!text.empty()) {
    ++line_number;
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    std::string reason;
    if (!has_version) {
      if (!parse_version(line, &parsed.subject, &reason)) {
        *error = {line_number, std::move(reason)};
        return false;
      }
      has_version = true;
      continue;
    }
    Op op;
    const int got = parse_op(line, &op, &reason);
    if (got < 0) {
      *error = {line_number, std::move(reason)};
      return false;
    }
    if (got == 0) continue;
    parsed.ops.push_back(std::move(op));
    parsed.lines.push_back(line_number);
  }
  if (!has_version) {
    *error = {1, "empty file: the first line must be 'ashlar-ops 1 pool|cache|gpu'"};
    return false;
  }
  *file = std::move(parsed);
  return true;
}

std::string print_op(const Op& op) {
  const OpInfo& info = op_info(op.slot);
  std::string line = info.name;
  for (unsigned i = 0; i < kArgsMax && info.args[i] != ArgKind::kNone; ++i) {
    if (info.args[i] == ArgKind::kText) {
      if (!op.text.empty()) line += " " + op.text;
    } else {
      line += " " + print_arg(info.args[i], op.arg[i]);
    }
  }
  return line;
}

std::string print_ops(const OpFile& file) {
  std::string text = std::string("ashlar-ops 1 ") + subject_name(file.subject) + "\n";
  for (const Op& op : file.ops) text += print_op(op) + "\n";
  return text;
}

}  // namespace ashlar::spec
