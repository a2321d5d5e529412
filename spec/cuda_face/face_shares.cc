// Memory for other processes, and memory of other devices.
#include <cstring>
#include <set>
#include <utility>

#include <ashlar/base/mutex.h>
#include <ashlar/device/sharing.h>

#include "spec/cuda_face/shared_bytes.h"

namespace ashlar::spec::cuda_face {
namespace {

using device::ShareHandle;
using device::ShareKind;

/// Which device reaches which.
struct EnabledPeers {
  Mutex lock;
  std::set<std::pair<std::int32_t, std::int32_t>> pairs ASHLAR_GUARDED_BY(lock);

  /// False if it was there.
  bool add(std::int32_t user, std::int32_t owner) ASHLAR_EXCLUDES(lock) {
    const MutexGuard guard(lock);
    return pairs.emplace(user, owner).second;
  }
};
EnabledPeers enabled_peers;

CallResult device_get_uuid(GpuUuid* uuid, DeviceNumber device) {
  if (const CallResult planned = take_planned(); planned != kSuccess) return planned;
  if (device < 0 || static_cast<std::uint32_t>(device) >= machine()->device_count())
    return kErrorInvalidDevice;
  const Result<device::DeviceUuid> read = machine()->device(device).sharing()->uuid();
  if (read.is_ok()) std::memcpy(uuid->bytes, read.value().data(), sizeof uuid->bytes);
  return result_of(read.status());
}

ShareHandle share_handle_of(const IpcHandle& bytes, ShareKind kind) {
  ShareHandle handle;
  handle.kind = kind;
  std::memcpy(handle.bytes.data(), bytes.bytes, sizeof bytes.bytes);
  return handle;
}

CallResult ipc_get_mem_handle(IpcHandle* handle, DevicePointer base) {
  return on_current([&](device::Device& on) -> CallResult {
    const Result<ShareHandle> shared_as = on.sharing()->segment_export(Address{base});
    if (!shared_as.is_ok()) return result_of(shared_as.status());
    std::memcpy(handle->bytes, shared_as.value().bytes.data(), sizeof handle->bytes);
    return share_segment_bytes(Address{base});
  });
}

CallResult ipc_open_mem_handle(DevicePointer* base, IpcHandle handle, unsigned flags) {
  if (flags != kOpenEnablesPeers) return kErrorInvalidValue;
  return on_current([&](device::Device& on) -> CallResult {
    const Result<Address> opened =
        on.sharing()->segment_open(share_handle_of(handle, ShareKind::kSegment));
    if (opened.code() == Code::kInvalidArgument) return kErrorInvalidContext;
    if (!opened.is_ok()) return result_of(opened.status());
    *base = opened.value().value();
    return map_file(opened.value(), machine()->segment_size(opened.value()));
  });
}

CallResult ipc_close_mem_handle(DevicePointer base) {
  return on_current([&](device::Device& on) -> CallResult {
    const Bytes size = machine()->segment_size(Address{base});
    const Status closed = on.sharing()->segment_close(Address{base});
    if (closed.is_ok() && has_bytes() && machine()->segment_size(Address{base}) == Bytes{})
      return forget_file(Address{base}, size);
    return result_of(closed);
  });
}

CallResult mem_get_properties(MemoryProperties* properties, MemoryHandle handle) {
  return on_current([&](device::Device& on) -> CallResult {
    const Result<ShareKind> kind = on.sharing()->page_kind(PageHandle{handle});
    if (!kind.is_ok()) return result_of(kind.status());
    *properties = {};
    properties->location.id = current_device();
    properties->handle_types = kind.value() == ShareKind::kFabric       ? kHandleFabric
                               : kind.value() == ShareKind::kDescriptor ? kHandleDescriptor
                                                                        : 0;
    return kSuccess;
  });
}

CallResult mem_export(void* out, MemoryHandle handle, int type, unsigned long long flags) {
  if (flags != 0 || (type != kHandleDescriptor && type != kHandleFabric)) return kErrorInvalidValue;
  return on_current([&](device::Device& on) -> CallResult {
    const PageHandle page{handle};
    const Result<ShareHandle> shared_as = on.sharing()->page_export(page);
    if (!shared_as.is_ok()) return result_of(shared_as.status());
    if (shared_as.value().kind !=
        (type == kHandleFabric ? ShareKind::kFabric : ShareKind::kDescriptor))
      return kErrorInvalidValue;
    if (type == kHandleFabric) std::memcpy(out, shared_as.value().bytes.data(), sizeof(IpcHandle));
    else std::memcpy(out, &shared_as.value().descriptor, sizeof shared_as.value().descriptor);
    return share_page_bytes(page);
  });
}

CallResult mem_import(MemoryHandle* handle, void* shared, int type) {
  if (type != kHandleDescriptor && type != kHandleFabric) return kErrorInvalidValue;
  return on_current([&](device::Device& on) -> CallResult {
    ShareHandle from;
    if (type == kHandleFabric) {
      from = share_handle_of(*static_cast<const IpcHandle*>(shared), ShareKind::kFabric);
    } else {
      from.kind = ShareKind::kDescriptor;
      from.descriptor = static_cast<int>(reinterpret_cast<std::uintptr_t>(shared));
    }
    // The driver is not told the size.
    return store(handle, on.sharing()->page_import(from, shared_size(from)));
  });
}

CallResult device_can_access_peer(int* can, DeviceNumber device, DeviceNumber peer) {
  const auto is_there = [](DeviceNumber number) {
    return number >= 0 && static_cast<std::uint32_t>(number) < machine()->device_count();
  };
  if (const CallResult planned = take_planned(); planned != kSuccess) return planned;
  if (!is_there(device) || !is_there(peer)) return kErrorInvalidDevice;
  const Result<bool> answer =
      machine()->device(device).sharing()->can_reach(*machine()->device(peer).sharing());
  *can = device != peer && answer.is_ok() && answer.value() ? 1 : 0;
  return result_of(answer.status());
}

CallResult ctx_enable_peer_access(Context peer, unsigned flags) {
  return on_current([&](device::Device& on) -> CallResult {
    const std::int32_t owner = device_of(peer);
    if (flags != 0) return kErrorInvalidValue;
    if (owner < 0 || owner == current_device()) return kErrorInvalidContext;
    const Status reached = on.sharing()->reach(*machine()->device(owner).sharing());
    if (reached.is_ok() && !enabled_peers.add(current_device(), owner))
      return kErrorPeerAlreadyEnabled;
    return reached.code() == Code::kUnsupported ? kErrorPeerUnsupported : result_of(reached);
  });
}

CallResult memcpy_peer_async(DevicePointer to, Context to_context, DevicePointer from,
                             Context from_context, std::size_t bytes, StreamPointer stream) {
  const std::int32_t to_device = device_of(to_context);
  const std::int32_t from_device = device_of(from_context);
  if (to_device < 0 || from_device < 0) return kErrorInvalidContext;
  Touch read{Address{from}, Bytes{bytes}, Access::kRead};
  read.by_device = from_device;
  Touch written{Address{to}, Bytes{bytes}, Access::kWrite};
  written.by_device = to_device;
  const Touch touches[] = {read, written};
  return enqueue_work(stream, touches, [to, from, bytes] {
    if (has_bytes()) std::memmove(Address{to}.pointer(), Address{from}.pointer(), bytes);
  });
}

}  // namespace

void forget_peers() {
  const MutexGuard guard(enabled_peers.lock);
  enabled_peers.pairs.clear();
}

std::span<const FaceFunction> share_functions() {
  static const FaceFunction kFunctions[] = {
      {"cuDeviceGetUuid", 11040, pointer_of(device_get_uuid)},
      {"cuIpcGetMemHandle", 4010, pointer_of(ipc_get_mem_handle)},
      {"cuIpcOpenMemHandle", 11000, pointer_of(ipc_open_mem_handle)},
      {"cuIpcCloseMemHandle", 4010, pointer_of(ipc_close_mem_handle)},
      {"cuMemGetAllocationPropertiesFromHandle", 10020, pointer_of(mem_get_properties)},
      {"cuMemExportToShareableHandle", 10020, pointer_of(mem_export)},
      {"cuMemImportFromShareableHandle", 10020, pointer_of(mem_import)},
      {"cuDeviceCanAccessPeer", 4000, pointer_of(device_can_access_peer)},
      {"cuCtxEnablePeerAccess", 4000, pointer_of(ctx_enable_peer_access)},
      {"cuMemcpyPeerAsync", 4000, pointer_of(memcpy_peer_async)},
  };
  return kFunctions;
}

}  // namespace ashlar::spec::cuda_face
