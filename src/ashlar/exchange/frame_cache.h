// Asks a frame source about each context once.
//
// Thread safety: one thread at a time.
#pragma once

#include <unordered_map>
#include <vector>

#include <ashlar/exchange/device_history.h>

namespace ashlar::inline v0::exchange {

class FrameCache {
 public:
  /// `source` outlives the cache.
  explicit FrameCache(const FrameSource& source) : source_(source) {}

  /// The frames of a context; none for ContextId 0. Throws std::bad_alloc, and what the source throws.
  const std::vector<Frame>& of(cache::ContextId context) {
    static const std::vector<Frame> kNoFrames;
    if (context == cache::ContextId{} || !source_) return kNoFrames;
    const auto known = frames_.find(context);
    if (known != frames_.end()) return known->second;
    return frames_.emplace(context, source_(context)).first->second;
  }

 private:
  const FrameSource& source_;
  std::unordered_map<cache::ContextId, std::vector<Frame>> frames_;
};

}  // namespace ashlar::inline v0::exchange
