// DriverTable: the functions of libcuda that the library calls, found at run time.
//
// Purpose: what the library calls of the driver, with the signatures that it calls them by.
// Thread safety: a filled table is read only; the driver's functions may be called from any thread.
//
// Each function is looked up with the version of the interface whose signature is declared here (driver_lookup.h). CUDA
// 12.0 is the oldest driver: before it streams have no identities (cuStreamGetId), and a
// handle that comes again could not be told from a stream that was destroyed.
// Source: "CUDA Driver API", version 13.0, chapter 7; the chapter's section stands at each group.
#pragma once

#include <cstddef>

#include <ashlar/base/status.h>
#include <ashlar/cuda/driver_abi.h>

namespace ashlar::inline v0::cuda {

// Each function is named as the driver's without its prefixes.

/// Initialization, device and primary context management (7.2 to 7.8).
struct ContextFunctions {
  CallResult (*init)(unsigned flags) = nullptr;
  CallResult (*device_get)(DeviceNumber* device, int ordinal) = nullptr;
  CallResult (*device_get_attribute)(int* value, int attribute, DeviceNumber device) = nullptr;
  CallResult (*primary_retain)(Context* context, DeviceNumber device) = nullptr;
  CallResult (*primary_release)(DeviceNumber device) = nullptr;
  CallResult (*get_current)(Context* context) = nullptr;
  CallResult (*push_current)(Context context) = nullptr;
  CallResult (*pop_current)(Context* context) = nullptr;
  CallResult (*synchronize)() = nullptr;
  CallResult (*get_api_version)(Context context, unsigned* version) = nullptr;
};

/// Memory management (7.13).
struct MemoryFunctions {
  CallResult (*get_info)(std::size_t* free, std::size_t* total) = nullptr;
  CallResult (*alloc)(DevicePointer* base, std::size_t size) = nullptr;
  CallResult (*free)(DevicePointer base) = nullptr;
  CallResult (*host_alloc)(void** base, std::size_t size, unsigned flags) = nullptr;
  CallResult (*free_host)(void* base) = nullptr;
  CallResult (*host_register)(void* base, std::size_t size, unsigned flags) = nullptr;
  CallResult (*host_unregister)(void* base) = nullptr;
};

/// Stream and event management (7.19, 7.20).
struct StreamFunctions {
  CallResult (*wait_event)(StreamPointer stream, EventPointer event, unsigned flags) = nullptr;
  CallResult (*is_capturing)(StreamPointer stream, int* status) = nullptr;
  CallResult (*exchange_capture_mode)(int* mode) = nullptr;
  CallResult (*event_create)(EventPointer* event, unsigned flags) = nullptr;
  CallResult (*event_destroy)(EventPointer event) = nullptr;
  CallResult (*event_record)(EventPointer event, StreamPointer stream) = nullptr;
  CallResult (*event_query)(EventPointer event) = nullptr;
  CallResult (*event_synchronize)(EventPointer event) = nullptr;
  CallResult (*get_id)(StreamPointer stream, unsigned long long* id) = nullptr;
};

/// Virtual memory management (7.14): all or none.
struct PageFunctions {
  CallResult (*get_granularity)(std::size_t* granularity, const MemoryProperties* properties,
                                int option) = nullptr;
  CallResult (*address_reserve)(DevicePointer* base, std::size_t size, std::size_t alignment,
                                DevicePointer at, unsigned long long flags) = nullptr;
  CallResult (*address_free)(DevicePointer base, std::size_t size) = nullptr;
  CallResult (*create)(MemoryHandle* handle, std::size_t size, const MemoryProperties* properties,
                       unsigned long long flags) = nullptr;
  CallResult (*release)(MemoryHandle handle) = nullptr;
  CallResult (*map)(DevicePointer at, std::size_t size, std::size_t offset, MemoryHandle handle,
                    unsigned long long flags) = nullptr;
  CallResult (*unmap)(DevicePointer at, std::size_t size) = nullptr;
  CallResult (*set_access)(DevicePointer at, std::size_t size, const MemoryAccess* access,
                           std::size_t count) = nullptr;
};

/// Stream-ordered memory (7.15): all or none.
struct PoolFunctions {
  CallResult (*create)(MemoryPool* pool, const PoolProperties* properties) = nullptr;
  CallResult (*destroy)(MemoryPool pool) = nullptr;
  CallResult (*set_attribute)(MemoryPool pool, int attribute, void* value) = nullptr;
  CallResult (*trim_to)(MemoryPool pool, std::size_t keep) = nullptr;
  CallResult (*alloc)(DevicePointer* base, std::size_t size, MemoryPool pool,
                      StreamPointer stream) = nullptr;
  CallResult (*free)(DevicePointer base, StreamPointer stream) = nullptr;
};

/// What is captured so far (7.19, 7.24): all or none.
struct CaptureFunctions {
  CallResult (*get_info)(StreamPointer stream, int* status, std::uint64_t* id, Graph* graph,
                         const GraphNode** dependencies, std::size_t* count) = nullptr;
  CallResult (*update_dependencies)(StreamPointer stream, GraphNode* dependencies,
                                    std::size_t count, unsigned flags) = nullptr;
  CallResult (*add_empty_node)(GraphNode* node, Graph graph, const GraphNode* dependencies,
                               std::size_t count) = nullptr;
  CallResult (*node_get_dependencies)(GraphNode node, GraphNode* dependencies,
                                      std::size_t* count) = nullptr;
};

/// Memory for other processes (7.2, 7.13, 7.14): all or none.
struct ShareFunctions {
  CallResult (*get_uuid)(GpuUuid* uuid, DeviceNumber device) = nullptr;
  CallResult (*segment_export)(IpcHandle* handle, DevicePointer base) = nullptr;
  CallResult (*segment_open)(DevicePointer* base, IpcHandle handle, unsigned flags) = nullptr;
  CallResult (*segment_close)(DevicePointer base) = nullptr;
  CallResult (*page_properties)(MemoryProperties* properties, MemoryHandle handle) = nullptr;
  CallResult (*page_export)(void* shared, MemoryHandle handle, int type,
                            unsigned long long flags) = nullptr;
  CallResult (*page_import)(MemoryHandle* handle, void* shared, int type) = nullptr;
};

/// Other GPUs' memory (7.13, 7.18): all or none.
struct PeerFunctions {
  CallResult (*can_access)(int* can, DeviceNumber device, DeviceNumber peer) = nullptr;
  CallResult (*enable)(Context peer, unsigned flags) = nullptr;
  CallResult (*copy)(DevicePointer to, DevicePointer from, std::size_t size,
                     StreamPointer stream) = nullptr;
  CallResult (*copy_peer)(DevicePointer to, Context to_context, DevicePointer from,
                          Context from_context, std::size_t size, StreamPointer stream) = nullptr;
};

struct DriverTable {
  ContextFunctions contexts;
  MemoryFunctions memory;
  StreamFunctions streams;
  PageFunctions pages;
  PoolFunctions pools;
  CaptureFunctions captures;
  ShareFunctions shares;
  PeerFunctions peers;

  /// Does it have the calls of virtual memory?
  bool has_virtual_memory() const noexcept { return pages.set_access != nullptr; }
  /// Does it have the calls of stream-ordered memory?
  bool has_stream_memory() const noexcept { return pools.free != nullptr; }
  /// Does it have the calls that tell the order of what is captured?
  bool has_capture_order() const noexcept { return captures.node_get_dependencies != nullptr; }
  /// Does it have the calls that share memory with other processes?
  bool has_shares() const noexcept { return shares.page_import != nullptr; }
  /// Does it have the calls about other GPUs' memory?
  bool has_peers() const noexcept { return peers.copy_peer != nullptr; }
};

/// Loads that library and fills the table. kNotFound if there is no such library; kUnsupported if the driver is older
/// than CUDA 12.0, or lacks a function, which the text names.
Status load_driver(const char* library, DriverTable* table) noexcept;

}  // namespace ashlar::inline v0::cuda
