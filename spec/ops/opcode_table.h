// The opcode table: 256 slots, append only (Op invariant 1). README.md says how a new operation
// gets its slot.
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
  kAlloc = 1,           // alloc p bytes s
  kFree = 2,            // free p
  kFreeOn = 3,          // free-on p s: free(p, stream)
  kUse = 4,             // use p s: record_use
  kKernel = 5,          // kernel s p r|w|rw: enqueue work that touches the whole of p
  kStep = 6,            // step s n: the stream finishes up to n entries
  kDrain = 7,           // drain d: every stream of the device finishes
  kRecord = 8,          // record e s: the caller's own event
  kWait = 9,            // wait s e: the caller's own ordering
  kSync = 10,           // sync e: the host waits for it
  kStreamCreate = 11,   // stream s d
  kStreamRetire = 12,   // retire s: tells the allocator, then destroys the stream
  kStreamDestroy = 13,  // destroy s: destroys the stream without telling the allocator
  kTrim = 14,           // trim d
  kFail = 15,           // fail call n once|on: the n-th call of that kind from now fails
  kHeal = 16,           // heal: no more planned failures
  kCapacity = 17,       // capacity d bytes
  kCaptureBegin = 18,   // capture-begin s mode
  kCaptureEnd = 19,     // capture-end s
  kConf = 20,           // conf text: a configuration string; only before the first alloc
  // device d bytes: a device with that capacity (0 = unlimited); only before the first alloc
  kDevice = 21,
  kFreeStale = 22,           // free-stale p: frees p's address again after its free
  kFreeInterior = 23,        // free-interior p bytes: frees p's address + bytes
  kFreeForeign = 24,         // free-foreign n: frees an address never issued
  kLimit = 25,               // limit d bytes: the memory limit
  kLose = 26,                // lose d: a sticky device error (C26)
  kTeardown = 27,            // teardown: the driver is unloaded (C25)
  kOnOutOfMemory = 28,       // on-oom p: a free-memory callback that frees p, once
  kOnOutOfMemoryAlloc = 29,  // on-oom-alloc: a free-memory callback that tries to allocate (C24)
  kResetPeaks = 30,          // reset-peaks d
  kUseStale = 31,            // use-stale p s: record_use of a freed address
  kLag = 32,                 // lag n: every stream finishes each entry n ops after it was enqueued
  kSeed = 33,                // seed n: of the adversary (address reuse, progress)
  kNameDead = 34,            // name-dead s n: the n-th kind of refused call names the dead stream
  kEndNow = 35,              // end-now: the allocator's end; what follows is skipped
  // fail-as call n once|on outcome: as fail, with that outcome; a synchronisation and an access answer
  // driver-error for unsupported
  kFailAs = 36,
  kResetTotals = 37,  // reset-totals d
  kLargest = 38,      // largest s: what the stream could be given without growth
  kMakeRoom = 39,     // make-room d bytes: so much of the device is to be free for others
  // Memory pools: m names one of four. Graphs captured in it are kept while it has uses.
  kMemoryPoolBegin = 52,    // mempool-begin m s: the stream's allocations come from it
  kMemoryPoolEnd = 53,      // mempool-end m d
  kMemoryPoolRetain = 54,   // mempool-retain m d
  kMemoryPoolRelease = 55,  // mempool-release m d: with the last use its graphs are destroyed first
  kMemoryPoolReplay = 56,   // mempool-replay m s: launches its newest graph
  kCheckpoint = 57,         // checkpoint n m d: the n-th checkpoint is the pool's state now
  kRestore = 58,            // restore n: its pool is as the n-th checkpoint says
  kMemoryPoolCreate =
      59,  // mempool-create m d n: n % 8 is 1 for no-split, + 2 overflow, + 4 growth device
  // Captures and their graphs.
  // capture-wait s t: s waits for what t has captured so far, and so joins t's capture if it is in none
  kCaptureWait = 171,
  kMemoryPoolLaunch =
      170,  // mempool-launch m n s: launches its n-th newest graph, from 0, n modulo their number
  // Memory that stays, and a network that keeps registrations by address.
  kPin = 160,         // pin p n: the n-th pin, of 6, is of p's memory
  kUnpin = 161,       // unpin n: a misuse where it has ended before
  kPinStale = 162,    // pin-stale p: a pin of a freed address
  kGeneration = 163,  // generation p: which memory is under p
  kRegister = 164,    // register p: with the network library, which keeps it
  kSend = 165,        // send p: through the registration that the library has, or a new one
  kDeregister = 166,  // deregister p: every registration that touches p
  kObserve = 167,     // observe: the subject has an observer of mappings; register and send need it
  // Bodies of conditionals. A body is over at capture-end of its stream.
  kCaptureBody = 172,  // capture-body s t: s captures the body of a conditional of t's capture
  // mempool-launch-runs m n s runs: as mempool-launch; two bits of `runs` for each body of the graph, the first
  // in the lowest, say how often it runs
  kMemoryPoolLaunchRuns = 173,
  kGraphLaunchRuns = 174,  // graph-launch-runs s n runs: as graph-launch, likewise
  kAddresses = 175,        // addresses d bytes: so many may be reserved at a time (0 = any number)
  kProcess = 176,          // process d: frees what waits only for events that are done
  // history d n: of device d. 0 ends it, 1 takes a snapshot with it, 2 annotates it; any other begins one, of n events
  // if n < 16, else of many
  kHistory = 177,
  // The block pool alone.
  kPoolGrow = 40,          // pool-grow bytes
  kPoolAlloc = 41,         // pool-alloc p bytes
  kPoolFree = 42,          // pool-free p
  kPoolDefer = 43,         // pool-defer p
  kPoolComplete = 44,      // pool-complete p
  kPoolShrink = 45,        // pool-shrink n: drops the n-th idle segment
  kPoolLift = 46,          // pool-lift n: the n-th free block goes in transfer
  kPoolLower = 47,         // pool-lower n: the n-th block in transfer comes back
  kPoolAllocLimited = 48,  // pool-alloc-limited p bytes end: only blocks under `end`
  kPoolAllocWhole = 49,    // pool-alloc-whole p bytes: without split
  kPoolDivide = 50,      // pool-divide n bytes: cuts the n-th block in transfer after so many bytes
  kPoolTakeLifted = 51,  // pool-take-lifted p n: the n-th block in transfer becomes live
  kPoolReserve = 140,    // pool-reserve bytes: a segment that is one unmapped block
  kPoolUnmap = 141,  // pool-unmap n: the n-th block in transfer of such segments loses its memory
  kPoolLiftUnmapped = 142,  // pool-lift-unmapped n: the n-th unmapped block goes in transfer
  // A GPU, simulated or real, through Device and what a test does itself
  // (spec/gpu/rule_machine.h).
  kThread = 60,           // thread n: from now on this is host thread n
  kBlockingStream = 61,   // blocking-stream s d: ordered with the legacy stream
  kLegacyStream = 62,     // legacy-stream s d: binds s to it
  kThreadStream = 63,     // thread-stream s d: binds s to this thread's default stream
  kDevIdentify = 64,      // dev-identify s
  kSameStream = 65,       // same-stream s s: not-found unless the identities are equal
  kSameHandle = 66,       // same-handle s s: not-found unless the handles are equal
  kDevEvent = 67,         // dev-event e d: creates it
  kDevEventDestroy = 68,  // dev-event-destroy e
  kDevQuery = 69,         // dev-query e
  kDevSyncFor = 70,       // dev-sync-for e ms
  kDevSynchronize = 71,   // dev-synchronize d
  kDevMalloc = 72,        // dev-malloc m d bytes
  kDevFree = 73,          // dev-free m
  kDevFreeInterior = 74,  // dev-free-interior m bytes: its address + bytes
  kDevFreeOn = 75,        // dev-free-on m d: through another device
  kDevPinned = 76,        // dev-pinned m d bytes
  kDevPinnedFree = 77,    // dev-pinned-free m
  kDevReserve = 78,       // dev-reserve v d bytes
  kDevRelease = 79,       // dev-release v bytes
  kDevCreate = 80,        // dev-create h d bytes
  kDevPageRelease = 81,   // dev-page-release h
  kDevMap = 82,           // dev-map v offset bytes h
  kDevAccess = 83,        // dev-access v offset bytes
  kDevUnmap = 84,         // dev-unmap v offset bytes
  kDevLaunch = 85,        // dev-launch s m r|w|rw: touches all of it
  kDevLaunchAt = 86,      // dev-launch-at s v offset bytes
  kDevLaunchEmpty = 87,   // dev-launch-empty s: touches nothing
  kDevLaunchFaulty = 88,  // dev-launch-faulty s: loses the device when it runs
  kHostFn = 89,           // host-fn s n: waits for flag n; flag 0 is always raised
  kHostFnCall = 90,       // host-fn-call s d: its body calls the device
  kBodyOutcome = 91,      // body-outcome: the outcome of the last host-fn-call
  kRaise = 92,            // raise n: raises flag n
  kMemWrite = 93,         // mem-write s word value
  kMemWait = 94,          // mem-wait s word value: until the word is at least that
  kMemHost = 95,          // mem-host word value: the host stores it
  kCollective = 96,       // collective s group members
  kCaptureState = 97,     // capture-state s: ok (none), busy (active), capture-invalidated
  kCaptureThread = 98,    // capture-thread mode: this thread's mode
  kGraphLaunch = 99,      // graph-launch s n: the n-th graph captured, from 1
  kGraphDestroy = 100,    // graph-destroy n
  kDrainAll = 101,        // drain-all: every stream of every device
  kQueueDepth = 102,      // queue-depth n: entries a stream holds; only at the start
  kHardwareQueues = 103,  // hardware-queues n: shared by streams; only at the start
  // Expectations.
  kExpect = 128,          // expect code: the outcome of the op before
  kExpectSame = 129,      // expect-same p q: both pointers have the same address
  kExpectLive = 130,      // expect-live n: that many allocations live
  kExpectReserved = 131,  // expect-reserved d bytes
  kExpectFault = 132,     // expect-fault name: the op before was reported as that fault
  kExpectPending = 133,   // expect-pending s n: entries not finished
  kExpectFree = 134,      // expect-free d bytes: free memory of the device
};
}  // namespace slot

/// The table's row for a slot; the `nop` row for a slot without meaning. Cost: O(1).
const OpInfo& op_info(std::uint8_t slot);
/// The row with that name, or nullptr.
const OpInfo* find_op(const char* name);

}  // namespace ashlar::spec
