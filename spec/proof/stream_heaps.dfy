// The allocator's steps keep the order (C6, C7): take, give and settle, on every heap and stream.
include "stream_order.dfy"

// A step that changes a heap but not its segments.
lemma heap_keeps(w: World, a: World, h: nat, p: PoolMap, granule: nat)
  requires granule > 0 && safe(w, granule) && h < |w.issued| && shaped(a)
  requires a.issued == w.issued && a.done == w.done && a.history == w.history && a.pools == w.pools[h := p]
  requires valid(p, granule) && p.segments == w.pools[h].segments
  requires |w.owners| <= |a.owners|
  requires forall i :: 0 <= i < |p.blocks| ==> knows(a, h, p.blocks[i])
  requires forall g, i :: 0 <= g < |w.pools| && g != h && 0 <= i < |w.pools[g].blocks| ==> knows(a, g, w.pools[g].blocks[i])
  ensures safe(a, granule)
{
  forall f, g | 0 <= f < |a.pools| && 0 <= g < |a.pools| && f != g
    ensures pools_apart(a.pools[f], a.pools[g])
  {
    assert pools_apart(w.pools[f], w.pools[g]);
  }
  forall k, x | 0 <= k < |a.history| && a.history[k].lo <= x < a.history[k].hi && !complete_use(a.done, a.history[k])
    ensures mapped(a.pools, x)
  {
    assert mapped(w.pools, x);
    var g :| 0 <= g < |w.pools| && has_byte(w.pools[g].segments, x);
    assert has_byte(a.pools[g].segments, x);
  }
}

// What is known about blocks stays true when owners are only added.
lemma known_on(w: World, a: World, g: nat, b: PoolBlock)
  requires knows(w, g, b) && a.done == w.done && a.history == w.history && |w.owners| <= |a.owners|
  requires a.owners[..|w.owners|] == w.owners && (owned(b) ==> b.user < |w.owners|)
  ensures knows(a, g, b)
{
  if owned(b) { assert a.owners[..|w.owners|][b.user] == w.owners[b.user]; }
  knows_is_of(w, a, g, b);
}

// An owned block names an owner, and the owner's stream may use the block at once (the allocator's side of C6). No stamp is
// later than the last enqueued work.
predicate named(w: World)
  requires shaped(w)
{
  forall h, i :: 0 <= h < |w.pools| && 0 <= i < |w.pools[h].blocks| ==> timely(w, h, w.pools[h].blocks[i])
}

predicate timely(w: World, h: nat, b: PoolBlock)
  requires shaped(w)
{
  h < |w.issued| &&
  if owned(b) then b.user < |w.owners| && w.owners[b.user].since <= w.issued[h] &&
    w.owners[b.user].stream < |w.issued| && may_use(w, h, w.owners[b.user].stream, w.owners[b.user].since)
  else b.stamp <= w.issued[h]
}

lemma take_knows(w: World, h: nat, f: nat, t: nat, request: PoolRequest, i: nat, granule: nat)
  requires granule > 0 && safe(w, granule) && named(w) && h < |w.issued| && t < |w.issued| && f < |w.pools[h].blocks|
  requires allowed(w.pools[h], Allocate(request), granule)
  requires take(w, h, f, t, request) != w
  ensures var a := take(w, h, f, t, request);
    i < |a.pools[h].blocks| ==> knows(a, h, a.pools[h].blocks[i]) &&
      timely(a, h, a.pools[h].blocks[i])
{
  var a := take(w, h, f, t, request);
  var blocks := w.pools[h].blocks;
  var mine := request.(user := |w.owners|);
  var into := carve(blocks[f], mine);
  of_splice(blocks, f, 1, into);
  around(w.pools[h], f, granule);
  carve_shape(blocks[f], mine, granule);
  assert knows(w, h, blocks[f]);
  if i < |a.pools[h].blocks| {
    if i < f {
      assert knows(w, h, blocks[i]);
      known_on(w, a, h, blocks[i]);
    } else if i >= f + |into| {
      assert knows(w, h, blocks[i - |into| + 1]);
      known_on(w, a, h, blocks[i - |into| + 1]);
    } else {
      var b := into[i - f];
      forall k | 0 <= k < |a.history| && overlaps(a.history[k], b)
        ensures known(a, h, b, a.history[k])
      {
        assert overlaps(w.history[k], blocks[f]) && known(w, h, blocks[f], w.history[k]);
      }
    }
  }
}

lemma take_keeps(w: World, h: nat, f: nat, t: nat, request: PoolRequest, granule: nat)
  requires granule > 0 && safe(w, granule) && named(w) && h < |w.issued| && t < |w.issued| && f < |w.pools[h].blocks|
  requires allowed(w.pools[h], Allocate(request), granule)
  ensures safe(take(w, h, f, t, request), granule) && named(take(w, h, f, t, request))
{
  var a := take(w, h, f, t, request);
  if a != w {
    forall i | 0 <= i < |a.pools[h].blocks|
      ensures knows(a, h, a.pools[h].blocks[i])
      ensures timely(a, h, a.pools[h].blocks[i])
    {
      take_knows(w, h, f, t, request, i, granule);
    }
    forall g, i | 0 <= g < |w.pools| && g != h && 0 <= i < |w.pools[g].blocks|
      ensures knows(a, g, w.pools[g].blocks[i])
    {
      assert knows(w, g, w.pools[g].blocks[i]);
      known_on(w, a, g, w.pools[g].blocks[i]);
    }
    carve_keeps(w.pools[h], f, request.(user := |w.owners|), granule);
    heap_keeps(w, a, h, a.pools[h], granule);
  }
}

// A block is freed, and every use of it is settled by that stamp; the uses of its neighbours are settled by their stamps.
lemma free_at_knows(w: World, a: World, h: nat, index: nat, stamp: nat, i: nat, granule: nat)
  requires granule > 0 && safe(w, granule) && named(w) && h < |w.issued| && index < |w.pools[h].blocks|
  requires w.pools[h].blocks[index].state != kFree
  requires forall k :: 0 <= k < |w.history| && overlaps(w.history[k], w.pools[h].blocks[index]) ==>
    settled(w.done, h, w.history[k], stamp)
  requires a == w.(pools := w.pools[h := free_at(w.pools[h], index, stamp)]) && stamp <= w.issued[h]
  ensures i < |a.pools[h].blocks| ==> knows(a, h, a.pools[h].blocks[i]) &&
      timely(a, h, a.pools[h].blocks[i])
{
  var m := w.pools[h];
  var freed := m.blocks[index].(state := kFree, stamp := stamp, requested := 0, user := 0);
  var right := index + 1 < |m.blocks| && joins(freed, m.blocks[index + 1]);
  var left := index > 0 && joins(m.blocks[index - 1], freed);
  var first := if left then index - 1 else index;
  var last := if right then index + 2 else index + 1;
  var whole := whole_of(m, index, stamp, left, right);
  around(m, index, granule);
  whole_shape(m, index, stamp, left, right, granule);
  of_splice(m.blocks, first, last - first, [whole]);
  assert a.pools[h].blocks == splice(m.blocks, first, last - first, [whole]);
  if i < |a.pools[h].blocks| {
    if i < first {
      assert knows(w, h, m.blocks[i]);
      known_on(w, a, h, m.blocks[i]);
    } else if i > first {
      var j := i - 1 + (last - first);
      assert knows(w, h, m.blocks[j]);
      known_on(w, a, h, m.blocks[j]);
    } else {
      forall k | 0 <= k < |a.history| && overlaps(a.history[k], whole)
        ensures known(a, h, whole, a.history[k])
      {
        whole_settled(w, h, index, stamp, left, right, granule, w.history[k]);
      }
    }
  }
}

lemma whole_settled(w: World, h: nat, index: nat, stamp: nat, left: bool, right: bool, granule: nat, u: Use)
  requires granule > 0 && shaped(w) && heaps_know(w) && h < |w.issued| && u in w.history && u.lo < u.hi
  requires var m := w.pools[h]; index < |m.blocks| && (left ==> index > 0) && (right ==> index + 1 < |m.blocks|) &&
    (left ==> m.blocks[index - 1].state == kFree && end(m.blocks[index - 1]) == m.blocks[index].address) &&
    (right ==> m.blocks[index + 1].state == kFree && end(m.blocks[index]) == m.blocks[index + 1].address)
  requires overlaps(u, w.pools[h].blocks[index]) ==> settled(w.done, h, u, stamp)
  requires overlaps(u, whole_of(w.pools[h], index, stamp, left, right))
  ensures settled(w.done, h, u, whole_of(w.pools[h], index, stamp, left, right).stamp)
{
  var m := w.pools[h];
  var k :| 0 <= k < |w.history| && w.history[k] == u;
  if left && overlaps(u, m.blocks[index - 1]) {
    assert knows(w, h, m.blocks[index - 1]) && known(w, h, m.blocks[index - 1], w.history[k]);
  } else if right && overlaps(u, m.blocks[index + 1]) {
    assert knows(w, h, m.blocks[index + 1]) && known(w, h, m.blocks[index + 1], w.history[k]);
  } else {
    assert overlaps(u, m.blocks[index]);
  }
}

lemma freed_keeps(w: World, h: nat, index: nat, granule: nat)
  requires granule > 0 && safe(w, granule) && named(w) && h < |w.issued| && index < |w.pools[h].blocks|
  requires w.pools[h].blocks[index].state != kFree
  requires forall k :: 0 <= k < |w.history| && overlaps(w.history[k], w.pools[h].blocks[index]) ==>
    settled(w.done, h, w.history[k], w.issued[h])
  ensures var a := w.(pools := w.pools[h := free_at(w.pools[h], index, w.issued[h])]); safe(a, granule) && named(a)
{
  var a := w.(pools := w.pools[h := free_at(w.pools[h], index, w.issued[h])]);
  forall i | 0 <= i < |a.pools[h].blocks|
    ensures knows(a, h, a.pools[h].blocks[i])
    ensures timely(a, h, a.pools[h].blocks[i])
  {
    free_at_knows(w, a, h, index, w.issued[h], i, granule);
  }
  forall g, i | 0 <= g < |w.pools| && g != h && 0 <= i < |w.pools[g].blocks|
    ensures knows(a, g, w.pools[g].blocks[i])
  {
    assert knows(w, g, w.pools[g].blocks[i]);
    known_on(w, a, g, w.pools[g].blocks[i]);
  }
  free_at_keeps(w.pools[h], index, w.issued[h], granule);
  heap_keeps(w, a, h, a.pools[h], granule);
}

// C7: every use of a block that becomes free was on the heap's own stream, or is complete.
lemma settle_keeps(w: World, h: nat, i: nat, granule: nat)
  requires granule > 0 && safe(w, granule) && named(w) && h < |w.issued| && i < |w.pools[h].blocks|
  ensures safe(settle(w, h, i), granule) && named(settle(w, h, i))
{
  if settle(w, h, i) != w {
    var b := w.pools[h].blocks[i];
    assert knows(w, h, b);
    forall k | 0 <= k < |w.history| && overlaps(w.history[k], b)
      ensures settled(w.done, h, w.history[k], w.issued[h])
    {
      assert known(w, h, b, w.history[k]);
    }
    freed_keeps(w, h, i, granule);
  }
}

lemma give_keeps(w: World, h: nat, i: nat, granule: nat)
  requires granule > 0 && safe(w, granule) && named(w) && h < |w.issued| && i < |w.pools[h].blocks|
  ensures safe(give(w, h, i), granule) && named(give(w, h, i))
{
  var b := w.pools[h].blocks[i];
  if give(w, h, i) != w {
    assert knows(w, h, b);
    var owner := w.owners[b.user];
    if others(owner, h) == {} {
      forall k | 0 <= k < |w.history| && overlaps(w.history[k], b)
        ensures settled(w.done, h, w.history[k], w.issued[h])
      {
        assert known(w, h, b, w.history[k]);
      }
      freed_keeps(w, h, i, granule);
    } else {
      pending_keeps(w, h, i, granule);
    }
  }
}

// The caller must announce uses on third streams only: not on the stream that it named when it allocated.
lemma own_stream_announced(w: World, h: nat, id: nat)
  requires id < |w.owners|
  requires forall k :: 0 <= k < |w.history| && w.history[k].owner == id ==>
    w.history[k].stream in {h, w.owners[id].stream} + w.owners[id].recorded
  ensures announced(w, h, id)
{
}

lemma pending_known(w: World, a: World, h: nat, id: nat, g: nat, b: PoolBlock)
  requires shaped(w) && historic(w) && knows(w, g, b) && id < |w.owners|
  requires a.done == w.done && a.history == w.history && a.owners == w.owners[id := w.owners[id].(until := w.issued)]
  ensures knows(a, g, b)
{
  forall k | 0 <= k < |a.history| && overlaps(a.history[k], b)
    ensures known(a, g, b, a.history[k])
  {
    assert known(w, g, b, w.history[k]);
  }
}

lemma pending_keeps(w: World, h: nat, i: nat, granule: nat)
  requires granule > 0 && safe(w, granule) && named(w) && h < |w.issued| && i < |w.pools[h].blocks|
  requires w.pools[h].blocks[i].state == kLive && w.pools[h].blocks[i].user < |w.owners|
  requires announced(w, h, w.pools[h].blocks[i].user)
  ensures var b := w.pools[h].blocks[i];
    var a := w.(pools := w.pools[h := restate(w.pools[h], i, kPending)],
      owners := w.owners[b.user := w.owners[b.user].(until := w.issued)]);
    safe(a, granule) && named(a)
{
  var m, b := w.pools[h], w.pools[h].blocks[i];
  var after := restate(m, i, kPending);
  var a := w.(pools := w.pools[h := after], owners := w.owners[b.user := w.owners[b.user].(until := w.issued)]);
  of_splice(m.blocks, i, 1, [b.(state := kPending)]);
  around(m, i, granule);
  restate_keeps(m, i, kPending, granule);
  forall j | 0 <= j < |after.blocks|
    ensures knows(a, h, after.blocks[j])
  {
    assert knows(w, h, m.blocks[j]);
    if j != i {
      pending_known(w, a, h, b.user, h, m.blocks[j]);
    } else {
      forall k | 0 <= k < |a.history| && overlaps(a.history[k], after.blocks[i])
        ensures known(a, h, after.blocks[i], a.history[k])
      {
        assert known(w, h, b, w.history[k]);
      }
    }
  }
  forall g, j | 0 <= g < |w.pools| && g != h && 0 <= j < |w.pools[g].blocks|
    ensures knows(a, g, w.pools[g].blocks[j])
  {
    assert knows(w, g, w.pools[g].blocks[j]);
    pending_known(w, a, h, b.user, g, w.pools[g].blocks[j]);
  }
  heap_keeps(w, a, h, after, granule);
}
