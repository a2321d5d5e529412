// ForwardingSharing: what another device shares, call by call.
//
// Purpose: the base of wrappers; one overrides the calls that it changes.
// Thread safety: the inner one's.
#pragma once

#include <ashlar/device/sharing.h>

namespace ashlar::inline v0::device {

class ForwardingSharing : public Sharing {
 public:
  /// `inner` must outlive this.
  explicit ForwardingSharing(Sharing& inner) : inner_(inner) {}
  ForwardingSharing(const ForwardingSharing&) = delete;
  ForwardingSharing& operator=(const ForwardingSharing&) = delete;

  Result<DeviceUuid> uuid() const noexcept override { return inner_.uuid(); }
  std::uint32_t ordinal() const noexcept override { return inner_.ordinal(); }
  Result<PageHandle> page_create(Bytes size, ShareKind kind) noexcept override {
    return inner_.page_create(size, kind);
  }
  Result<ShareKind> page_kind(PageHandle page) noexcept override { return inner_.page_kind(page); }
  Result<ShareHandle> page_export(PageHandle page) noexcept override {
    return inner_.page_export(page);
  }
  Result<PageHandle> page_import(const ShareHandle& handle, Bytes size) noexcept override {
    return inner_.page_import(handle, size);
  }
  Result<ShareHandle> segment_export(Address base) noexcept override {
    return inner_.segment_export(base);
  }
  Result<PageHandle> segment_page(Address base) noexcept override {
    return inner_.segment_page(base);
  }
  Result<Address> segment_open(const ShareHandle& handle) noexcept override {
    return inner_.segment_open(handle);
  }
  Status segment_close(Address base) noexcept override { return inner_.segment_close(base); }
  Result<bool> can_reach(Sharing& owner) noexcept override { return inner_.can_reach(owner); }
  Status reach(Sharing& owner) noexcept override { return inner_.reach(owner); }
  Status copy(Address to, Address from, Bytes size, StreamHandle stream) noexcept override {
    return inner_.copy(to, from, size, stream);
  }
  Status copy_between(Address to, Sharing& to_owner, Address from, Sharing& from_owner, Bytes size,
                      StreamHandle stream) noexcept override {
    return inner_.copy_between(to, to_owner, from, from_owner, size, stream);
  }

 private:
  Sharing& inner_;
};

}  // namespace ashlar::inline v0::device
