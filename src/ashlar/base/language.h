// Refuses a compiler that is not told to take C++20, in one line.
//
// Purpose: many compilers take C++17 unless told otherwise, and each header here then gives errors by
// the page. Every entry header includes this one first. The missing file ends the compilation, which
// #error alone does not.
// Thread safety: no code.
#pragma once

#if __cplusplus < 202002L
#error "Ashlar needs C++20: compile with -std=c++20"
#include <ashlar/base/needs_cxx20>
#endif
