// The opcode table. Rows are append only: see opcode_table.h and Op invariant 1.
#include "spec/ops/opcode_table.h"

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
    {slot::kAddresses, "addresses", {K::kDevice, K::kBytes}},
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
    {slot::kNameDead, "name-dead", {K::kStream, K::kCount}},
    {slot::kEndNow, "end-now", {}},
    {slot::kFailAs, "fail-as", {K::kCallKind, K::kCount, K::kFailMode, K::kFailure}},
    {slot::kResetTotals, "reset-totals", {K::kDevice}},
    {slot::kLargest, "largest", {K::kStream}},
    {slot::kMakeRoom, "make-room", {K::kDevice, K::kBytes}},
    {slot::kProcess, "process", {K::kDevice}},
    {slot::kHistory, "history", {K::kDevice, K::kCount}},
    {slot::kMemoryPoolBegin, "mempool-begin", {K::kCount, K::kStream}},
    {slot::kMemoryPoolEnd, "mempool-end", {K::kCount, K::kDevice}},
    {slot::kMemoryPoolRetain, "mempool-retain", {K::kCount, K::kDevice}},
    {slot::kMemoryPoolRelease, "mempool-release", {K::kCount, K::kDevice}},
    {slot::kMemoryPoolReplay, "mempool-replay", {K::kCount, K::kStream}},
    {slot::kCheckpoint, "checkpoint", {K::kCount, K::kCount, K::kDevice}},
    {slot::kMemoryPoolCreate, "mempool-create", {K::kCount, K::kDevice, K::kCount}},
    {slot::kRestore, "restore", {K::kCount}},
    {slot::kMemoryPoolLaunch, "mempool-launch", {K::kCount, K::kCount, K::kStream}},
    {slot::kCaptureWait, "capture-wait", {K::kStream, K::kStream}},
    {slot::kPin, "pin", {K::kPointer, K::kCount}},
    {slot::kUnpin, "unpin", {K::kCount}},
    {slot::kPinStale, "pin-stale", {K::kPointer}},
    {slot::kGeneration, "generation", {K::kPointer}},
    {slot::kRegister, "register", {K::kPointer}},
    {slot::kSend, "send", {K::kPointer}},
    {slot::kDeregister, "deregister", {K::kPointer}},
    {slot::kObserve, "observe", {}},
    {slot::kCaptureBody, "capture-body", {K::kStream, K::kStream}},
    {slot::kMemoryPoolLaunchRuns,
     "mempool-launch-runs",
     {K::kCount, K::kCount, K::kStream, K::kCount}},
    {slot::kGraphLaunchRuns, "graph-launch-runs", {K::kStream, K::kCount, K::kCount}},
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
    {slot::kPoolDivide, "pool-divide", {K::kCount, K::kBytes}},
    {slot::kPoolTakeLifted, "pool-take-lifted", {K::kNewPointer, K::kCount}},
    {slot::kPoolReserve, "pool-reserve", {K::kBytes}},
    {slot::kPoolUnmap, "pool-unmap", {K::kCount}},
    {slot::kPoolLiftUnmapped, "pool-lift-unmapped", {K::kCount}},
    {slot::kExpect, "expect", {K::kCode}},
    {slot::kExpectSame, "expect-same", {K::kPointer, K::kPointer}},
    {slot::kExpectLive, "expect-live", {K::kCount}},
    {slot::kExpectReserved, "expect-reserved", {K::kDevice, K::kBytes}},
    {slot::kThread, "thread", {K::kCount}},
    {slot::kBlockingStream, "blocking-stream", {K::kStream, K::kDevice}},
    {slot::kLegacyStream, "legacy-stream", {K::kStream, K::kDevice}},
    {slot::kThreadStream, "thread-stream", {K::kStream, K::kDevice}},
    {slot::kDevIdentify, "dev-identify", {K::kStream}},
    {slot::kSameStream, "same-stream", {K::kStream, K::kStream}},
    {slot::kSameHandle, "same-handle", {K::kStream, K::kStream}},
    {slot::kDevEvent, "dev-event", {K::kEvent, K::kDevice}},
    {slot::kDevEventDestroy, "dev-event-destroy", {K::kEvent}},
    {slot::kDevQuery, "dev-query", {K::kEvent}},
    {slot::kDevSyncFor, "dev-sync-for", {K::kEvent, K::kCount}},
    {slot::kDevSynchronize, "dev-synchronize", {K::kDevice}},
    {slot::kDevMalloc, "dev-malloc", {K::kSegment, K::kDevice, K::kBytes}},
    {slot::kDevFree, "dev-free", {K::kSegment}},
    {slot::kDevFreeInterior, "dev-free-interior", {K::kSegment, K::kBytes}},
    {slot::kDevFreeOn, "dev-free-on", {K::kSegment, K::kDevice}},
    {slot::kDevPinned, "dev-pinned", {K::kSegment, K::kDevice, K::kBytes}},
    {slot::kDevPinnedFree, "dev-pinned-free", {K::kSegment}},
    {slot::kDevReserve, "dev-reserve", {K::kRange, K::kDevice, K::kBytes}},
    {slot::kDevRelease, "dev-release", {K::kRange, K::kBytes}},
    {slot::kDevCreate, "dev-create", {K::kPage, K::kDevice, K::kBytes}},
    {slot::kDevPageRelease, "dev-page-release", {K::kPage}},
    {slot::kDevMap, "dev-map", {K::kRange, K::kBytes, K::kBytes, K::kPage}},
    {slot::kDevAccess, "dev-access", {K::kRange, K::kBytes, K::kBytes}},
    {slot::kDevUnmap, "dev-unmap", {K::kRange, K::kBytes, K::kBytes}},
    {slot::kDevLaunch, "dev-launch", {K::kStream, K::kSegment, K::kAccess}},
    {slot::kDevLaunchAt, "dev-launch-at", {K::kStream, K::kRange, K::kBytes, K::kBytes}},
    {slot::kDevLaunchEmpty, "dev-launch-empty", {K::kStream}},
    {slot::kDevLaunchFaulty, "dev-launch-faulty", {K::kStream}},
    {slot::kHostFn, "host-fn", {K::kStream, K::kCount}},
    {slot::kHostFnCall, "host-fn-call", {K::kStream, K::kDevice}},
    {slot::kBodyOutcome, "body-outcome", {}},
    {slot::kRaise, "raise", {K::kCount}},
    {slot::kMemWrite, "mem-write", {K::kStream, K::kCount, K::kCount}},
    {slot::kMemWait, "mem-wait", {K::kStream, K::kCount, K::kCount}},
    {slot::kMemHost, "mem-host", {K::kCount, K::kCount}},
    {slot::kCollective, "collective", {K::kStream, K::kCount, K::kCount}},
    {slot::kCaptureState, "capture-state", {K::kStream}},
    {slot::kCaptureThread, "capture-thread", {K::kMode}},
    {slot::kGraphLaunch, "graph-launch", {K::kStream, K::kCount}},
    {slot::kGraphDestroy, "graph-destroy", {K::kCount}},
    {slot::kDrainAll, "drain-all", {}},
    {slot::kQueueDepth, "queue-depth", {K::kCount}},
    {slot::kHardwareQueues, "hardware-queues", {K::kCount}},
    {slot::kExpectFault, "expect-fault", {K::kText}},
    {slot::kExpectPending, "expect-pending", {K::kStream, K::kCount}},
    {slot::kExpectFree, "expect-free", {K::kDevice, K::kBytes}},
};

constexpr std::array<std::uint8_t, 256> row_by_slot() {
  std::array<std::uint8_t, 256> rows{};
  for (std::size_t i = 0; i < std::size(kRows); ++i)
    rows[kRows[i].slot] = static_cast<std::uint8_t>(i);
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
