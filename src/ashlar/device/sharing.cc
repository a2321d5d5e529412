#include <ashlar/device/sharing.h>

namespace ashlar::inline v0::device {

Result<PageHandle> Sharing::segment_page(Address) noexcept {
  return Status{Code::kUnsupported, "the device's segments are no pages"};
}

const char* share_kind_name(ShareKind kind) noexcept {
  switch (kind) {
    case ShareKind::kNone: return "none";
    case ShareKind::kSegment: return "segment";
    case ShareKind::kDescriptor: return "descriptor";
    case ShareKind::kFabric: return "fabric";
  }
  return "unknown";
}

}  // namespace ashlar::inline v0::device
