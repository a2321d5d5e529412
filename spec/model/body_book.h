// BodyBook: the bodies of conditionals that are captured now, and the bytes that each must leave alone (C8).
//
// What was live in the memory pools when a body began is its parent's: whoever frees it meanwhile, the body gets
// none of it. It would overwrite in its first run what its second reads.
// Thread safety: none.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "spec/model/page_witness.h"

namespace ashlar::spec {

class BodyBook {
 public:
  struct Body {
    std::uint64_t capture = 0;    ///< StreamBook::capture_of()
    std::uint64_t parent = 0;     ///< the capture that it is part of
    std::vector<ByteRange> held;  ///< by parents, when it began
  };

  void begin(Body body) { bodies_.push_back(std::move(body)); }
  void end(std::uint64_t capture) {
    std::erase_if(bodies_, [capture](const Body& each) { return each.capture == capture; });
  }
  /// May an allocation in that capture have none of those bytes, because it is, or is inside, a body whose
  /// parent holds some?
  bool are_held(std::uint64_t capture, const std::vector<ByteRange>& bytes) const {
    for (const Body* body = find(capture); body != nullptr; body = find(body->parent)) {
      for (const ByteRange& each : body->held) {
        if (share_bytes(bytes, each)) return true;
      }
    }
    return false;
  }
  bool is_open(std::uint64_t capture) const { return find(capture) != nullptr; }

 private:
  const Body* find(std::uint64_t capture) const {
    const auto at = std::find_if(bodies_.begin(), bodies_.end(),
                                 [capture](const Body& each) { return each.capture == capture; });
    return at == bodies_.end() ? nullptr : &*at;
  }

  std::vector<Body> bodies_;
};

}  // namespace ashlar::spec
