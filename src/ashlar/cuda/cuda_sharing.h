// CudaSharing: a GPU's memory for other processes and other GPUs (device/sharing.h), by the CUDA driver.
//
// Purpose: the calls of sharing, each in the GPU's primary context.
// Thread safety: every member from any thread.
//
// A driver that lacks any of the calls has none of them: then each is kUnsupported (driver_table.h).
// No member allocates.
#pragma once

#include <ashlar/cuda/primary_context.h>
#include <ashlar/device/sharing.h>

namespace ashlar::inline v0::cuda {

class CudaSharing final : public device::Sharing {
 public:
  /// `gpu` must outlive this. `has_direct_rdma`: network cards can reach its pages.
  CudaSharing(PrimaryContext& gpu, bool has_direct_rdma) noexcept;

  Result<device::DeviceUuid> uuid() const noexcept override;
  std::uint32_t ordinal() const noexcept override;

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
  /// Makes the call with the primary context of `owner`, which is retained meanwhile.
  template <class Call>
  Status with_context_of(Sharing& owner, Call&& call) noexcept;

  PrimaryContext& gpu_;
  const bool has_direct_rdma_;
  const bool has_descriptors_;
  const bool has_fabric_;
  bool has_uuid_ = false;
  device::DeviceUuid uuid_{};
};

}  // namespace ashlar::inline v0::cuda
