// CaptureCaller: the part of a world's caller that captures graphs.
//
// The caller is lawful (C9, DEV-7): each capture is announced before it begins and its end after it has
// ended; streams that join one are announced likewise; what streams did before is announced first.
// Thread safety: none.
#pragma once

#include "spec/lockstep/cache_world.h"

namespace ashlar::spec {

class CaptureCaller {
 public:
  /// `world` must outlive this.
  explicit CaptureCaller(CacheWorld& world) : world_(world) {}

  void begin(std::uint32_t stream, device::CaptureMode mode);
  /// The stream begins to capture the body of a conditional that `parent` captures. The subject is told of a
  /// misuse. Skips where the stream has captured bodies inside another stream's capture, which goes on.
  void begin_body(std::uint32_t stream, std::uint32_t parent);
  /// Ends the capture that began on that stream: the streams that joined it are joined back first. Or the
  /// body that it captures. A misuse where a body of it is captured; skips for a stream that joined another's
  /// capture, and where one that joined this has a body.
  void end(std::uint32_t stream);
  /// Ends the capture that began on that stream after the bodies in it.
  void end_whole(std::uint32_t stream);
  /// What `stream` adds from now on to the capture of `before` comes after what that one has added. Joins the
  /// capture if it is in none. Skips where `before` does not capture, or they are in two captures, and where one
  /// captures a body or has one.
  void wait(std::uint32_t stream, std::uint32_t before);

 private:
  /// False if the subject refused.
  bool announce(std::uint32_t stream, const Stream* joined);
  void announce_uses(std::uint32_t stream);
  void end_body(std::uint32_t stream);
  void announce_end(std::uint32_t stream);
  /// False if the machine refused.
  bool order(const Stream& after, const Stream& before);

  CacheWorld& world_;
};

}  // namespace ashlar::spec
