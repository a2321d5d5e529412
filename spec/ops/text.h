// The text form of ops: `.ops` files.
//
//   ashlar-ops 1 cache        the version line: form 1, and what the file drives (pool, cache, gpu)
//   # a comment               anywhere on a line; blank lines are skipped stream s1 d0
//   one op a line: its name, then its arguments as the table gives them alloc p0 2MiB s1
//   sizes are numbers, plain or with KiB, MiB, GiB; names are a letter and
//                             a number
//   expect out-of-memory      codes, calls and modes are named
//   conf a:1,b:2              a text argument is the rest of the line
//
// Round trip: parse(print(f)) gives back f's subject and ops, for every f whose texts are
// printable, without '#', and trimmed.
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "spec/ops/op.h"

namespace ashlar::spec {

/// Why a text is not an `.ops` file.
struct TextError {
  std::uint32_t line = 0;  ///< from 1
  std::string reason;      ///< one line
};

/// Names are p0 .. p(kNamesMax - 1), likewise for every letter.
inline constexpr std::uint64_t kNamesMax = std::uint64_t{1} << 32;

/// Parses a whole file into `*file`. On failure returns false, sets `*error` and leaves `*file` as
/// it is. Cost: linear.
bool parse_ops(std::string_view text, OpFile* file, TextError* error);

/// Parses one line without its line end; not the version line. Returns 1 with an op in `*op`, 0 for
/// a blank line or a comment, -1 with an error in `*reason`.
int parse_op(std::string_view line, Op* op, std::string* reason);

/// The whole file's text, ended by a newline.
std::string print_ops(const OpFile& file);
/// One op's line, without a line end.
std::string print_op(const Op& op);

/// How an argument of that kind is written: "a size in bytes (512, 4KiB, 2MiB, 1GiB)".
const char* arg_hint(ArgKind kind);

/// "pool", "cache", "gpu".
const char* subject_name(Subject subject);

}  // namespace ashlar::spec
