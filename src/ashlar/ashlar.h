// Ashlar's caching allocator: the one header that its user includes.
//
// Purpose: it includes the allocators and the host device, and names their types in the namespace
// ashlar: ashlar::CachingAllocator is ashlar::cache::CachingAllocator. The planner and its replay
// are in <ashlar/plan.h>.
// Thread safety: stated at each class.
#pragma once

#include <ashlar/base/language.h>
#include <ashlar/base/version.h>
#include <ashlar/cache/caching_allocator.h>
#include <ashlar/cache/caching_upstream.h>
#include <ashlar/cache/current_stream.h>
#include <ashlar/cache/history.h>
#include <ashlar/cache/history_calls.h>
#include <ashlar/cache/live_allocations.h>
#include <ashlar/cache/owned_memory.h>
#include <ashlar/cache/stats_text.h>
#include <ashlar/cuda/cuda_device.h>
#include <ashlar/cuda/host_clock.h>
#include <ashlar/device/host_device.h>
#include <ashlar/interop/memory_resource.h>
#include <ashlar/pinned/pinned_allocator.h>
#include <ashlar/pinned/pinned_space.h>

namespace ashlar::inline v0 {

using cache::Advice;
using cache::allocate_on_current;
using cache::allocate_owned;
using cache::AllocationInfo;
using cache::annotate;
using cache::Backing;
using cache::CachingAllocator;
using cache::CachingUpstream;
using cache::check_config;
using cache::CheckpointBlock;
using cache::compare_live;
using cache::Config;
using cache::config_from_environment;
using cache::config_keys;
using cache::ConfigKey;
using cache::ContextId;
using cache::ContextRecorder;
using cache::current_stream;
using cache::DeviceStats;
using cache::figure_name;
using cache::FiguresByPool;
using cache::FreeDeleter;
using cache::has_history;
using cache::HeldMemory;
using cache::History;
using cache::history_snapshot;
using cache::HistoryAction;
using cache::HistoryEvent;
using cache::HistoryOptions;
using cache::HistorySnapshot;
using cache::kHistoryActions;
using cache::kRequestBytesMax;
using cache::kStatFigures;
using cache::kStatPools;
using cache::LiveDifference;
using cache::MappingChange;
using cache::MappingEvent;
using cache::Move;
using cache::OutOfMemory;
using cache::OwnedMemory;
using cache::parse_config;
using cache::parse_pytorch_config;
using cache::PinnedRange;
using cache::PoolCheckpoint;
using cache::process_events;
using cache::pytorch_config_from_environment;
using cache::read_history;
using cache::record_use_of_alive;
using cache::RestoredPool;
using cache::Reuse;
using cache::Snapshot;
using cache::SnapshotBlock;
using cache::SnapshotSegment;
using cache::start_history;
using cache::Stat;
using cache::stat_pool_of;
using cache::StatByPool;
using cache::StatFigure;
using cache::StatPool;
using cache::stop_history;
using cache::StreamScope;
using cache::to_json;
using cache::to_text;
using cuda::CudaDevice;
using cuda::HostClock;
using cuda::kDriverLibrary;
using device::CallKind;
using device::CaptureMark;
using device::CaptureMode;
using device::CaptureStatus;
using device::Device;
using device::DeviceTraits;
using device::HostDevice;
using device::HostLedger;
using device::ImmediateDevice;
using device::kCallKinds;
using device::kWaitForever;
using device::MemoryInfo;
using interop::AllocatorResource;
using interop::CachingResource;
using interop::PinnedResource;
using pinned::kAnyNode;
using pinned::kNodesMax;
using pinned::LockTimes;
using pinned::PinBy;
using pinned::PinnedAllocator;
using pinned::PinnedConfig;
using pinned::PinnedSpace;
using pinned::PinnedSpaceOptions;
using pinned::PinTimes;

}  // namespace ashlar::inline v0
