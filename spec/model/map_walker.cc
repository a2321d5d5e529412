// See map_walker.h.
#include "spec/model/map_walker.h"

#include "spec/model/incremental_walker.h"
#include "spec/model/plain_walker.h"

namespace ashlar::spec {

std::unique_ptr<MapWalker> make_plain_walker() { return std::make_unique<PlainWalker>(); }
std::unique_ptr<MapWalker> make_incremental_walker() {
  return std::make_unique<IncrementalWalker>();
}

}  // namespace ashlar::spec
