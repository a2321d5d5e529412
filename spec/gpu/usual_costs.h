// What a simulated machine charges for each kind of call, unless its user says otherwise: the one place of these figures.
//
// Purpose: `ci/gpu calibrate` replaces the rows by those that it measured on a GPU (ci/gpu_costs); until then they are these.
// Thread safety: constants.
#pragma once

#include "spec/gpu/cost_model.h"

namespace ashlar::spec {

struct UsualCost {
  device::CallKind kind;
  CallCost cost;  ///< of a call, and of each page of 2 MiB, in nanoseconds
};

// clang-format off
inline constexpr UsualCost kUsualCosts[] = {
    // Source of these four: a public micro-benchmark of CUDA's virtual memory calls on an A100, per 2 MiB page: create 193 us, set
    // access 36 us, unmap 26 us, map 1.5 us; ten pages cost ten times one.
    {device::CallKind::kPageCreate, {0, 193'000}},
    {device::CallKind::kPageAccess, {0, 36'000}},
    {device::CallKind::kPageUnmap, {0, 26'000}},
    {device::CallKind::kPageMap, {0, 1'500}},
    // All others are assumed: orders of magnitude, without a measurement.
    {device::CallKind::kPageRelease, {5'000, 0}},
    {device::CallKind::kAddressReserve, {2'000, 0}},
    {device::CallKind::kAddressRelease, {2'000, 0}},
    {device::CallKind::kSegmentAlloc, {80'000, 2'000}},
    {device::CallKind::kSegmentFree, {100'000, 1'000}},
    {device::CallKind::kPinnedAlloc, {50'000, 400'000}},
    {device::CallKind::kPinnedFree, {50'000, 100'000}},
    {device::CallKind::kHostRegister, {20'000, 250'000}},
    {device::CallKind::kHostUnregister, {20'000, 50'000}},
    {device::CallKind::kEventCreate, {700, 0}},
    {device::CallKind::kEventDestroy, {300, 0}},
    {device::CallKind::kEventRecord, {900, 0}},
    {device::CallKind::kEventQuery, {400, 0}},
    {device::CallKind::kEventSynchronize, {2'000, 0}},
    {device::CallKind::kStreamWait, {700, 0}},
    {device::CallKind::kIdentify, {100, 0}},
    {device::CallKind::kCaptureStatus, {100, 0}},
    {device::CallKind::kExchangeCaptureMode, {50, 0}},
    {device::CallKind::kMemoryInfo, {20'000, 0}},
    {device::CallKind::kSynchronize, {5'000, 0}},
    {device::CallKind::kCaptureMark, {1'000, 0}},
    {device::CallKind::kCaptureCovers, {2'000, 0}},
    {device::CallKind::kPageExport, {5'000, 0}},
    {device::CallKind::kPageImport, {20'000, 0}},
    {device::CallKind::kSegmentExport, {5'000, 0}},
    {device::CallKind::kSegmentOpen, {100'000, 0}},
    {device::CallKind::kSegmentClose, {100'000, 0}},
    {device::CallKind::kReach, {5'000, 0}},
    {device::CallKind::kCopy, {2'000, 0}},
    {device::CallKind::kStreamAlloc, {2'000, 0}},
    {device::CallKind::kStreamFree, {1'500, 0}},
    {device::CallKind::kStreamTrim, {5'000, 0}},
};
// clang-format on

}  // namespace ashlar::spec
