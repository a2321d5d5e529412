// Op: one operation of the language that every test, fuzzer, trace and tool of this project uses.
//
// Purpose: allocate, free, use on a stream, launch, step, fail the next driver call, ... are values
// of one small type. It has a text form (`.ops`, spec/ops/text.h) and a total byte form
// (spec/ops/bytes.h): every byte string decodes to a legal sequence. A counterexample found
// anywhere replays everywhere. README.md explains the language.
// Thread safety: plain values.
//
// Invariants:
//   (1) A slot of the opcode table (spec/ops/opcode_table.h) never changes its meaning or its
//       arguments, so that stored inputs keep their meaning. New operations take new slots.
//   (2) Names in ops are symbolic (p3 is "the third pointer of this file", s1 a stream, d0 a
//       device, e2 an event, m4 a raw segment, v5 a reservation, h6 a page handle). An op whose
//       name is not bound when it runs is skipped; therefore the reducer may drop any op.
#pragma once

#include <ashlar/base/status.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace ashlar::spec {

/// The kind of an argument. Decides its text form (a letter and a number, a number, a word) and its
/// byte form.
enum class ArgKind : std::uint8_t {
  kNone,
  kNewPointer,  ///< p<n>: bound by this op
  kPointer,     ///< p<n>: bound by an earlier op
  kStream,      ///< s<n>
  kDevice,      ///< d<n>
  kEvent,       ///< e<n>
  kSegment,     ///< m<n>: a raw device segment
  kRange,       ///< v<n>: an address reservation
  kPage,        ///< h<n>: a page handle
  kBytes,       ///< a size in bytes
  kCount,       ///< a small number
  kCallKind,    ///< a driver call's name (call_name)
  kCode,        ///< an outcome's name (code_name)
  kAccess,      ///< r, w or rw
  kMode,        ///< a capture mode: global, thread-local, relaxed
  kFailMode,    ///< once or on
  kFailure,     ///< what a failing call answers (kFailureCodes)
  kText,        ///< the rest of the line (Op::text)
};

/// The failures that a device call can answer while the device remains usable; kFailure's values
/// are indices into it.
inline constexpr std::array<Code, 4> kFailureCodes = {Code::kOutOfMemory, Code::kOutOfAddresses,
                                                      Code::kUnsupported, Code::kDriverError};

inline constexpr unsigned kArgsMax = 4;

/// One operation. `slot` indexes the opcode table; `arg[i]` has the kind the table gives it.
struct Op {
  std::uint8_t slot = 0;
  std::array<std::uint64_t, kArgsMax> arg{};
  std::string text;

  friend bool operator==(const Op&, const Op&) = default;
};

/// What a file drives: the block pool alone, the caching allocator, or the simulated GPU itself.
enum class Subject : std::uint8_t { kPool, kCache, kGpu };

/// A parsed `.ops` file: "ashlar-ops 1 cache" and its ops, with each op's line for messages.
struct OpFile {
  Subject subject = Subject::kCache;
  std::vector<Op> ops;
  std::vector<std::uint32_t> lines;  ///< parallel to ops; empty when decoded from bytes
};

}  // namespace ashlar::spec
