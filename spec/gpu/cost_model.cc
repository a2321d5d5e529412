#include "spec/gpu/cost_model.h"

namespace ashlar::spec {

CostModel CostModel::zero() {
  CostModel model;
  for (unsigned i = 0; i < kCallKinds; ++i) {
    const_cast<CallCost&>(model.figures(static_cast<CallKind>(i))) = CallCost{};
  }
  return model;
}

const CallCost& CostModel::figures(CallKind kind) const {
  switch (kind) {
    case CallKind::kSegmentAlloc: return segment_alloc;
    case CallKind::kSegmentFree: return segment_free;
    case CallKind::kAddressReserve: return address_reserve;
    case CallKind::kAddressRelease: return address_release;
    case CallKind::kPageCreate: return page_create;
    case CallKind::kPageRelease: return page_release;
    case CallKind::kPageMap: return page_map;
    case CallKind::kPageAccess: return page_access;
    case CallKind::kPageUnmap: return page_unmap;
    case CallKind::kEventCreate: return event_create;
    case CallKind::kEventDestroy: return event_destroy;
    case CallKind::kEventRecord: return event_record;
    case CallKind::kEventQuery: return event_query;
    case CallKind::kEventSynchronize: return event_synchronize;
    case CallKind::kStreamWait: return stream_wait;
    case CallKind::kIdentify: return identify;
    case CallKind::kCaptureStatus: return capture_status;
    case CallKind::kExchangeCaptureMode: return exchange_capture_mode;
    case CallKind::kMemoryInfo: return memory_info;
    case CallKind::kPinnedAlloc: return pinned_alloc;
    case CallKind::kPinnedFree: return pinned_free;
    case CallKind::kSynchronize: return synchronize;
  }
  return synchronize;
}

std::uint64_t CostModel::of(CallKind kind, Bytes size) const {
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
