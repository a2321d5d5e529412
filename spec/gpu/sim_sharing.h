// SimSharing: what one device of a simulated machine shares (device/sharing.h).
//
// Purpose: two machines stand for two processes: what one exports the other imports, in one process or in two. Pages and
// opened segments of another machine are memory of their own to the detector, because no machine sees another's work.
// Thread safety: any thread; each call takes the machine's lock.
#pragma once

#include <ashlar/device/sharing.h>

namespace ashlar::spec {

class Machine;

class SimSharing final : public device::Sharing {
 public:
  SimSharing(Machine& machine, std::uint32_t index) : machine_(&machine), index_(index) {}

  Result<device::DeviceUuid> uuid() const noexcept override;
  std::uint32_t ordinal() const noexcept override { return index_; }
  Result<PageHandle> page_create(Bytes size, device::ShareKind kind) noexcept override;
  Result<device::ShareKind> page_kind(PageHandle page) noexcept override;
  Result<device::ShareHandle> page_export(PageHandle page) noexcept override;
  Result<PageHandle> page_import(const device::ShareHandle& handle, Bytes size) noexcept override;
  Result<device::ShareHandle> segment_export(Address base) noexcept override;
  Result<Address> segment_open(const device::ShareHandle& handle) noexcept override;
  Status segment_close(Address base) noexcept override;
  Result<bool> can_reach(Sharing& owner) noexcept override;
  Status reach(Sharing& owner) noexcept override;
  Status copy(Address to, Address from, Bytes size, StreamHandle stream) noexcept override;
  Status copy_between(Address to, Sharing& to_owner, Address from, Sharing& from_owner, Bytes size,
                      StreamHandle stream) noexcept override;

 private:
  Machine* machine_;
  std::uint32_t index_;
};

}  // namespace ashlar::spec
