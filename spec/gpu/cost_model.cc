#include "spec/gpu/cost_model.h"

namespace ashlar::spec {

std::array<CallCost, device::kCallKinds> CostModel::usual() {
  using K = device::CallKind;
  std::array<CallCost, device::kCallKinds> costs{};
  const auto set = [&](K kind, CallCost cost) { costs[static_cast<unsigned>(kind)] = cost; };
  // Source of these four: a public micro-benchmark of CUDA's virtual memory calls on an A100, per
  // 2 MiB page: create 193 us, set access 36 us, unmap 26 us, map 1.5 us; ten pages cost ten times
  // one.
  set(K::kPageCreate, {0, 193'000});
  set(K::kPageAccess, {0, 36'000});
  set(K::kPageUnmap, {0, 26'000});
  set(K::kPageMap, {0, 1'500});
  // All others are assumed: orders of magnitude, without a measurement.
  set(K::kPageRelease, {5'000, 0});
  set(K::kAddressReserve, {2'000, 0});
  set(K::kAddressRelease, {2'000, 0});
  set(K::kSegmentAlloc, {80'000, 2'000});
  set(K::kSegmentFree, {100'000, 1'000});
  set(K::kPinnedAlloc, {50'000, 400'000});
  set(K::kPinnedFree, {50'000, 100'000});
  set(K::kHostRegister, {20'000, 250'000});
  set(K::kHostUnregister, {20'000, 50'000});
  set(K::kEventCreate, {700, 0});
  set(K::kEventDestroy, {300, 0});
  set(K::kEventRecord, {900, 0});
  set(K::kEventQuery, {400, 0});
  set(K::kEventSynchronize, {2'000, 0});
  set(K::kStreamWait, {700, 0});
  set(K::kIdentify, {100, 0});
  set(K::kCaptureStatus, {100, 0});
  set(K::kExchangeCaptureMode, {50, 0});
  set(K::kMemoryInfo, {20'000, 0});
  set(K::kSynchronize, {5'000, 0});
  set(K::kCaptureMark, {1'000, 0});    // assumed
  set(K::kCaptureCovers, {2'000, 0});  // assumed
  set(K::kPageExport, {5'000, 0});     // this and those below: assumed
  set(K::kPageImport, {20'000, 0});
  set(K::kSegmentExport, {5'000, 0});
  set(K::kSegmentOpen, {100'000, 0});
  set(K::kSegmentClose, {100'000, 0});
  set(K::kReach, {5'000, 0});
  set(K::kCopy, {2'000, 0});
  set(K::kStreamAlloc, {2'000, 0});
  set(K::kStreamFree, {1'500, 0});
  set(K::kStreamTrim, {5'000, 0});
  return costs;
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
