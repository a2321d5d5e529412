// The opcode table: 256 slots, append only (Op invariant 1). README.md says how a new operation
// gets its slot. What each operation does, with an example: op_manual.cc, and docs/ops.md, which is
// printed from it.
//
// Slots 1..39, 52..59, 160..167 and 170..179 drive the caching allocator, 40..51 the block pool, 60..127 the simulated
// GPU directly; slots 128..139 are expectations. A slot not named here decodes to `nop`.
#pragma once

#include <array>
#include <cstdint>

#include "spec/ops/op.h"

namespace ashlar::spec {

struct OpInfo {
  std::uint8_t slot;
  const char* name;
  std::array<ArgKind, kArgsMax> args;
};

namespace slot {
enum : std::uint8_t {
  kNop = 0,
  // The caching allocator and its world.
  kAlloc = 1,
  kFree = 2,
  kFreeOn = 3,
  kUse = 4,
  kKernel = 5,
  kStep = 6,
  kDrain = 7,
  kRecord = 8,
  kWait = 9,
  kSync = 10,
  kStreamCreate = 11,
  kStreamRetire = 12,
  kStreamDestroy = 13,
  kTrim = 14,
  kFail = 15,
  kHeal = 16,
  kCapacity = 17,
  kCaptureBegin = 18,
  kCaptureEnd = 19,
  kConf = 20,
  kDevice = 21,
  kFreeStale = 22,
  kFreeInterior = 23,
  kFreeForeign = 24,
  kLimit = 25,
  kLose = 26,
  kTeardown = 27,
  kOnOutOfMemory = 28,
  kOnOutOfMemoryAlloc = 29,
  kResetPeaks = 30,
  kUseStale = 31,
  kLag = 32,
  kSeed = 33,
  kNameDead = 34,
  kEndNow = 35,
  kFailAs = 36,
  kResetTotals = 37,
  kLargest = 38,
  kMakeRoom = 39,
  // Memory pools.
  kMemoryPoolBegin = 52,
  kMemoryPoolEnd = 53,
  kMemoryPoolRetain = 54,
  kMemoryPoolRelease = 55,
  kMemoryPoolReplay = 56,
  kCheckpoint = 57,
  kRestore = 58,
  kMemoryPoolCreate = 59,
  // Captures and their graphs.
  kCaptureWait = 171,
  kMemoryPoolLaunch = 170,
  // Memory that stays, and a network that keeps registrations by address.
  kPin = 160,
  kUnpin = 161,
  kPinStale = 162,
  kGeneration = 163,
  kRegister = 164,
  kSend = 165,
  kDeregister = 166,
  kObserve = 167,
  // Bodies of conditionals.
  kCaptureBody = 172,
  kMemoryPoolLaunchRuns = 173,
  kGraphLaunchRuns = 174,
  kAddresses = 175,
  kProcess = 176,
  kHistory = 177,
  // The block pool alone.
  kPoolGrow = 40,
  kPoolAlloc = 41,
  kPoolFree = 42,
  kPoolDefer = 43,
  kPoolComplete = 44,
  kPoolShrink = 45,
  kPoolLift = 46,
  kPoolLower = 47,
  kPoolAllocLimited = 48,
  kPoolAllocWhole = 49,
  kPoolDivide = 50,
  kPoolTakeLifted = 51,
  kPoolReserve = 140,
  kPoolUnmap = 141,
  kPoolLiftUnmapped = 142,
  // A GPU, simulated or real, through Device and what a test does itself
  // (spec/gpu/rule_machine.h).
  kThread = 60,
  kBlockingStream = 61,
  kLegacyStream = 62,
  kThreadStream = 63,
  kDevIdentify = 64,
  kSameStream = 65,
  kSameHandle = 66,
  kDevEvent = 67,
  kDevEventDestroy = 68,
  kDevQuery = 69,
  kDevSyncFor = 70,
  kDevSynchronize = 71,
  kDevMalloc = 72,
  kDevFree = 73,
  kDevFreeInterior = 74,
  kDevFreeOn = 75,
  kDevPinned = 76,
  kDevPinnedFree = 77,
  kDevReserve = 78,
  kDevRelease = 79,
  kDevCreate = 80,
  kDevPageRelease = 81,
  kDevMap = 82,
  kDevAccess = 83,
  kDevUnmap = 84,
  kDevLaunch = 85,
  kDevLaunchAt = 86,
  kDevLaunchEmpty = 87,
  kDevLaunchFaulty = 88,
  kHostFn = 89,
  kHostFnCall = 90,
  kBodyOutcome = 91,
  kRaise = 92,
  kMemWrite = 93,
  kMemWait = 94,
  kMemHost = 95,
  kCollective = 96,
  kCaptureState = 97,
  kCaptureThread = 98,
  kGraphLaunch = 99,
  kGraphDestroy = 100,
  kDrainAll = 101,
  kQueueDepth = 102,
  kHardwareQueues = 103,
  // Expectations.
  kExpect = 128,
  kExpectSame = 129,
  kExpectLive = 130,
  kExpectReserved = 131,
  kExpectFault = 132,
  kExpectPending = 133,
  kExpectFree = 134,
};
}  // namespace slot

/// The table's row for a slot; the `nop` row for a slot without meaning. Cost: O(1).
const OpInfo& op_info(std::uint8_t slot);
/// The row with that name, or nullptr.
const OpInfo* find_op(const char* name);

}  // namespace ashlar::spec
