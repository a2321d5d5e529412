// ops_reference: prints docs/ops.md, the manual of all operations.
#include <cstdio>

#include "spec/ops/op_manual.h"

// NOLINTNEXTLINE(bugprone-exception-escape): std::bad_alloc, which ends the program.
int main() {
  return std::fputs(ashlar::spec::ops_page().c_str(), stdout) >= 0 && std::fflush(stdout) == 0 ? 0
                                                                                               : 3;
}
