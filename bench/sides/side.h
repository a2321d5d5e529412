// One checkout's allocator behind plain functions, in a shared object of its own.
//
// Purpose: two checkouts in one process, measured in turns of milliseconds (paired.cc). So both see
// the same state of the machine, which two processes one after the other do not.
// Thread safety: none.
#pragma once

#include <cstddef>
#include <cstdint>

#include "bench/cases/event_program.h"

namespace ashlar::bench {

/// A workload over an allocator of its own.
struct SideCase;

/// What a shared object exports, as `ashlar_bench_side`.
struct Side {
  /// The block of `bytes` is allocated and freed; a turn is both.
  SideCase* (*make_pair)(std::uint64_t bytes);
  /// The steady mix (cases/steady_mix.h) over `live` blocks; a turn is a free and an allocation.
  SideCase* (*make_mix)(std::size_t live);
  /// The program's events on its streams, after one pass to warm up; a turn is a pass. The program
  /// must outlive the case.
  SideCase* (*make_replay)(const Program* program);
  void (*run)(SideCase* of, std::uint64_t turns);
  void (*destroy)(SideCase* of);
};

}  // namespace ashlar::bench
