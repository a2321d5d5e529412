// What a suite does that could not open its GPU.
//
// Purpose: a machine without a GPU is no failure, and a driver that is broken is none of those machines.
// Thread safety: a pure function, but for its line.
#pragma once

#include <cstdio>

#include <ashlar/base/status.h>

namespace ashlar::props {

/// Is there no driver, or one that is too old, or no GPU? Every other answer of a driver's is a failure.
inline bool is_without_gpu(const Status& opened) {
  return opened.code() == Code::kNotFound || opened.code() == Code::kUnsupported;
}

/// Prints why it was not opened, and is the suite's exit status: 77 without a GPU, else 1; 1 for a simulated one.
inline int end_without_gpu(const Status& opened, bool is_simulated = false) {
  const bool is_skipped = is_without_gpu(opened) && !is_simulated;
  std::printf("%s: %s\n", is_skipped ? "SKIPPED" : "FAILED: the GPU cannot be opened",
              opened.why());
  return is_skipped ? 77 : 1;
}

}  // namespace ashlar::props
