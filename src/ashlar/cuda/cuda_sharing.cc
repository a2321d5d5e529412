#include <ashlar/cuda/cuda_sharing.h>

#include <cstring>

#include <ashlar/cuda/driver_pages.h>

namespace ashlar::inline v0::cuda {
namespace {

using device::ShareHandle;
using device::ShareKind;

constexpr Status kNoShares{Code::kUnsupported,
                           "the CUDA driver cannot share memory between processes"};
constexpr Status kNoPeers{Code::kUnsupported, "the CUDA driver has no calls about other GPUs"};
constexpr Status kNoSuchKind{Code::kUnsupported, "the GPU has no handles of that kind for pages"};
constexpr Status kNotShared{
    Code::kUnsupported,
    "the page was made without handles to share: make the allocator over a ShareableDevice"};

static_assert(sizeof(IpcHandle) == sizeof(ShareHandle::bytes));
static_assert(sizeof(GpuUuid) == sizeof(device::DeviceUuid));

bool is_of_pages(ShareKind kind) noexcept {
  return kind == ShareKind::kDescriptor || kind == ShareKind::kFabric;
}
/// The driver's type. REQUIRES: is_of_pages.
int handle_type_of(ShareKind kind) noexcept {
  return kind == ShareKind::kFabric ? kHandleFabric : kHandleDescriptor;
}
IpcHandle ipc_handle_of(const ShareHandle& handle) noexcept {
  IpcHandle bytes;
  std::memcpy(bytes.bytes, handle.bytes.data(), sizeof bytes.bytes);
  return bytes;
}

}  // namespace

CudaSharing::CudaSharing(PrimaryContext& gpu, bool has_direct_rdma) noexcept
    : gpu_(gpu),
      has_direct_rdma_(has_direct_rdma),
      has_descriptors_(gpu.attribute(kAttributeDescriptorHandles) != 0),
      has_fabric_(gpu.attribute(kAttributeFabricHandles) != 0) {
  if (!gpu.driver().has_shares()) return;
  GpuUuid read;
  has_uuid_ = gpu.call([&] { return gpu.driver().shares.get_uuid(&read, gpu.device()); }).is_ok();
  std::memcpy(uuid_.data(), read.bytes, uuid_.size());
}

Result<device::DeviceUuid> CudaSharing::uuid() const noexcept {
  if (!has_uuid_) return kNoShares;
  return uuid_;
}

std::uint32_t CudaSharing::ordinal() const noexcept {
  return static_cast<std::uint32_t>(gpu_.device());
}

Result<PageHandle> CudaSharing::page_create(Bytes size, ShareKind kind) noexcept {
  if (!gpu_.driver().has_shares() || !gpu_.driver().has_virtual_memory()) return kNoShares;
  const bool has_kind = kind == ShareKind::kFabric ? has_fabric_ : has_descriptors_;
  if (!is_of_pages(kind) || !has_kind) return kNoSuchKind;
  return create_page(gpu_, size, page_properties(gpu_, has_direct_rdma_, handle_type_of(kind)));
}

Result<ShareKind> CudaSharing::page_kind(PageHandle page) noexcept {
  if (!gpu_.driver().has_shares()) return kNoShares;
  MemoryProperties properties;
  const Status asked =
      gpu_.call([&] { return gpu_.driver().shares.page_properties(&properties, page.value()); });
  if (!asked.is_ok()) return asked;
  if ((properties.handle_types & kHandleFabric) != 0) return ShareKind::kFabric;
  return (properties.handle_types & kHandleDescriptor) != 0 ? ShareKind::kDescriptor
                                                            : ShareKind::kNone;
}

Result<ShareHandle> CudaSharing::page_export(PageHandle page) noexcept {
  const Result<ShareKind> kind = page_kind(page);
  if (!kind.is_ok()) return kind.status();
  if (kind.value() == ShareKind::kNone) return kNotShared;
  ShareHandle handle;
  handle.kind = kind.value();
  void* const out = handle.kind == ShareKind::kFabric ? static_cast<void*>(handle.bytes.data())
                                                      : &handle.descriptor;
  const Status made = gpu_.call([&] {
    return gpu_.driver().shares.page_export(out, page.value(), handle_type_of(handle.kind), 0);
  });
  if (!made.is_ok()) return made;
  return handle;
}

Result<PageHandle> CudaSharing::page_import(const ShareHandle& handle, Bytes) noexcept {
  if (!gpu_.driver().has_shares()) return kNoShares;
  if (!is_of_pages(handle.kind)) return kNoSuchKind;
  IpcHandle bytes = ipc_handle_of(handle);
  // The driver takes a descriptor in the place of the pointer.
  void* const in = handle.kind == ShareKind::kFabric
                       ? static_cast<void*>(bytes.bytes)
                       : reinterpret_cast<void*>(
                             static_cast<std::uintptr_t>(static_cast<unsigned>(handle.descriptor)));
  MemoryHandle page = 0;
  const Status made = gpu_.call(
      [&] { return gpu_.driver().shares.page_import(&page, in, handle_type_of(handle.kind)); });
  if (!made.is_ok()) return made;
  return PageHandle{page};
}

Result<ShareHandle> CudaSharing::segment_export(Address base) noexcept {
  if (!gpu_.driver().has_shares()) return kNoShares;
  IpcHandle bytes;
  const Status made =
      gpu_.call([&] { return gpu_.driver().shares.segment_export(&bytes, base.value()); });
  if (!made.is_ok()) return made;
  ShareHandle handle;
  handle.kind = ShareKind::kSegment;
  std::memcpy(handle.bytes.data(), bytes.bytes, sizeof bytes.bytes);
  return handle;
}

Result<Address> CudaSharing::segment_open(const ShareHandle& handle) noexcept {
  if (!gpu_.driver().has_shares()) return kNoShares;
  const IpcHandle bytes = ipc_handle_of(handle);
  DevicePointer base = 0;
  const Status opened =
      gpu_.call([&] { return gpu_.driver().shares.segment_open(&base, bytes, kOpenEnablesPeers); });
  if (!opened.is_ok()) return opened;
  return Address{base};
}

Status CudaSharing::segment_close(Address base) noexcept {
  if (!gpu_.driver().has_shares()) return kNoShares;
  return gpu_.call([&] { return gpu_.driver().shares.segment_close(base.value()); });
}

Result<bool> CudaSharing::can_reach(Sharing& owner) noexcept {
  if (owner.ordinal() == ordinal()) return true;
  if (!gpu_.driver().has_peers()) return false;
  int can = 0;
  const Status asked = gpu_.call([&] {
    return gpu_.driver().peers.can_access(&can, gpu_.device(),
                                          static_cast<DeviceNumber>(owner.ordinal()));
  });
  if (!asked.is_ok()) return asked;
  return can != 0;
}

template <class Call>
Status CudaSharing::with_context_of(Sharing& owner, Call&& call) noexcept {
  if (owner.ordinal() == ordinal()) return call(gpu_.context());
  const auto device = static_cast<DeviceNumber>(owner.ordinal());
  Context context = nullptr;
  // Outside of gpu_.call(): an answer that stays is the other GPU's, and ends nothing here.
  const CallResult retained = gpu_.driver().contexts.primary_retain(&context, device);
  if (retained != kSuccess) return status_of(retained);
  const Status status = call(context);
  static_cast<void>(gpu_.driver().contexts.primary_release(device));
  return status;
}

Status CudaSharing::reach(Sharing& owner) noexcept {
  if (owner.ordinal() == ordinal()) return Status::ok();
  if (!gpu_.driver().has_peers()) return kNoPeers;
  return with_context_of(owner, [&](Context context) {
    return gpu_.call([&] {
      const CallResult answer = gpu_.driver().peers.enable(context, 0);
      return answer == kErrorPeerAlreadyEnabled ? CallResult{kSuccess} : answer;
    });
  });
}

Status CudaSharing::copy(Address to, Address from, Bytes size, StreamHandle stream) noexcept {
  if (!gpu_.driver().has_peers()) return kNoPeers;
  return gpu_.call([&] {
    return gpu_.driver().peers.copy(to.value(), from.value(), size.count(), pointer_of(stream));
  });
}

Status CudaSharing::copy_between(Address to, Sharing& to_owner, Address from, Sharing& from_owner,
                                 Bytes size, StreamHandle stream) noexcept {
  if (!gpu_.driver().has_peers()) return kNoPeers;
  return with_context_of(to_owner, [&](Context to_context) {
    return with_context_of(from_owner, [&](Context from_context) {
      return gpu_.call([&] {
        return gpu_.driver().peers.copy_peer(to.value(), to_context, from.value(), from_context,
                                             size.count(), pointer_of(stream));
      });
    });
  });
}

}  // namespace ashlar::inline v0::cuda
