#include <ashlar/cuda/driver_table.h>

#include <ashlar/cuda/driver_lookup.h>

namespace ashlar::inline v0::cuda {
namespace {

void find_basics(DriverLookup& in, DriverTable& cu) noexcept {
  in.need(cu.contexts.init, 2000, "the CUDA driver lacks cuInit");
  in.need(cu.contexts.device_get, 2000, "the CUDA driver lacks cuDeviceGet");
  in.need(cu.contexts.device_get_attribute, 2000, "the CUDA driver lacks cuDeviceGetAttribute");
  in.need(cu.contexts.primary_retain, 7000, "the CUDA driver lacks cuDevicePrimaryCtxRetain");
  in.need(cu.contexts.primary_release, 11000, "the CUDA driver lacks cuDevicePrimaryCtxRelease");
  in.need(cu.contexts.get_current, 4000, "the CUDA driver lacks cuCtxGetCurrent");
  in.need(cu.contexts.push_current, 4000, "the CUDA driver lacks cuCtxPushCurrent");
  in.need(cu.contexts.pop_current, 4000, "the CUDA driver lacks cuCtxPopCurrent");
  in.need(cu.contexts.synchronize, 2000, "the CUDA driver lacks cuCtxSynchronize");
  in.need(cu.contexts.get_api_version, 3020, "the CUDA driver lacks cuCtxGetApiVersion");
}

void find_memory(DriverLookup& in, DriverTable& cu) noexcept {
  in.need(cu.memory.get_info, 3020, "the CUDA driver lacks cuMemGetInfo");
  in.need(cu.memory.alloc, 3020, "the CUDA driver lacks cuMemAlloc");
  in.need(cu.memory.free, 3020, "the CUDA driver lacks cuMemFree");
  in.need(cu.memory.host_alloc, 2020, "the CUDA driver lacks cuMemHostAlloc");
  in.need(cu.memory.free_host, 2000, "the CUDA driver lacks cuMemFreeHost");
  in.need(cu.memory.host_register, 6050, "the CUDA driver lacks cuMemHostRegister");
  in.need(cu.memory.host_unregister, 4000, "the CUDA driver lacks cuMemHostUnregister");
}

void find_streams(DriverLookup& in, DriverTable& cu) noexcept {
  in.need(cu.streams.wait_event, 3020, "the CUDA driver lacks cuStreamWaitEvent");
  in.need(cu.streams.is_capturing, 10000, "the CUDA driver lacks cuStreamIsCapturing");
  in.need(cu.streams.exchange_capture_mode, 10010,
          "the CUDA driver lacks cuThreadExchangeStreamCaptureMode");
  in.need(cu.streams.event_create, 2000, "the CUDA driver lacks cuEventCreate");
  in.need(cu.streams.event_destroy, 4000, "the CUDA driver lacks cuEventDestroy");
  in.need(cu.streams.event_record, 2000, "the CUDA driver lacks cuEventRecord");
  in.need(cu.streams.event_query, 2000, "the CUDA driver lacks cuEventQuery");
  in.need(cu.streams.event_synchronize, 2000, "the CUDA driver lacks cuEventSynchronize");
  in.need(cu.streams.get_id, 12000, "the CUDA driver lacks cuStreamGetId");
}

void find_virtual_memory(DriverLookup& in, DriverTable& cu) noexcept {
  // The last one is found only if all others are (DriverTable::has_virtual_memory).
  static_cast<void>(in.find(cu.pages.get_granularity, "cuMemGetAllocationGranularity", 10020) &&
                    in.find(cu.pages.address_reserve, "cuMemAddressReserve", 10020) &&
                    in.find(cu.pages.address_free, "cuMemAddressFree", 10020) &&
                    in.find(cu.pages.create, "cuMemCreate", 10020) &&
                    in.find(cu.pages.release, "cuMemRelease", 10020) &&
                    in.find(cu.pages.map, "cuMemMap", 10020) &&
                    in.find(cu.pages.unmap, "cuMemUnmap", 10020) &&
                    in.find(cu.pages.set_access, "cuMemSetAccess", 10020));
}

void find_stream_memory(DriverLookup& in, DriverTable& cu) noexcept {
  // As above (DriverTable::has_stream_memory).
  static_cast<void>(in.find(cu.pools.create, "cuMemPoolCreate", 11020) &&
                    in.find(cu.pools.destroy, "cuMemPoolDestroy", 11020) &&
                    in.find(cu.pools.set_attribute, "cuMemPoolSetAttribute", 11020) &&
                    in.find(cu.pools.trim_to, "cuMemPoolTrimTo", 11020) &&
                    in.find(cu.pools.alloc, "cuMemAllocFromPoolAsync", 11020) &&
                    in.find(cu.pools.free, "cuMemFreeAsync", 11020));
}

void find_capture_order(DriverLookup& in, DriverTable& cu) noexcept {
  // As above (DriverTable::has_capture_order).
  static_cast<void>(
      in.find(cu.captures.get_info, "cuStreamGetCaptureInfo", 11030) &&
      in.find(cu.captures.update_dependencies, "cuStreamUpdateCaptureDependencies", 11030) &&
      in.find(cu.captures.add_empty_node, "cuGraphAddEmptyNode", 10000) &&
      in.find(cu.captures.node_get_dependencies, "cuGraphNodeGetDependencies", 10000));
}

void find_shares(DriverLookup& in, DriverTable& cu) noexcept {
  // As above (DriverTable::has_shares).
  static_cast<void>(
      in.find(cu.shares.get_uuid, "cuDeviceGetUuid", 11040) &&
      in.find(cu.shares.segment_export, "cuIpcGetMemHandle", 4010) &&
      in.find(cu.shares.segment_open, "cuIpcOpenMemHandle", 11000) &&
      in.find(cu.shares.segment_close, "cuIpcCloseMemHandle", 4010) &&
      in.find(cu.shares.page_properties, "cuMemGetAllocationPropertiesFromHandle", 10020) &&
      in.find(cu.shares.page_export, "cuMemExportToShareableHandle", 10020) &&
      in.find(cu.shares.page_import, "cuMemImportFromShareableHandle", 10020));
}

void find_peers(DriverLookup& in, DriverTable& cu) noexcept {
  // As above (DriverTable::has_peers).
  static_cast<void>(in.find(cu.peers.can_access, "cuDeviceCanAccessPeer", 4000) &&
                    in.find(cu.peers.enable, "cuCtxEnablePeerAccess", 4000) &&
                    in.find(cu.peers.copy, "cuMemcpyAsync", 4000) &&
                    in.find(cu.peers.copy_peer, "cuMemcpyPeerAsync", 4000));
}

}  // namespace

Status load_driver(const char* library, DriverTable* table) noexcept {
  DriverLookup in;
  if (const Status opened = in.open(library); !opened.is_ok()) return opened;
  DriverTable cu;
  find_basics(in, cu);
  find_memory(in, cu);
  find_streams(in, cu);
  if (!in.status().is_ok()) return in.status();
  find_virtual_memory(in, cu);
  find_stream_memory(in, cu);
  find_capture_order(in, cu);
  find_shares(in, cu);
  find_peers(in, cu);
  *table = cu;
  return Status::ok();
}

}  // namespace ashlar::inline v0::cuda
