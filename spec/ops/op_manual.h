// The manual of the operations: what each does, for docs/ops.md.
//
// Purpose: names for the operands of each row of the opcode table, one sentence on its meaning and a
// line to copy. `ops_reference` prints the page from it, and props/ops/op_manual_test.cc holds
// docs/ops.md to what is printed.
// Thread safety: constants and a pure function.
//
// Invariants (the test checks them):
//   (1) every operation of the opcode table stands here once, and nothing else does;
//   (2) an entry names as many operands as its row has arguments, and one name means one kind of
//       argument in the whole manual;
//   (3) an example is a line of its operation.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace ashlar::spec {

/// One operation.
struct OpEntry {
  std::uint8_t slot;
  const char* operands;  ///< their names, separated by blanks
  const char* example;   ///< a line of a `.ops` file
  const char* meaning;   ///< one sentence; may name the operands
};

/// Operations that belong together.
struct OpChapter {
  const char* title;
  const char* preface;  ///< a sentence or two about all of them
  std::span<const OpEntry> entries;
};

/// All chapters, in the order of the page.
std::span<const OpChapter> op_manual();

/// docs/ops.md. Throws std::bad_alloc.
std::string ops_page();

}  // namespace ashlar::spec
