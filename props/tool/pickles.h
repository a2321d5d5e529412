// Pickles for suites: assembled by hand, or written by Python, and shown as Python would show them.
//
// Thread safety: pure functions; python() runs a process.
#pragma once

#include <bit>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "src/tool/value_arena.h"

namespace ashlar::props {

/// A pickle of protocol 2 with these opcodes.
inline std::string pickle_of(std::string_view opcodes) {
  return "\x80\x02" + std::string(opcodes) + ".";
}

/// The bytes that hexadecimal digits say; blanks are skipped.
inline std::string unhex(std::string_view digits) {
  std::string bytes;
  std::string byte;
  for (const char c : digits) {
    if (c == ' ' || c == '\n') continue;
    byte += c;
    if (byte.size() == 2) {
      bytes += static_cast<char>(std::stoi(byte, nullptr, 16));
      byte.clear();
    }
  }
  return bytes;
}

/// A value as Python shows it; the document must not contain itself.
inline std::string show(const tool::ValueArena& arena, tool::ValueId id) {
  using Kind = tool::ValueKind;
  const tool::Value& value = arena[id];
  switch (value.kind) {
    case Kind::kNone: return "None";
    case Kind::kBool: return value.bits != 0 ? "True" : "False";
    case Kind::kInteger: return std::to_string(static_cast<std::int64_t>(value.bits));
    case Kind::kLarge: return std::to_string(value.bits);
    case Kind::kHuge: return "huge";
    case Kind::kFloat: {
      char text[32];
      std::snprintf(text, sizeof text, "%g", std::bit_cast<double>(value.bits));
      return text;
    }
    case Kind::kText: return "'" + std::string(arena.text(id)) + "'";
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kDict: break;
  }
  std::string text;
  std::size_t i = 0;
  for (const tool::ValueId item : arena.items(id)) {
    if (i > 0) text += value.kind == Kind::kDict && i % 2 == 1 ? ": " : ", ";
    text += show(arena, item);
    ++i;
  }
  if (value.kind == Kind::kList) return "[" + text + "]";
  return value.kind == Kind::kDict ? "{" + text + "}" : "(" + text + (i == 1 ? ",)" : ")");
}

/// Is there a python3?
inline bool has_python() { return std::system("python3 -c 'import pickle' 2>/dev/null") == 0; }

/// What a Python program writes to standard output.
inline std::string python(const std::string& program) {
  std::string bytes;
  std::FILE* const pipe = popen(("python3 -c '" + program + "'").c_str(), "r");
  if (pipe == nullptr) return bytes;
  char buffer[4096];
  while (const std::size_t got = std::fread(buffer, 1, sizeof buffer, pipe))
    bytes.append(buffer, got);
  pclose(pipe);
  return bytes;
}

}  // namespace ashlar::props
