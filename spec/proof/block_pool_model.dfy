// The block pool's model. It mirrors spec/model/pool_subject.h and block_pool_model.cc: the same names in the same order.
//
// A C++ loop is a recursive function over its index, an early return is an `else`, and the state is a value: an operation
// takes a map and returns an Answer, whose `after` is the state after it. Numbers are unbounded here; README.md says what
// bounds them in C++. Everything below is also compiled, and run beside the C++ model (tie/).

datatype PoolState = kFree | kLive | kPending | kInTransfer

datatype PoolBlock = PoolBlock(
  address: nat,
  size: nat,
  requested: nat,   // zero unless live or pending
  segment: nat,     // its segment's base
  stamp: nat,       // zero unless free or in transfer
  user: nat,        // zero unless live or pending
  state: PoolState)

datatype PoolSegment = PoolSegment(base: nat, size: nat)

// Everything a pool holds, sorted by address.
datatype PoolMap = PoolMap(segments: seq<PoolSegment>, blocks: seq<PoolBlock>)

datatype PoolRequest = PoolRequest(size: nat, size_end: nat, split: bool, requested: nat, user: nat)

datatype Code = kOk | kOutOfMemory | kUnknownPointer | kDoubleFree | kBusy | kNotFound | kInvalidArgument

// The Status or Result that C++ returns, and the state after the call.
datatype Answer = Answer(code: Code, value: nat, after: PoolMap)

function method end(block: PoolBlock): nat { block.address + block.size }

function method owned(block: PoolBlock): bool { block.state == kLive || block.state == kPending }

// The two blocks as one free block; its stamp is the later one.
function method join(left: PoolBlock, right: PoolBlock): PoolBlock {
  left.(size := left.size + right.size, stamp := if left.stamp < right.stamp then right.stamp else left.stamp)
}

// The operations. ----------------------------------------------------------------------------------------------------

function method grow(m: PoolMap, base: nat, size: nat, stamp: nat): Answer {
  var i := first_block_from(m.blocks, base, 0);
  var whole := PoolBlock(base, size, 0, base, stamp, 0, kFree);
  var s := first_segment_from(m.segments, base, 0);
  Answer(kOk, 0, PoolMap(m.segments[..s] + [PoolSegment(base, size)] + m.segments[s..], splice(m.blocks, i, 0, [whole])))
}

function method shrink(m: PoolMap, base: nat): Answer {
  var i := at(m.blocks, base, 0);
  if i == |m.blocks| || !is_idle(m, m.blocks[i]) then Answer(kBusy, 0, m)
  else
    var s := first_segment_from(m.segments, base, 0);
    if s == |m.segments| then Answer(kBusy, 0, m)  // never happens: an idle block has a segment
    else Answer(kOk, 0, PoolMap(m.segments[..s] + m.segments[s + 1..], splice(m.blocks, i, 1, [])))
}

function method allocate(m: PoolMap, request: PoolRequest): Answer {
  var i := best_fit(m.blocks, request, |m.blocks|);
  if i == |m.blocks| then Answer(kOutOfMemory, 0, m)
  else Answer(kOk, m.blocks[i].address, m.(blocks := splice(m.blocks, i, 1, carve(m.blocks[i], request))))
}

// The blocks that replace the found block: itself, or its front and the rest.
function method carve(found: PoolBlock, request: PoolRequest): seq<PoolBlock>
  requires request.size <= found.size
{
  var front := found.(requested := request.requested, user := request.user, stamp := 0, state := kLive);
  if !request.split || found.size == request.size then [front]
  else
    var cut := front.(size := request.size);
    [cut, found.(address := end(cut), size := found.size - request.size)]
}

function method release(m: PoolMap, address: nat, stamp: nat): Answer {
  var i := at(m.blocks, address, 0);
  if i == |m.blocks| || !owned(m.blocks[i]) then Answer(kUnknownPointer, 0, m)
  else if m.blocks[i].state == kPending then Answer(kDoubleFree, 0, m)
  else Answer(kOk, 0, free_at(m, i, stamp))
}

function method defer(m: PoolMap, address: nat): Answer {
  var i := at(m.blocks, address, 0);
  if i == |m.blocks| || !owned(m.blocks[i]) then Answer(kUnknownPointer, 0, m)
  else if m.blocks[i].state == kPending then Answer(kDoubleFree, 0, m)
  else Answer(kOk, 0, restate(m, i, kPending))
}

function method complete(m: PoolMap, address: nat, stamp: nat): Answer {
  var i := at(m.blocks, address, 0);
  if i == |m.blocks| || !owned(m.blocks[i]) then Answer(kUnknownPointer, 0, m)
  else if m.blocks[i].state == kLive then Answer(kBusy, 0, m)
  else Answer(kOk, 0, free_at(m, i, stamp))
}

function method lift(m: PoolMap, address: nat): Answer {
  var i := at(m.blocks, address, 0);
  if i == |m.blocks| || m.blocks[i].state != kFree then Answer(kNotFound, 0, m)
  else Answer(kOk, 0, restate(m, i, kInTransfer))
}

function method lower(m: PoolMap, address: nat, stamp: nat): Answer {
  var i := at(m.blocks, address, 0);
  if i == |m.blocks| || m.blocks[i].state != kInTransfer then Answer(kNotFound, 0, m)
  else Answer(kOk, 0, free_at(m, i, stamp))
}

// The searches. Where C++ returns kNowhere, these return the number of blocks. ---------------------------------------------

// The first block from index i on that starts at that address.
function method at(blocks: seq<PoolBlock>, address: nat, i: nat): (r: nat)
  requires i <= |blocks|
  ensures i <= r <= |blocks|
  ensures r < |blocks| ==> blocks[r].address == address
  ensures forall k :: i <= k < r ==> blocks[k].address != address
  decreases |blocks| - i
{
  if i == |blocks| || blocks[i].address == address then i else at(blocks, address, i + 1)
}

function method fits(block: PoolBlock, request: PoolRequest): bool {
  block.state == kFree && request.size <= block.size < request.size_end
}

// The block that best fit chooses among the first n: the loop's variable `best` after n steps.
function method best_fit(blocks: seq<PoolBlock>, request: PoolRequest, n: nat): (r: nat)
  requires n <= |blocks|
  ensures r == |blocks| || (r < n && fits(blocks[r], request))
  ensures r == |blocks| ==> forall k :: 0 <= k < n ==> !fits(blocks[k], request)
  ensures forall k :: 0 <= k < n && r < n && fits(blocks[k], request) ==> blocks[r].size <= blocks[k].size
  ensures forall k :: 0 <= k < r && r < n && fits(blocks[k], request) ==> blocks[r].size < blocks[k].size
  decreases n
{
  if n == 0 then |blocks|
  else
    var best := best_fit(blocks, request, n - 1);
    if !fits(blocks[n - 1], request) then best
    else if best == |blocks| || blocks[n - 1].size < blocks[best].size then n - 1  // the first block of a size is the lowest
    else best
}

// C++ finds the segment by its base, which is unique.
function method is_idle(m: PoolMap, block: PoolBlock): bool {
  block.state == kFree && block.address == block.segment && PoolSegment(block.segment, block.size) in m.segments
}

function method joins(left: PoolBlock, right: PoolBlock): bool {
  left.state == kFree && right.state == kFree && left.segment == right.segment
}

// Replaces `count` blocks, from index `first` on, by `into`.
function method splice(blocks: seq<PoolBlock>, first: nat, count: nat, into: seq<PoolBlock>): seq<PoolBlock>
  requires first + count <= |blocks|
{
  blocks[..first] + into + blocks[first + count..]
}

// The block becomes free with that stamp and joins its free neighbours.
function method free_at(m: PoolMap, index: nat, stamp: nat): PoolMap
  requires index < |m.blocks|
{
  var freed := m.blocks[index].(state := kFree, stamp := stamp, requested := 0, user := 0);
  var right := index + 1 < |m.blocks| && joins(freed, m.blocks[index + 1]);
  var left := index > 0 && joins(m.blocks[index - 1], freed);
  var part := if right then join(freed, m.blocks[index + 1]) else freed;
  var whole := if left then join(m.blocks[index - 1], part) else part;
  var first := if left then index - 1 else index;
  var last := if right then index + 2 else index + 1;
  m.(blocks := splice(m.blocks, first, last - first, [whole]))
}

// The same blocks, one of them with another state.
function method restate(m: PoolMap, index: nat, state: PoolState): PoolMap
  requires index < |m.blocks|
{
  m.(blocks := splice(m.blocks, index, 1, [m.blocks[index].(state := state)]))
}

function method first_block_from(blocks: seq<PoolBlock>, base: nat, i: nat): (r: nat)
  requires i <= |blocks|
  ensures i <= r <= |blocks|
  ensures forall k :: i <= k < r ==> blocks[k].address < base
  ensures r < |blocks| ==> base <= blocks[r].address
  decreases |blocks| - i
{
  if i == |blocks| || base <= blocks[i].address then i else first_block_from(blocks, base, i + 1)
}

function method first_segment_from(segments: seq<PoolSegment>, base: nat, s: nat): (r: nat)
  requires s <= |segments|
  ensures s <= r <= |segments|
  ensures forall k :: s <= k < r ==> segments[k].base < base
  ensures r < |segments| ==> base <= segments[r].base
  decreases |segments| - s
{
  if s == |segments| || base <= segments[s].base then s else first_segment_from(segments, base, s + 1)
}

// The language of operations. ------------------------------------------------------------------------------------------

datatype PoolOp =
  | Grow(base: nat, size: nat, stamp: nat)
  | Shrink(base: nat)
  | Allocate(request: PoolRequest)
  | Release(address: nat, stamp: nat)
  | Defer(address: nat)
  | Complete(address: nat, stamp: nat)
  | Lift(address: nat)
  | Lower(address: nat, stamp: nat)

// Opaque, so that z3 sees products and remainders only where a proof is about them (arithmetic.dfy).
predicate method {:opaque} on_granule(n: nat, granule: nat)
  requires granule > 0
{
  n % granule == 0
}

// What the interface REQUIRES of its caller, which owns the granule and the address space.
predicate method allowed(m: PoolMap, op: PoolOp, granule: nat)
  requires granule > 0
{
  if op.Grow? then
    op.size > 0 && on_granule(op.size, granule) && on_granule(op.base, granule) &&
    forall s :: s in m.segments ==> op.base + op.size <= s.base || s.base + s.size <= op.base
  else if op.Allocate? then
    op.request.requested <= op.request.size && op.request.size > 0 && on_granule(op.request.size, granule)
  else true
}

function method apply(m: PoolMap, op: PoolOp, granule: nat): Answer
  requires granule > 0
{
  if !allowed(m, op, granule) then Answer(kInvalidArgument, 0, m)
  else match op
    case Grow(base, size, stamp) => grow(m, base, size, stamp)
    case Shrink(base) => shrink(m, base)
    case Allocate(request) => allocate(m, request)
    case Release(address, stamp) => release(m, address, stamp)
    case Defer(address) => defer(m, address)
    case Complete(address, stamp) => complete(m, address, stamp)
    case Lift(address) => lift(m, address)
    case Lower(address, stamp) => lower(m, address, stamp)
}
