#include <ashlar/cache/current_stream.h>

#include <ashlar/base/assert.h>

namespace ashlar::inline v0::cache {
namespace {
thread_local const StreamScope* innermost = nullptr;
}  // namespace

StreamScope::StreamScope(const Stream& stream) noexcept : stream_(stream), outer_(innermost) {
  innermost = this;
}

StreamScope::~StreamScope() {
  ASHLAR_ASSERT(innermost == this,
                "stream scope(1): it ends before a later one, or on another thread");
  innermost = outer_;
}

Result<Stream> current_stream(DeviceId device) noexcept {
  for (const StreamScope* scope = innermost; scope != nullptr; scope = scope->outer_) {
    if (scope->stream_.device == device) return scope->stream_;
  }
  return Status{Code::kNotFound, "this thread has no current stream of that device"};
}

}  // namespace ashlar::inline v0::cache
