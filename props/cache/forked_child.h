// The end of a child that a test has forked.
//
// Thread safety: for the child's only thread.
#pragma once

#include <unistd.h>

/// Writes what a coverage build has counted; only that build has it.
extern "C" __attribute__((weak)) int __llvm_profile_write_file(void);

namespace ashlar::props {

/// Ends the child without the parent's exit handlers, which are not the child's to run; the
/// handler that writes the coverage is one of them, so that is done here.
[[noreturn]] inline void end_child(int status) {
  if (__llvm_profile_write_file != nullptr) static_cast<void>(__llvm_profile_write_file());
  _exit(status);
}

}  // namespace ashlar::props
