#include "spec/gpu/cost_model.h"

namespace ashlar::spec {

CostModel CostModel::zero() {
  CostModel model;
  for (unsigned i = 0; i < device::kCallKinds; ++i) {
    const_cast<CallCost&>(model.figures(static_cast<device::CallKind>(i))) = CallCost{};
  }
  return model;
}

const CallCost& CostModel::figures(device::CallKind kind) const {
  switch (kind) {
    case device::CallKind::kSegmentAlloc: return segment_alloc;
    case device::CallKind::kSegmentFree: return segment_free;
    case device::CallKind::kAddressReserve: return address_reserve;
    case device::CallKind::kAddressRelease: return address_release;
    case device::CallKind::kPageCreate: return page_create;
    case device::CallKind::kPageRelease: return page_release;
    case device::CallKind::kPageMap: return page_map;
    case device::CallKind::kPageAccess: return page_access;
    case device::CallKind::kPageUnmap: return page_unmap;
    case device::CallKind::kEventCreate: return event_create;
    case device::CallKind::kEventDestroy: return event_destroy;
    case device::CallKind::kEventRecord: return event_record;
    case device::CallKind::kEventQuery: return event_query;
    case device::CallKind::kEventSynchronize: return event_synchronize;
    case device::CallKind::kStreamWait: return stream_wait;
    case device::CallKind::kIdentify: return identify;
    case device::CallKind::kCaptureStatus: return capture_status;
    case device::CallKind::kExchangeCaptureMode: return exchange_capture_mode;
    case device::CallKind::kMemoryInfo: return memory_info;
    case device::CallKind::kPinnedAlloc: return pinned_alloc;
    case device::CallKind::kPinnedFree: return pinned_free;
    case device::CallKind::kSynchronize: return synchronize;
  }
  return synchronize;
}

std::uint64_t CostModel::of(device::CallKind kind, Bytes size) const {
  const CallCost& cost = figures(kind);
  const std::uint64_t page = Bytes{2_MiB}.count();
  const std::uint64_t pages = size.count() / page + (size.count() % page != 0 ? 1 : 0);
  return cost.call_ns + cost.per_page_ns * pages;
}

std::uint64_t CallAccount::calls() const {
  std::uint64_t sum = 0;
  for (const CallCount& count : by_kind) sum += count.calls;
  return sum;
}

}  // namespace ashlar::spec
