// The opcode table. Rows are append only: see table.h and Op invariant 1.
#include "spec/ops/table.h"

#include <cstring>

namespace ashlar::spec {

namespace {

using K = ArgKind;

constexpr OpInfo kRows[] = {
    {slot::kNop, "nop", {}},
    {slot::kAlloc, "alloc", {K::kNewPointer, K::kBytes, K::kStream}},
    {slot::kFree, "free", {K::kPointer}},
    {slot::kFreeOn, "free-on", {K::kPointer, K::kStream}},
    {slot::kUse, "use", {K::kPointer, K::kStream}},
    {slot::kKernel, "kernel", {K::kStream, K::kPointer, K::kAccess}},
    {slot::kStep, "step", {K::kStream, K::kCount}},
    {slot::kDrain, "drain", {K::kDevice}},
    {slot::kRecord, "record", {K::kEvent, K::kStream}},
    {slot::kWait, "wait", {K::kStream, K::kEvent}},
    {slot::kSync, "sync", {K::kEvent}},
    {slot::kStreamCreate, "stream", {K::kStream, K::kDevice}},
    {slot::kStreamRetire, "retire", {K::kStream}},
    {slot::kStreamDestroy, "destroy", {K::kStream}},
    {slot::kTrim, "trim", {K::kDevice}},
    {slot::kFail, "fail", {K::kCallKind, K::kCount, K::kFailMode}},
    {slot::kHeal, "heal", {}},
    {slot::kCapacity, "capacity", {K::kDevice, K::kBytes}},
    {slot::kCaptureBegin, "capture-begin", {K::kStream, K::kMode}},
    {slot::kCaptureEnd, "capture-end", {K::kStream}},
    {slot::kConf, "conf", {K::kText}},
    {slot::kDevice, "device", {K::kDevice, K::kBytes}},
    {slot::kFreeStale, "free-stale", {K::kPointer}},
    {slot::kFreeInterior, "free-interior", {K::kPointer, K::kBytes}},
    {slot::kFreeForeign, "free-foreign", {K::kCount}},
    {slot::kLimit, "limit", {K::kDevice, K::kBytes}},
    {slot::kLose, "lose", {K::kDevice}},
    {slot::kTeardown, "teardown", {}},
    {slot::kOnOutOfMemory, "on-oom", {K::kPointer}},
    {slot::kOnOutOfMemoryAlloc, "on-oom-alloc", {}},
    {slot::kResetPeaks, "reset-peaks", {K::kDevice}},
    {slot::kUseStale, "use-stale", {K::kPointer, K::kStream}},
    {slot::kLag, "lag", {K::kCount}},
    {slot::kSeed, "seed", {K::kCount}},
    {slot::kPoolGrow, "pool-grow", {K::kBytes}},
    {slot::kPoolAlloc, "pool-alloc", {K::kNewPointer, K::kBytes}},
    {slot::kPoolFree, "pool-free", {K::kPointer}},
    {slot::kPoolDefer, "pool-defer", {K::kPointer}},
    {slot::kPoolComplete, "pool-complete", {K::kPointer}},
    {slot::kPoolShrink, "pool-shrink", {K::kCount}},
    {slot::kPoolLift, "pool-lift", {K::kCount}},
    {slot::kPoolLower, "pool-lower", {K::kCount}},
    {slot::kPoolAllocLimited, "pool-alloc-limited", {K::kNewPointer, K::kBytes, K::kBytes}},
    {slot::kPoolAllocWhole, "pool-alloc-whole", {K::kNewPointer, K::kBytes}},
    {slot::kExpect, "expect", {K::kCode}},
    {slot::kExpectSame, "expect-same", {K::kPointer, K::kPointer}},
    {slot::kExpectLive, "expect-live", {K::kCount}},
    {slot::kExpectReserved, "expect-reserved", {K::kDevice, K::kBytes}},
};

constexpr std::array<std::uint8_t, 256> row_by_slot() {
  std::array<std::uint8_t, 256> rows{};
  for (std::size_t i = 0; i < std::size(kRows); ++i) rows[kRows[i].slot] = static_cast<std::uint8_t>(i);
  return rows;
}
constexpr std::array<std::uint8_t, 256> kRowBySlot = row_by_slot();

}  // namespace

const OpInfo& op_info(std::uint8_t slot) { return kRows[kRowBySlot[slot]]; }

const OpInfo* find_op(const char* name) {
  for (const OpInfo& row : kRows) {
    if (std::strcmp(row.name, name) == 0) return &row;
  }
  return nullptr;
}

}  // namespace ashlar::spec
