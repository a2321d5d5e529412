// PlainWalker: judges every block of every segment and counts from nothing. See map_walker.h.
//
// Thread safety: none.
#pragma once

#include "spec/model/map_walker.h"

namespace ashlar::spec {

class PlainWalker final : public MapWalker {
 public:
  void walk(const MapWalk& walk, bool is_whole) override;
};

}  // namespace ashlar::spec
