// Streams, their memory and their order: several heaps, one for each stream, in one world (C6, C7).
//
// A heap is a pool of block_pool_model.dfy; a free block's stamp is a position on the heap's own stream. The policy is that of
// src/ashlar/cache: a block used only on the heap's stream is free at once; a block used elsewhere is pending until those uses
// are complete; another stream gets a block (lent) or a whole segment (adopted) when the stamp is complete, or when it waits
// for the stamp. `history` is what the detector of spec/gpu sees: every use of bytes, with the work ordered before it. The
// model does not read it when it decides; the proofs are about it.
include "block_pool_model.dfy"

type Clock = seq<nat>  // a position for each stream

// A use of [lo, hi) by the `position`-th work of its stream. `seen`: the work that the machine promises to finish before it.
datatype Use = Use(owner: nat, stream: nat, position: nat, lo: nat, hi: nat, seen: Clock)

datatype Owner = Owner(
  stream: nat,         // the stream that asked for the block
  since: nat,          // the block's stamp when it was handed out
  recorded: set<nat>,  // other streams, announced by record_use
  until: Clock)        // while pending: the work enqueued by the time of the free

datatype World = World(
  issued: Clock,           // works enqueued
  done: Clock,             // works known to be complete
  clocks: seq<Clock>,      // what each stream's next work waits for
  events: seq<Clock>,      // what each recorded event waits for
  pools: seq<PoolMap>,     // each stream's heap
  owners: seq<Owner>,      // by identity: a block's `user` while it is owned
  history: seq<Use>)

predicate method shaped(w: World) {
  |w.done| == |w.issued| && |w.clocks| == |w.issued| && |w.pools| == |w.issued| &&
  (forall t :: 0 <= t < |w.clocks| ==> |w.clocks[t]| == |w.issued|) &&
  (forall e :: 0 <= e < |w.events| ==> |w.events[e]| == |w.issued|) &&
  (forall o :: 0 <= o < |w.owners| ==> |w.owners[o].until| == |w.issued|)
}

function method later(a: nat, b: nat): nat { if a < b then b else a }

function method merged(a: Clock, b: Clock): Clock
  requires |a| == |b|
  ensures |merged(a, b)| == |a| && forall i :: 0 <= i < |a| ==> merged(a, b)[i] == later(a[i], b[i])
{
  if |a| == 0 then [] else merged(a[..|a| - 1], b[..|b| - 1]) + [later(a[|a| - 1], b[|b| - 1])]
}

// The work that the next work of stream t is ordered after: all earlier work on t, what t waited for, and complete work.
function method seen(w: World, t: nat): Clock
  requires shaped(w) && t < |w.issued|
  ensures |seen(w, t)| == |w.issued|
{
  merged(w.clocks[t][t := w.issued[t]], w.done)
}

// The machine. ---------------------------------------------------------------------------------------------------------

function method progress(w: World, s: nat): World
  requires shaped(w) && s < |w.issued|
{
  if w.done[s] < w.issued[s] then w.(done := w.done[s := w.done[s] + 1]) else w
}

function method record(w: World, s: nat): World
  requires shaped(w) && s < |w.issued|
{
  w.(events := w.events + [w.clocks[s][s := w.issued[s]]])
}

function method wait(w: World, t: nat, e: nat): World
  requires shaped(w) && t < |w.issued| && e < |w.events|
{
  w.(clocks := w.clocks[t := merged(w.clocks[t], w.events[e])])
}

// The caller. -----------------------------------------------------------------------------------------------------------

// May stream t touch a block of heap h, when earlier work on h uses it up to position `since`? The caller's side of C6: t may
// if it is the block's own stream, or waited for an event recorded there after the allocation, so after `since`.
predicate method may_use(w: World, h: nat, t: nat, since: nat)
  requires shaped(w) && h < |w.issued| && t < |w.issued|
{
  since <= seen(w, t)[h]
}

function method kernel(w: World, h: nat, i: nat, t: nat): World
  requires shaped(w) && h < |w.issued| && t < |w.issued| && i < |w.pools[h].blocks|
{
  var block := w.pools[h].blocks[i];
  if block.state != kLive || block.user >= |w.owners| || !may_use(w, h, t, w.owners[block.user].since) then w
  else
    var use := Use(block.user, t, w.issued[t] + 1, block.address, end(block), seen(w, t));
    w.(issued := w.issued[t := w.issued[t] + 1], history := w.history + [use])
}

function method announce(w: World, h: nat, i: nat, t: nat): World
  requires shaped(w) && h < |w.issued| && t < |w.issued| && i < |w.pools[h].blocks|
{
  var block := w.pools[h].blocks[i];
  if block.state != kLive || block.user >= |w.owners| then w
  else
    var owner := w.owners[block.user];
    w.(owners := w.owners[block.user := owner.(recorded := owner.recorded + {t})])
}

// The allocator. ---------------------------------------------------------------------------------------------------------

// The other streams whose uses a free must wait for.
function method others(owner: Owner, h: nat): set<nat> { (owner.recorded + {owner.stream}) - {h} }

// The gate: may stream t get a free block of heap h with that stamp? It may if h is its own heap; or if the uses of the block
// are complete (lent); or if t's next work waits for them (lent with reuse = ordered: the allocator let t wait first).
predicate method may_take(w: World, h: nat, t: nat, stamp: nat)
  requires shaped(w) && h < |w.issued| && t < |w.issued|
{
  t == h || stamp <= w.done[h] || stamp <= w.clocks[t][h]
}

// From the stream's own heap the best fit is taken; from another heap any block that fits, since the allocator skips blocks
// whose last use it does not know to be complete.
function method take(w: World, h: nat, i: nat, t: nat, request: PoolRequest): World
  requires shaped(w) && h < |w.issued| && t < |w.issued| && i < |w.pools[h].blocks|
{
  var blocks := w.pools[h].blocks;
  if !fits(blocks[i], request) || (t == h && i != best_fit(blocks, request, |blocks|)) ||
    !may_take(w, h, t, blocks[i].stamp) then w
  else
    var owner := Owner(t, blocks[i].stamp, {}, w.issued);
    var got := splice(blocks, i, 1, carve(blocks[i], request.(user := |w.owners|)));
    w.(pools := w.pools[h := w.pools[h].(blocks := got)], owners := w.owners + [owner])
}

// Is every stream that used the block the heap's own, or announced? The caller's side of C7.
predicate method announced(w: World, h: nat, id: nat)
  requires id < |w.owners|
{
  forall k :: 0 <= k < |w.history| && w.history[k].owner == id ==>
    w.history[k].stream == h || w.history[k].stream in others(w.owners[id], h)
}

function method give(w: World, h: nat, i: nat): World
  requires shaped(w) && h < |w.issued| && i < |w.pools[h].blocks|
{
  var block := w.pools[h].blocks[i];
  if block.state != kLive || block.user >= |w.owners| || !announced(w, h, block.user) then w
  else
    var owner := w.owners[block.user];
    if others(owner, h) == {} then w.(pools := w.pools[h := free_at(w.pools[h], i, w.issued[h])])
    else w.(pools := w.pools[h := restate(w.pools[h], i, kPending)],
            owners := w.owners[block.user := owner.(until := w.issued)])
}

// Are the uses that a pending block waits for complete? The allocator asks the events.
predicate method passed(w: World, h: nat, owner: Owner)
  requires shaped(w) && |owner.until| == |w.issued|
{
  forall s :: s in others(owner, h) ==> s < |w.issued| && owner.until[s] <= w.done[s]
}

function method settle(w: World, h: nat, i: nat): World
  requires shaped(w) && h < |w.issued| && i < |w.pools[h].blocks|
{
  var block := w.pools[h].blocks[i];
  if block.state != kPending || block.user >= |w.owners| || !passed(w, h, w.owners[block.user]) then w
  else w.(pools := w.pools[h := free_at(w.pools[h], i, w.issued[h])])
}

// Segments. ----------------------------------------------------------------------------------------------------------------

predicate method unused(w: World, base: nat, size: nat) {
  forall h :: 0 <= h < |w.pools| ==>
    forall s :: s in w.pools[h].segments ==> base + size <= s.base || s.base + s.size <= base
}

// New memory from the driver, at an unused address.
function method extend(w: World, h: nat, base: nat, size: nat, granule: nat): World
  requires shaped(w) && h < |w.issued| && granule > 0
{
  if !unused(w, base, size) || !allowed(w.pools[h], Grow(base, size, 0), granule) then w
  else w.(pools := w.pools[h := grow(w.pools[h], base, size, 0).after])
}

// Is the segment at `base` idle in heap h, with all work that used it complete?
predicate method rests(w: World, h: nat, base: nat)
  requires shaped(w) && h < |w.issued|
{
  var i := at(w.pools[h].blocks, base, 0);
  i < |w.pools[h].blocks| && is_idle(w.pools[h], w.pools[h].blocks[i]) && w.pools[h].blocks[i].stamp <= w.done[h]
}

// A segment is given back to the driver.
function method give_back(w: World, h: nat, base: nat): World
  requires shaped(w) && h < |w.issued|
{
  if !rests(w, h, base) then w else w.(pools := w.pools[h := shrink(w.pools[h], base).after])
}

// A whole segment moves to another heap.
function method adopt(w: World, h: nat, g: nat, base: nat, size: nat, granule: nat): World
  requires shaped(w) && h < |w.issued| && g < |w.issued| && granule > 0
{
  if !rests(w, h, base) then w else extend(give_back(w, h, base), g, base, size, granule)
}

// The language of this world. ----------------------------------------------------------------------------------------------

datatype WorldOp =
  | Progress(stream: nat)
  | Record(stream: nat)
  | Wait(stream: nat, event: nat)
  | Kernel(heap: nat, block: nat, stream: nat)
  | Announce(heap: nat, block: nat, stream: nat)
  | Take(heap: nat, block: nat, stream: nat, request: PoolRequest)
  | Give(heap: nat, block: nat)
  | Settle(heap: nat, block: nat)
  | Extend(heap: nat, base: nat, size: nat)
  | GiveBack(heap: nat, base: nat)
  | Adopt(heap: nat, to: nat, base: nat, size: nat)

// One step. An op that names something that does not exist changes nothing.
function method step(w: World, op: WorldOp, granule: nat): World
  requires shaped(w) && granule > 0
{
  match op
  case Progress(s) => if s < |w.issued| then progress(w, s) else w
  case Record(s) => if s < |w.issued| then record(w, s) else w
  case Wait(t, e) => if t < |w.issued| && e < |w.events| then wait(w, t, e) else w
  case Kernel(h, i, t) =>
    if h < |w.issued| && t < |w.issued| && i < |w.pools[h].blocks| then kernel(w, h, i, t) else w
  case Announce(h, i, t) =>
    if h < |w.issued| && t < |w.issued| && i < |w.pools[h].blocks| then announce(w, h, i, t) else w
  case Take(h, i, t, request) =>
    if h < |w.issued| && t < |w.issued| && i < |w.pools[h].blocks| && allowed(w.pools[h], Allocate(request), granule)
    then take(w, h, i, t, request) else w
  case Give(h, i) => if h < |w.issued| && i < |w.pools[h].blocks| then give(w, h, i) else w
  case Settle(h, i) => if h < |w.issued| && i < |w.pools[h].blocks| then settle(w, h, i) else w
  case Extend(h, base, size) => if h < |w.issued| then extend(w, h, base, size, granule) else w
  case GiveBack(h, base) => if h < |w.issued| then give_back(w, h, base) else w
  case Adopt(h, g, base, size) =>
    if h < |w.issued| && g < |w.issued| then adopt(w, h, g, base, size, granule) else w
}

function method zeros(n: nat): Clock
  ensures |zeros(n)| == n
{
  if n == 0 then [] else zeros(n - 1) + [0]
}

// A world of n streams, without work and memory.
function method at_rest(n: nat): World
  ensures shaped(at_rest(n))
{
  World(zeros(n), zeros(n), repeated(zeros(n), n), [], empty_pools(n), [], [])
}

function method repeated(clock: Clock, n: nat): seq<Clock>
  ensures |repeated(clock, n)| == n && forall i :: 0 <= i < n ==> repeated(clock, n)[i] == clock
{
  if n == 0 then [] else repeated(clock, n - 1) + [clock]
}

function method empty_pools(n: nat): seq<PoolMap>
  ensures |empty_pools(n)| == n && forall i :: 0 <= i < n ==> empty_pools(n)[i] == PoolMap([], [])
{
  if n == 0 then [] else empty_pools(n - 1) + [PoolMap([], [])]
}
