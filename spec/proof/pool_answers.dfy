// What each answer of the block pool means: C1, C12, C13, C16, best fit, frame, inverse.
include "pool_keeps.dfy"

// C13: a call that fails changes nothing.
lemma atomic(m: PoolMap, op: PoolOp, granule: nat)
  requires granule > 0
  ensures apply(m, op, granule).code != kOk ==> apply(m, op, granule).after == m
{
}

// C12: an allocation fails exactly when no free block fits.
lemma complete_answer(m: PoolMap, request: PoolRequest)
  ensures allocate(m, request).code in {kOk, kOutOfMemory}
  ensures allocate(m, request).code == kOutOfMemory <==> forall k :: 0 <= k < |m.blocks| ==> !fits(m.blocks[k], request)
{
  var i := best_fit(m.blocks, request, |m.blocks|);
  if i < |m.blocks| { assert fits(m.blocks[i], request); }
}

// Is one block before the other in best-fit order: smaller, or as large and lower?
predicate better(a: PoolBlock, b: PoolBlock) { a.size < b.size || (a.size == b.size && a.address < b.address) }

// Best fit: of the free blocks that fit, the smallest is cut; among equal ones, the lowest.
lemma best_answer(m: PoolMap, request: PoolRequest)
  requires tiling(m)
  ensures var i := best_fit(m.blocks, request, |m.blocks|);
    i < |m.blocks| ==> fits(m.blocks[i], request) && allocate(m, request).value == m.blocks[i].address &&
    forall k :: 0 <= k < |m.blocks| && k != i && fits(m.blocks[k], request) ==> better(m.blocks[i], m.blocks[k])
{
  disjoint_holds(m);
}

// There is only one such block: the policy is a function.
lemma best_is_unique(m: PoolMap, request: PoolRequest, i: nat, j: nat)
  requires i < |m.blocks| && j < |m.blocks| && fits(m.blocks[i], request) && fits(m.blocks[j], request)
  requires forall k :: 0 <= k < |m.blocks| && k != i && fits(m.blocks[k], request) ==> better(m.blocks[i], m.blocks[k])
  requires forall k :: 0 <= k < |m.blocks| && k != j && fits(m.blocks[k], request) ==> better(m.blocks[j], m.blocks[k])
  ensures i == j
{
}

// C1, C2: the block handed out is live, as large as asked for, on the granule, in one segment, and all of it was free before.
lemma usable_answer(m: PoolMap, request: PoolRequest, granule: nat)
  requires granule > 0 && valid(m, granule) && allowed(m, Allocate(request), granule)
  requires allocate(m, request).code == kOk
  ensures var a := allocate(m, request); var i := best_fit(m.blocks, request, |m.blocks|);
    i < |m.blocks| && m.blocks[i].state == kFree && i < |a.after.blocks| && var got := a.after.blocks[i];
    got.address == a.value && at(a.after.blocks, a.value, 0) == i && got.state == kLive &&
    request.requested <= request.size <= got.size && got.requested == request.requested && got.user == request.user &&
    aligned(got, granule) && inside(a.after.segments, got) &&
    m.blocks[i].address == got.address && end(got) <= end(m.blocks[i])
{
  var a := allocate(m, request);
  var i := best_fit(m.blocks, request, |m.blocks|);
  allocate_keeps(m, request, granule);
  around(m, i, granule);
  carve_shape(m.blocks[i], request, granule);
  of_splice(m.blocks, i, 1, carve(m.blocks[i], request));
  reveal valid();
  assert aligned(a.after.blocks[i], granule);
  at_finds(a.after, i);
  inside_holds(a.after);
}

// Frame: an owned block other than the operation's own stays as it is.
predicate stays(m: PoolMap, after: PoolMap, address: nat) {
  forall k :: 0 <= k < |m.blocks| && m.blocks[k].state != kFree && m.blocks[k].address != address ==>
    m.blocks[k] in after.blocks
}

lemma allocate_frame(m: PoolMap, request: PoolRequest)
  ensures var a := allocate(m, request);
    forall k :: 0 <= k < |m.blocks| && m.blocks[k].state != kFree ==> m.blocks[k] in a.after.blocks
{
  var i := best_fit(m.blocks, request, |m.blocks|);
  if i < |m.blocks| {
    forall k | 0 <= k < |m.blocks| && m.blocks[k].state != kFree
      ensures m.blocks[k] in allocate(m, request).after.blocks
    {
      splice_stays(m.blocks, i, 1, carve(m.blocks[i], request), k);
    }
  }
}

lemma free_at_frame(m: PoolMap, index: nat, stamp: nat)
  requires index < |m.blocks|
  ensures stays(m, free_at(m, index, stamp), m.blocks[index].address)
{
  var freed := m.blocks[index].(state := kFree, stamp := stamp, requested := 0, user := 0);
  var right := index + 1 < |m.blocks| && joins(freed, m.blocks[index + 1]);
  var left := index > 0 && joins(m.blocks[index - 1], freed);
  var first := if left then index - 1 else index;
  var last := if right then index + 2 else index + 1;
  forall k | 0 <= k < |m.blocks| && m.blocks[k].state != kFree && m.blocks[k].address != m.blocks[index].address
    ensures m.blocks[k] in free_at(m, index, stamp).blocks
  {
    splice_stays(m.blocks, first, last - first, [whole_of(m, index, stamp, left, right)], k);
  }
}

lemma restate_frame(m: PoolMap, index: nat, state: PoolState)
  requires index < |m.blocks|
  ensures stays(m, restate(m, index, state), m.blocks[index].address)
{
  forall k | 0 <= k < |m.blocks| && m.blocks[k].state != kFree && m.blocks[k].address != m.blocks[index].address
    ensures m.blocks[k] in restate(m, index, state).blocks
  {
    splice_stays(m.blocks, index, 1, [m.blocks[index].(state := state)], k);
  }
}

// C13, C16: which blocks can be freed, and what each refusal means.
lemma release_answer(m: PoolMap, i: nat, stamp: nat)
  requires tiling(m) && i < |m.blocks|
  ensures var a := release(m, m.blocks[i].address, stamp);
    match m.blocks[i].state
    case kLive => a.code == kOk && a.after == free_at(m, i, stamp)
    case kPending => a.code == kDoubleFree
    case kFree => a.code == kUnknownPointer
    case kInTransfer => a.code == kUnknownPointer
{
  at_finds(m, i);
}

lemma unknown_answer(m: PoolMap, address: nat, stamp: nat)
  requires forall i :: 0 <= i < |m.blocks| && owned(m.blocks[i]) ==> m.blocks[i].address != address
  ensures release(m, address, stamp) == Answer(kUnknownPointer, 0, m)
  ensures defer(m, address) == Answer(kUnknownPointer, 0, m)
  ensures complete(m, address, stamp) == Answer(kUnknownPointer, 0, m)
{
}

// Inverse: releasing an allocation with the stamp its block had restores the state before it.
lemma inverse(m: PoolMap, request: PoolRequest, granule: nat)
  requires granule > 0 && valid(m, granule) && allowed(m, Allocate(request), granule)
  requires allocate(m, request).code == kOk
  ensures var i := best_fit(m.blocks, request, |m.blocks|);
    var a := allocate(m, request);
    i < |m.blocks| && release(a.after, a.value, m.blocks[i].stamp) == Answer(kOk, 0, m)
{
  var i := best_fit(m.blocks, request, |m.blocks|);
  usable_answer(m, request, granule);
  around(m, i, granule);
  carve_shape(m.blocks[i], request, granule);
  carve_joins(m.blocks[i], request);
  undo(m, i, carve(m.blocks[i], request));
}

lemma carve_joins(found: PoolBlock, request: PoolRequest)
  requires fits(found, request) && plain(found)
  ensures var into := carve(found, request);
    var freed := into[0].(state := kFree, stamp := found.stamp, requested := 0, user := 0);
    (|into| == 1 ==> freed == found) && (|into| == 2 ==> joins(freed, into[1]) && join(freed, into[1]) == found)
{
}

// One block was cut into `into`; freeing the first block of `into` restores that block.
lemma undo(m: PoolMap, i: nat, into: seq<PoolBlock>)
  requires i < |m.blocks| && 1 <= |into| <= 2
  requires var freed := into[0].(state := kFree, stamp := m.blocks[i].stamp, requested := 0, user := 0);
    (|into| == 1 ==> freed == m.blocks[i]) &&
    (|into| == 2 ==> joins(freed, into[1]) && join(freed, into[1]) == m.blocks[i])
  requires m.blocks[i].state == kFree && into[0].segment == m.blocks[i].segment
  requires i > 0 ==> !joins(m.blocks[i - 1], m.blocks[i])
  requires i + 1 < |m.blocks| ==> !joins(m.blocks[i], m.blocks[i + 1])
  ensures var cut := m.(blocks := splice(m.blocks, i, 1, into));
    i < |cut.blocks| && free_at(cut, i, m.blocks[i].stamp) == m
{
  var cut := m.(blocks := splice(m.blocks, i, 1, into));
  of_splice(m.blocks, i, 1, into);
  assert splice(cut.blocks, i, |into|, [m.blocks[i]]) == m.blocks;
  if |into| == 1 {
    assert i + 1 < |m.blocks| ==> cut.blocks[i + 1] == m.blocks[i + 1];
    assert free_at(cut, i, m.blocks[i].stamp).blocks == splice(cut.blocks, i, 1, [m.blocks[i]]);
  } else {
    assert cut.blocks[i + 1] == into[1];
    assert free_at(cut, i, m.blocks[i].stamp).blocks == splice(cut.blocks, i, 2, [m.blocks[i]]);
  }
}
