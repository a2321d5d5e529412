// HostFunctions: the flags that streams' host functions wait for, and the functions' bodies.
//
// Thread safety: none (the machine's lock), but for is_running_here.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "spec/gpu/sim_types.h"

namespace ashlar::spec {

class HostFunctions {
 public:
  HostFlag new_flag();
  void raise(HostFlag flag) {
    if (flag < flags_.size()) flags_[flag] = 1;
  }
  /// REQUIRES: the flag is 0 or new_flag gave it.
  bool is_raised(HostFlag flag) const { return flags_[flag] != 0; }

  /// Keeps the body. Returns its number, from 1.
  std::uint32_t add_body(std::function<void()> body);
  /// Runs the body with that number, once; 0 names no body.
  void run(std::uint64_t body);
  /// Is the calling thread inside a body of this machine?
  bool is_running_here() const { return running() == this; }

 private:
  /// The machine whose host function the calling thread runs now, if any.
  static const HostFunctions*& running();

  std::vector<std::uint8_t> flags_{1};  // by flag; flag 0 is raised
  std::vector<std::function<void()>> bodies_;
};

}  // namespace ashlar::spec
