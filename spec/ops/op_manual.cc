// The entries of the manual: see op_manual.h. Each stands in the chapter of what it is about; their
// order is that of the page.
#include "spec/ops/op_manual.h"

#include "spec/ops/opcode_table.h"

namespace ashlar::spec {

namespace {

constexpr OpEntry kWorldEntries[] = {
    {slot::kDevice, "d bytes", "device d0 64MiB",
     "A device with that capacity, 0 for an unlimited one; only before the first `alloc`."},
    {slot::kConf, "text", "conf wait_ms:0,reuse:own",
     "The allocator's configuration string; only before the first `alloc`."},
    {slot::kSeed, "n", "seed 7",
     "Seeds the adversary, which chooses addresses to use again and streams to progress."},
    {slot::kLag, "n", "lag 3",
     "From now on each stream finishes an entry `n` operations after it was enqueued."},
    {slot::kCapacity, "d bytes", "capacity d0 32MiB", "The device has that capacity from now on."},
    {slot::kAddresses, "d bytes", "addresses d0 128MiB",
     "So many bytes of addresses may be reserved at a time, 0 for any number."},
    {slot::kStreamCreate, "s d", "stream s1 d0",
     "Makes a stream on the device; `s0` exists from the start."},
    {slot::kStreamRetire, "s", "retire s1",
     "Tells the allocator that the stream ends, then destroys it."},
    {slot::kStreamDestroy, "s", "destroy s1", "Destroys the stream without telling the allocator."},
    {slot::kKernel, "s p access", "kernel s1 p0 w", "Enqueues work that touches the whole of `p`."},
    {slot::kStep, "s n", "step s1 2", "The stream finishes up to `n` entries."},
    {slot::kDrain, "d", "drain d0", "Every stream of the device finishes all its work."},
    {slot::kRecord, "e s", "record e0 s1", "The caller records an event of its own on the stream."},
    {slot::kWait, "s e", "wait s2 e0",
     "Work that is enqueued on the stream afterwards waits for the event."},
    {slot::kSync, "e", "sync e0", "The host waits for the event."},
    {slot::kFail, "call n when", "fail segment-alloc 1 once",
     "The `n`-th call of that kind from now fails, once or from then on."},
    {slot::kFailAs, "call n when failure", "fail-as page-map 1 on out-of-memory",
     "As `fail`, with that outcome; a synchronisation and an access answer driver-error for "
     "unsupported."},
    {slot::kHeal, "", "heal", "No planned failure is left."},
    {slot::kLose, "d", "lose d0",
     "The device fails for good: each later call of it says so (C26)."},
    {slot::kTeardown, "", "teardown", "The driver is unloaded (C25)."},
    {slot::kNop, "", "nop", "Does nothing."},
};

constexpr OpEntry kCallsEntries[] = {
    {slot::kAlloc, "p bytes s", "alloc p0 2MiB s1",
     "Allocates that many bytes on the stream and binds `p` to the address."},
    {slot::kFree, "p", "free p0", "Frees it."},
    {slot::kFreeOn, "p s", "free-on p0 s2",
     "Records a use by the stream and frees it, in one call."},
    {slot::kUse, "p s", "use p0 s2", "Records that work on the stream uses it: `record_use`."},
    {slot::kTrim, "d", "trim d0", "Gives every idle segment of the device back."},
    {slot::kMakeRoom, "d bytes", "make-room d0 16MiB",
     "Asks that so much of the device is free for others."},
    {slot::kLimit, "d bytes", "limit d0 32MiB", "Sets the memory limit of the device."},
    {slot::kProcess, "d", "process d0", "Frees what waits only for events that are complete."},
    {slot::kHistory, "d n", "history d0 20",
     "The device's history: 0 ends it, 1 takes a snapshot with it, 2 annotates it; any other "
     "number begins one, of "
     "`n` events if `n` is less than 16, else of 4096."},
    {slot::kLargest, "s", "largest s1", "Asks what the stream could be given without growth."},
    {slot::kResetPeaks, "d", "reset-peaks d0",
     "Sets the peaks of the statistics to their current values."},
    {slot::kResetTotals, "d", "reset-totals d0", "Sets the sums of the statistics to zero."},
    {slot::kOnOutOfMemory, "p", "on-oom p0", "Adds a free-memory callback that frees `p`, once."},
    {slot::kOnOutOfMemoryAlloc, "", "on-oom-alloc",
     "Adds a free-memory callback that tries to allocate (C24)."},
    {slot::kEndNow, "", "end-now", "The allocator's end; what follows is skipped."},
    {slot::kFreeStale, "p", "free-stale p0", "Misuse: frees the address again after its free."},
    {slot::kFreeInterior, "p bytes", "free-interior p0 512",
     "Misuse: frees the address plus that many bytes."},
    {slot::kFreeForeign, "n", "free-foreign 1",
     "Misuse: frees an address that was never handed out, chosen by `n`."},
    {slot::kUseStale, "p s", "use-stale p0 s1", "Misuse: records a use of a freed address."},
    {slot::kNameDead, "s n", "name-dead s1 0",
     "Misuse: a call, chosen by `n`, names the dead stream and must be refused."},
};

constexpr OpEntry kPoolsEntries[] = {
    {slot::kMemoryPoolCreate, "pool d options", "mempool-create 1 d0 3",
     "Creates the pool; `options` modulo 8 is the sum of 1 for no split, 2 for overflow and 4 for "
     "a growth device."},
    {slot::kMemoryPoolBegin, "pool s", "mempool-begin 1 s1",
     "From now on the stream's allocations come from the pool."},
    {slot::kMemoryPoolEnd, "pool d", "mempool-end 1 d0", "Ends that routing."},
    {slot::kMemoryPoolRetain, "pool d", "mempool-retain 1 d0", "Adds a use of the pool."},
    {slot::kMemoryPoolRelease, "pool d", "mempool-release 1 d0",
     "Takes a use away; with the last one its graphs are destroyed first."},
    {slot::kMemoryPoolReplay, "pool s", "mempool-replay 1 s1",
     "Launches the pool's newest graph on the stream."},
    {slot::kMemoryPoolLaunch, "pool n s", "mempool-launch 1 0 s1",
     "Launches its `n`-th newest graph, from 0, `n` modulo their number."},
    {slot::kMemoryPoolLaunchRuns, "pool n s runs", "mempool-launch-runs 1 0 s1 2",
     "As `mempool-launch`; two bits of `runs` for each body of the graph, the first in the lowest, "
     "say how often it runs."},
    {slot::kCheckpoint, "n pool d", "checkpoint 0 1 d0",
     "The `n`-th checkpoint is the pool's state now."},
    {slot::kRestore, "n", "restore 0", "The checkpoint's pool is again as it says."},
    {slot::kCaptureBegin, "s mode", "capture-begin s1 global",
     "Announces and begins a capture of the stream."},
    {slot::kCaptureEnd, "s", "capture-end s1",
     "Ends the capture, or the body, that the stream captures."},
    {slot::kCaptureWait, "s t", "capture-wait s2 s1",
     "`s` waits for what `t` has captured so far, and so joins its capture if it is in none."},
    {slot::kCaptureBody, "s t", "capture-body s2 s1",
     "`s` captures the body of a conditional of `t`'s capture."},
};

constexpr OpEntry kPinsEntries[] = {
    {slot::kPin, "p n", "pin p0 0", "The `n`-th pin, of 6, is of the memory of `p`."},
    {slot::kUnpin, "n", "unpin 0", "Ends the pin; a misuse where it has ended before."},
    {slot::kPinStale, "p", "pin-stale p0", "Misuse: a pin of a freed address."},
    {slot::kGeneration, "p", "generation p0", "Asks which memory is under `p`."},
    {slot::kObserve, "", "observe",
     "The allocator gets an observer of mappings; `register` and `send` need it."},
    {slot::kRegister, "p", "register p0",
     "Registers `p` with a network library, which keeps the registration by address."},
    {slot::kSend, "p", "send p0",
     "Sends `p` through the registration that the library has, or a new one."},
    {slot::kDeregister, "p", "deregister p0", "Ends every registration that touches `p`."},
};

constexpr OpEntry kBlockPoolEntries[] = {
    {slot::kPoolGrow, "bytes", "pool-grow 2MiB", "Adds a segment of that size."},
    {slot::kPoolReserve, "bytes", "pool-reserve 4MiB",
     "Adds a segment that is one unmapped block."},
    {slot::kPoolAlloc, "p bytes", "pool-alloc p0 4KiB", "Takes a block of that size."},
    {slot::kPoolAllocLimited, "p bytes limit", "pool-alloc-limited p0 4KiB 1MiB",
     "The same, of blocks smaller than `limit` only."},
    {slot::kPoolAllocWhole, "p bytes", "pool-alloc-whole p0 4KiB",
     "The same, and the block is not split."},
    {slot::kPoolFree, "p", "pool-free p0", "Frees the block."},
    {slot::kPoolDefer, "p", "pool-defer p0", "Frees the block, which stays pending."},
    {slot::kPoolComplete, "p", "pool-complete p0", "The pending block is free."},
    {slot::kPoolShrink, "n", "pool-shrink 0", "Drops the `n`-th idle segment."},
    {slot::kPoolLift, "n", "pool-lift 0", "The `n`-th free block goes in transfer."},
    {slot::kPoolLower, "n", "pool-lower 0", "The `n`-th block in transfer comes back."},
    {slot::kPoolDivide, "n bytes", "pool-divide 0 4KiB",
     "Cuts the `n`-th block in transfer after so many bytes."},
    {slot::kPoolTakeLifted, "p n", "pool-take-lifted p0 0",
     "The `n`-th block in transfer becomes live."},
    {slot::kPoolUnmap, "n", "pool-unmap 0",
     "The `n`-th block in transfer of reserved segments loses its memory."},
    {slot::kPoolLiftUnmapped, "n", "pool-lift-unmapped 0",
     "The `n`-th unmapped block goes in transfer."},
};

constexpr OpEntry kMachineEntries[] = {
    {slot::kThread, "n", "thread 1", "From now on host thread `n` acts."},
    {slot::kQueueDepth, "n", "queue-depth 4", "A stream holds so many entries; only at the start."},
    {slot::kHardwareQueues, "n", "hardware-queues 2",
     "The streams share so many queues; only at the start."},
    {slot::kBlockingStream, "s d", "blocking-stream s1 d0",
     "Makes a stream that is ordered with the legacy stream."},
    {slot::kLegacyStream, "s d", "legacy-stream s1 d0",
     "Binds `s` to the device's legacy default stream."},
    {slot::kThreadStream, "s d", "thread-stream s1 d0",
     "Binds `s` to the default stream of the acting thread."},
    {slot::kDevIdentify, "s", "dev-identify s1", "Asks the device whom the handle names."},
    {slot::kSameStream, "s t", "same-stream s1 s2", "not-found unless the identities are equal."},
    {slot::kSameHandle, "s t", "same-handle s1 s2", "not-found unless the handles are equal."},
    {slot::kDevEvent, "e d", "dev-event e0 d0", "Creates an event."},
    {slot::kDevEventDestroy, "e", "dev-event-destroy e0", "Destroys it."},
    {slot::kDevQuery, "e", "dev-query e0", "Asks whether the event's work is done."},
    {slot::kDevSyncFor, "e ms", "dev-sync-for e0 10",
     "Waits for it, at most so many milliseconds."},
    {slot::kDevSynchronize, "d", "dev-synchronize d0", "Waits for all work of the device."},
    {slot::kDrainAll, "", "drain-all", "Every stream of every device finishes all its work."},
};

constexpr OpEntry kDeviceMemoryEntries[] = {
    {slot::kDevMalloc, "m d bytes", "dev-malloc m0 d0 2MiB", "Allocates a segment."},
    {slot::kDevFree, "m", "dev-free m0", "Frees it."},
    {slot::kDevFreeInterior, "m bytes", "dev-free-interior m0 512",
     "Misuse: frees its address plus so many bytes."},
    {slot::kDevFreeOn, "m d", "dev-free-on m0 d1", "Frees it through another device."},
    {slot::kDevPinned, "m d bytes", "dev-pinned m0 d0 4KiB",
     "Allocates page-locked memory of the host."},
    {slot::kDevPinnedFree, "m", "dev-pinned-free m0", "Frees it."},
    {slot::kDevReserve, "v d bytes", "dev-reserve v0 d0 4MiB", "Reserves addresses."},
    {slot::kDevRelease, "v bytes", "dev-release v0 4MiB", "Gives them back."},
    {slot::kDevCreate, "h d bytes", "dev-create h0 d0 2MiB", "Creates a page of physical memory."},
    {slot::kDevPageRelease, "h", "dev-page-release h0", "Releases the page's handle."},
    {slot::kDevMap, "v offset bytes h", "dev-map v0 0 2MiB h0",
     "Maps the page at that offset of the reservation."},
    {slot::kDevAccess, "v offset bytes", "dev-access v0 0 2MiB",
     "Gives the device access to the range."},
    {slot::kDevUnmap, "v offset bytes", "dev-unmap v0 0 2MiB", "Unmaps the range."},
};

constexpr OpEntry kDeviceWorkEntries[] = {
    {slot::kDevLaunch, "s m access", "dev-launch s0 m0 rw",
     "A kernel that touches the whole segment."},
    {slot::kDevLaunchAt, "s v offset bytes", "dev-launch-at s0 v0 0 4KiB",
     "A kernel that touches that range."},
    {slot::kDevLaunchEmpty, "s", "dev-launch-empty s0", "A kernel that touches nothing."},
    {slot::kDevLaunchFaulty, "s", "dev-launch-faulty s0",
     "A kernel that loses the device when it runs."},
    {slot::kHostFn, "s n", "host-fn s0 1",
     "A host function that waits for flag `n`; flag 0 is always raised."},
    {slot::kHostFnCall, "s d", "host-fn-call s0 d0",
     "A host function whose body calls the device."},
    {slot::kBodyOutcome, "", "body-outcome", "The outcome of the body of the last `host-fn-call`."},
    {slot::kRaise, "n", "raise 1", "Raises flag `n`."},
    {slot::kMemWrite, "s word value", "mem-write s0 3 1",
     "The stream writes the value to that word of memory."},
    {slot::kMemWait, "s word value", "mem-wait s1 3 1",
     "The stream waits until the word is at least the value."},
    {slot::kMemHost, "word value", "mem-host 3 1", "The host writes the value to the word."},
    {slot::kCollective, "s group members", "collective s0 1 2",
     "A kernel that ends when all members of its group run."},
    {slot::kCaptureState, "s", "capture-state s0",
     "ok if the stream captures nothing, busy if it does, or capture-invalidated."},
    {slot::kCaptureThread, "mode", "capture-thread relaxed",
     "Sets the capture mode of the acting thread."},
    {slot::kGraphLaunch, "s n", "graph-launch s0 1", "Launches the `n`-th graph captured, from 1."},
    {slot::kGraphLaunchRuns, "s n runs", "graph-launch-runs s0 1 2",
     "The same; two bits of `runs` for each body say how often it runs."},
    {slot::kGraphDestroy, "n", "graph-destroy 1", "Destroys the graph."},
};

constexpr OpEntry kExpectationsEntries[] = {
    {slot::kExpect, "code", "expect out-of-memory", "The operation before had that outcome."},
    {slot::kExpectSame, "p q", "expect-same p0 p1", "Both pointers have one address."},
    {slot::kExpectLive, "n", "expect-live 2", "So many allocations are live."},
    {slot::kExpectReserved, "d bytes", "expect-reserved d0 20MiB",
     "The allocator holds so many bytes of the device."},
    {slot::kExpectFree, "d bytes", "expect-free d0 44MiB", "The device has so many bytes free."},
    {slot::kExpectPending, "s n", "expect-pending s0 1",
     "So many entries of the stream are not finished."},
    {slot::kExpectFault, "text", "expect-fault in-flight",
     "The operation before was reported as that fault: see the words below."},
};

constexpr OpChapter kChapters[] = {
    {"Devices, streams and work", "The world around the allocator, and what its callers do there.",
     kWorldEntries},
    {"Calls of the allocator", "Each is one call of `CachingAllocator`, or several.",
     kCallsEntries},
    {"Memory pools and captures",
     "`pool` is one of four memory pools, 0 to 3. Graphs that are captured in one are kept while "
     "it "
     "has uses.",
     kPoolsEntries},
    {"Pins and registrations", "Memory that stays, and a network that keeps what depends on it.",
     kPinsEntries},
    {"The block pool", "Of the subject `pool`: the structure of blocks alone, without a device.",
     kBlockPoolEntries},
    {"The GPU: threads, streams, events",
     "Of the subject `gpu`: the simulated GPU, or a real one, without the allocator. These cases "
     "also "
     "use `device`, `stream`, `destroy`, `record`, `wait`, `sync`, `step`, `drain`, `fail`, `heal` "
     "and captures.",
     kMachineEntries},
    {"The GPU: memory", "The calls of `Device`, each with the driver's rules.",
     kDeviceMemoryEntries},
    {"The GPU: work", "What a program enqueues itself.", kDeviceWorkEntries},
    {"Expectations", "A case fails where one does not hold.", kExpectationsEntries},
};

}  // namespace

std::span<const OpChapter> op_manual() { return kChapters; }

}  // namespace ashlar::spec
