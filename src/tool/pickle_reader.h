// A restricted reader of pickles: the values that a memory snapshot is made of, and nothing that runs.
//
// Python's pickles are programs. This reader knows the opcodes that build lists, tuples, dicts, text and
// numbers, in the protocols 2 to 5; those that look up names and call them are refused, by name and
// offset, as is everything else. Source of the opcodes: CPython's pickletools.py.
// Thread safety: pure functions.
//
// Bounds: time is linear in the input; memory is at most kPickleMemoryFactor times the input, since
// values that the pickle shares by its memo stay shared (value_arena.h).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "src/tool/value_arena.h"

namespace ashlar::tool {

/// The protocols that are read.
inline constexpr unsigned kPickleProtocolMin = 2;
inline constexpr unsigned kPickleProtocolMax = 5;
/// A memo index may be so much above the number of values memoised before: Python 2 counts from 1, and
/// other writers may leave some numbers out.
inline constexpr std::size_t kPickleMemoGapMax = 255;
/// Memory per byte of input: an opcode of one byte makes at most one value (16), one reference on the
/// stack (4), one in the memo (4), and one addition to a container (16); vectors may double.
inline constexpr std::size_t kPickleMemoryFactor = 80;

/// Does it begin as a pickle of protocol 2 or later does?
bool is_pickle(std::string_view bytes);

/// Reads a pickle; the document refers to `bytes`, which must outlive it. On failure `*error` is one
/// line, `name: offset N: reason`. Throws std::bad_alloc if host memory runs out.
std::optional<Document> parse_pickle(std::string_view bytes, const std::string& name,
                                     std::string* error);

}  // namespace ashlar::tool
