// The theorem of streams: after anything the caller, the machine and the allocator do, in any order, every use is ordered
// after every earlier use of its bytes by another owner.
include "stream_heaps.dfy"

// Which segments a heap has after it grew or shrank.
lemma grow_segments(m: PoolMap, base: nat, size: nat)
  ensures var after := grow(m, base, size, 0).after;
    forall s :: s in after.segments <==> s in m.segments || s == PoolSegment(base, size)
{
  of_insert(m.segments, first_segment_from(m.segments, base, 0), PoolSegment(base, size));
}

lemma shrink_segments(m: PoolMap, base: nat)
  requires tiling(m)
  ensures var after := shrink(m, base).after; var i := at(m.blocks, base, 0);
    (forall s :: s in after.segments ==> s in m.segments) &&
    (i < |m.blocks| && is_idle(m, m.blocks[i]) ==>
      forall s :: s in m.segments && s != PoolSegment(base, m.blocks[i].size) ==> s in after.segments)
{
  var i := at(m.blocks, base, 0);
  if i < |m.blocks| && is_idle(m, m.blocks[i]) {
    idle_segment(m, i);
    var s := first_segment_from(m.segments, base, 0);
    assert m.segments == m.segments[..s] + [m.segments[s]] + m.segments[s + 1..];
  }
}

lemma extend_apart(w: World, h: nat, base: nat, size: nat)
  requires shaped(w) && h < |w.issued| && heaps_apart(w.pools) && unused(w, base, size)
  ensures heaps_apart(w.pools[h := grow(w.pools[h], base, size, 0).after])
{
  var pools := w.pools[h := grow(w.pools[h], base, size, 0).after];
  grow_segments(w.pools[h], base, size);
  forall f, g | 0 <= f < |pools| && 0 <= g < |pools| && f != g
    ensures pools_apart(pools[f], pools[g])
  {
    assert pools_apart(w.pools[f], w.pools[g]);
  }
}

// Bytes in no heap are at rest: every use of them is complete.
lemma unused_at_rest(w: World, base: nat, size: nat, u: Use, b: PoolBlock)
  requires shaped(w) && backed(w) && historic(w) && unused(w, base, size) && u in w.history
  requires b.address == base && b.size == size && overlaps(u, b) && size > 0
  ensures complete_use(w.done, u)
{
  if !complete_use(w.done, u) {
    var k :| 0 <= k < |w.history| && w.history[k] == u;
    var x := if u.lo < base then base else u.lo;
    assert w.history[k].lo <= x < w.history[k].hi && mapped(w.pools, x);
    var g :| 0 <= g < |w.pools| && has_byte(w.pools[g].segments, x);
    var s :| s in w.pools[g].segments && s.base <= x < s.base + s.size;
  }
}

lemma extend_keeps(w: World, h: nat, base: nat, size: nat, granule: nat)
  requires granule > 0 && safe(w, granule) && named(w) && h < |w.issued|
  ensures safe(extend(w, h, base, size, granule), granule) && named(extend(w, h, base, size, granule))
{
  var a := extend(w, h, base, size, granule);
  if unused(w, base, size) && allowed(w.pools[h], Grow(base, size, 0), granule) {
    var m := w.pools[h];
    var f := first_block_from(m.blocks, base, 0);
    var whole := PoolBlock(base, size, 0, base, 0, 0, kFree);
    grow_keeps(m, base, size, 0, granule);
    grow_segments(m, base, size);
    extend_apart(w, h, base, size);
    of_splice(m.blocks, f, 0, [whole]);
    forall g, i | 0 <= g < |a.pools| && 0 <= i < |a.pools[g].blocks|
      ensures knows(a, g, a.pools[g].blocks[i])
    {
      if g == h && i == f {
        forall k | 0 <= k < |a.history| && overlaps(a.history[k], whole)
          ensures known(a, h, whole, a.history[k])
        {
          unused_at_rest(w, base, size, w.history[k], whole);
        }
      } else {
        var j := if g == h && i > f then i - 1 else i;
        assert a.pools[g].blocks[i] == w.pools[g].blocks[j];
        assert knows(w, g, w.pools[g].blocks[j]);
        knows_is_of(w, a, g, w.pools[g].blocks[j]);
      }
    }
    still_backed(w, a, h);
  }
}

// After more memory is added, backed bytes are still backed.
lemma still_backed(w: World, a: World, h: nat)
  requires shaped(w) && backed(w) && h < |w.pools| && |a.pools| == |w.pools|
  requires a.history == w.history && a.done == w.done
  requires forall g :: 0 <= g < |w.pools| && g != h ==> a.pools[g] == w.pools[g]
  requires forall s :: s in w.pools[h].segments ==> s in a.pools[h].segments
  ensures backed(a)
{
  forall k, x | 0 <= k < |a.history| && a.history[k].lo <= x < a.history[k].hi && !complete_use(a.done, a.history[k])
    ensures mapped(a.pools, x)
  {
    assert mapped(w.pools, x);
    var g :| 0 <= g < |w.pools| && has_byte(w.pools[g].segments, x);
    var s :| s in w.pools[g].segments && s.base <= x < s.base + s.size;
    assert s in a.pools[g].segments && has_byte(a.pools[g].segments, x);
  }
}

lemma rests_complete(w: World, h: nat, base: nat, k: nat)
  requires shaped(w) && heaps_know(w) && h < |w.issued| && rests(w, h, base) && k < |w.history|
  requires overlaps(w.history[k], w.pools[h].blocks[at(w.pools[h].blocks, base, 0)])
  ensures complete_use(w.done, w.history[k])
{
  var b := w.pools[h].blocks[at(w.pools[h].blocks, base, 0)];
  assert knows(w, h, b) && known(w, h, b, w.history[k]);
}

// A segment that is given back is at rest (the uses of its only block are complete), so only bytes at rest lose their memory.
lemma less_backed(w: World, h: nat, base: nat, granule: nat)
  requires granule > 0 && safe(w, granule) && h < |w.issued| && rests(w, h, base)
  ensures backed(give_back(w, h, base))
{
  var a := give_back(w, h, base);
  var m := w.pools[h];
  var i := at(m.blocks, base, 0);
  reveal valid();
  shrink_segments(m, base);
  forall k, x | 0 <= k < |a.history| && a.history[k].lo <= x < a.history[k].hi && !complete_use(a.done, a.history[k])
    ensures mapped(a.pools, x)
  {
    assert mapped(w.pools, x);
    var g :| 0 <= g < |w.pools| && has_byte(w.pools[g].segments, x);
    var s :| s in w.pools[g].segments && s.base <= x < s.base + s.size;
    if g == h && s == PoolSegment(base, m.blocks[i].size) {
      rests_complete(w, h, base, k);
    } else {
      assert s in a.pools[g].segments && has_byte(a.pools[g].segments, x);
    }
  }
}

lemma give_back_keeps(w: World, h: nat, base: nat, granule: nat)
  requires granule > 0 && safe(w, granule) && named(w) && h < |w.issued|
  ensures safe(give_back(w, h, base), granule) && named(give_back(w, h, base))
{
  var a := give_back(w, h, base);
  if rests(w, h, base) {
    var m := w.pools[h];
    var f := at(m.blocks, base, 0);
    shrink_keeps(m, base, granule);
    less_backed(w, h, base, granule);
    assert tiling(m) by { reveal valid(); }
    shrink_segments(m, base);
    idle_segment(m, f);
    of_splice(m.blocks, f, 1, []);
    forall e, g | 0 <= e < |a.pools| && 0 <= g < |a.pools| && e != g
      ensures pools_apart(a.pools[e], a.pools[g])
    {
      assert pools_apart(w.pools[e], w.pools[g]);
    }
    forall g, i | 0 <= g < |a.pools| && 0 <= i < |a.pools[g].blocks|
      ensures knows(a, g, a.pools[g].blocks[i])
    {
      var j := if g == h && i >= f then i + 1 else i;
      assert a.pools[g].blocks[i] == w.pools[g].blocks[j];
      assert knows(w, g, w.pools[g].blocks[j]);
      knows_is_of(w, a, g, w.pools[g].blocks[j]);
    }
  }
}

lemma step_keeps(w: World, op: WorldOp, granule: nat)
  requires granule > 0 && safe(w, granule) && named(w)
  ensures safe(step(w, op, granule), granule) && named(step(w, op, granule))
{
  if step(w, op, granule) != w {
    match op
    case Progress(s) => progress_keeps(w, s, granule);
    case Record(s) => record_keeps(w, s, granule);
    case Wait(t, e) => wait_keeps(w, t, e, granule);
    case Kernel(h, i, t) => kernel_keeps(w, h, i, t, granule);
    case Announce(h, i, t) => announce_keeps(w, h, i, t, granule);
    case Take(h, i, t, request) => take_keeps(w, h, i, t, request, granule);
    case Give(h, i) => give_keeps(w, h, i, granule);
    case Settle(h, i) => settle_keeps(w, h, i, granule);
    case Extend(h, base, size) => extend_keeps(w, h, base, size, granule);
    case GiveBack(h, base) => give_back_keeps(w, h, base, granule);
    case Adopt(h, g, base, size) =>
      give_back_keeps(w, h, base, granule);
      extend_keeps(give_back(w, h, base), g, base, size, granule);
  }
}

lemma at_rest_safe(n: nat, granule: nat)
  requires granule > 0
  ensures safe(at_rest(n), granule) && named(at_rest(n))
{
  reveal valid();
}

// The state after all these operations; it is a well-formed world.
function world_after(n: nat, ops: seq<WorldOp>, granule: nat): (w: World)
  requires granule > 0
  ensures safe(w, granule) && named(w)
{
  if |ops| == 0 then
    at_rest_safe(n, granule);
    at_rest(n)
  else
    var before := world_after(n, ops[..|ops| - 1], granule);
    step_keeps(before, ops[|ops| - 1], granule);
    step(before, ops[|ops| - 1], granule)
}

// C6 and C7, over every run, and C2 of all heaps together.
lemma order_holds(n: nat, ops: seq<WorldOp>, granule: nat)
  requires granule > 0
  ensures in_order(world_after(n, ops, granule).history)
{
}

lemma heaps_disjoint(n: nat, ops: seq<WorldOp>, granule: nat, g: nat, i: nat, h: nat, j: nat)
  requires granule > 0
  requires var pools := world_after(n, ops, granule).pools;
    g < |pools| && h < |pools| && i < |pools[g].blocks| && j < |pools[h].blocks| && (g != h || i != j)
  ensures var pools := world_after(n, ops, granule).pools;
    end(pools[g].blocks[i]) <= pools[h].blocks[j].address || end(pools[h].blocks[j]) <= pools[g].blocks[i].address
{
  var w := world_after(n, ops, granule);
  if w.pools[g].blocks[i].address < end(w.pools[h].blocks[j]) && w.pools[h].blocks[j].address < end(w.pools[g].blocks[i]) {
    blocks_apart(w, g, i, h, j, granule);
  }
}

// The allocator's side of C6: the stream that asked for a block may use it at once. And the caller's rule suffices: a stream
// that waited for an event recorded on the block's own stream after the allocation may use it too.
lemma caller_may_use(w: World, h: nat, i: nat, t: nat)
  requires shaped(w) && named(w) && h < |w.issued| && t < |w.issued| && i < |w.pools[h].blocks|
  requires w.pools[h].blocks[i].state == kLive
  ensures var owner := w.owners[w.pools[h].blocks[i].user]; var since := owner.since;
    owner.stream < |w.issued| && may_use(w, h, owner.stream, since) && may_use(w, h, h, since) && may_use(wait(record(w, h), t, |w.events|), h, t, since)
{
  assert timely(w, h, w.pools[h].blocks[i]);
}
