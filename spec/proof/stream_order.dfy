// C6, C7: every use of bytes is ordered after every earlier use of them by another owner.
include "stream_model.dfy"
include "tiling.dfy"
include "pool_runs.dfy"

predicate overlaps(u: Use, b: PoolBlock) { u.lo < end(b) && b.address < u.hi }

predicate overlap(u: Use, v: Use) { u.lo < v.hi && v.lo < u.hi }

// Is the use complete, or was it enqueued on the heap's own stream by that position?
predicate settled(done: Clock, h: nat, u: Use, stamp: nat) {
  u.stream < |done| && (u.position <= done[u.stream] || (u.stream == h && u.position <= stamp))
}

// What holds between a block and a use of its bytes.
predicate known(w: World, h: nat, b: PoolBlock, u: Use) {
  if !owned(b) then settled(w.done, h, u, b.stamp)
  else b.user < |w.owners| &&
    (u.owner != b.user ==> settled(w.done, h, u, w.owners[b.user].since)) &&
    (u.owner == b.user && b.state == kPending ==> waited(w, h, w.owners[b.user], u))
}

predicate waited(w: World, h: nat, owner: Owner, u: Use) {
  u.stream == h || (u.stream in others(owner, h) && u.stream < |owner.until| && u.position <= owner.until[u.stream])
}

predicate knows(w: World, h: nat, b: PoolBlock) {
  forall k :: 0 <= k < |w.history| && overlaps(w.history[k], b) ==> known(w, h, b, w.history[k])
}

predicate heaps_know(w: World) {
  forall h, i :: 0 <= h < |w.pools| && 0 <= i < |w.pools[h].blocks| ==> knows(w, h, w.pools[h].blocks[i])
}

// Every use in the history is of an enqueued work and an existing owner.
predicate historic(w: World) {
  forall k :: 0 <= k < |w.history| ==> w.history[k].stream < |w.issued| && w.history[k].owner < |w.owners| &&
    w.history[k].position <= w.issued[w.history[k].stream] && |w.history[k].seen| == |w.issued| &&
    w.history[k].lo < w.history[k].hi
}

// C6, over the whole history.
predicate in_order(history: seq<Use>) {
  forall j, k :: 0 <= j < k < |history| && overlap(history[j], history[k]) && history[j].owner != history[k].owner ==>
    history[j].stream < |history[k].seen| && history[j].position <= history[k].seen[history[j].stream]
}

// No byte is in two heaps.
predicate heaps_apart(pools: seq<PoolMap>) {
  forall g, h :: 0 <= g < |pools| && 0 <= h < |pools| && g != h ==> pools_apart(pools[g], pools[h])
}

predicate pools_apart(a: PoolMap, b: PoolMap) {
  forall s, t :: s in a.segments && t in b.segments ==> clear(s, t)
}

predicate clear(s: PoolSegment, t: PoolSegment) { s.base + s.size <= t.base || t.base + t.size <= s.base }

predicate heaps_valid(pools: seq<PoolMap>, granule: nat)
  requires granule > 0
{
  forall h :: 0 <= h < |pools| ==> valid(pools[h], granule)
}

// A byte with an unfinished use is still in a heap: memory given back to the driver is at rest.
predicate backed(w: World) {
  forall k, x :: 0 <= k < |w.history| && w.history[k].lo <= x < w.history[k].hi &&
    !complete_use(w.done, w.history[k]) ==> mapped(w.pools, x)
}

predicate complete_use(done: Clock, u: Use) { u.stream < |done| && u.position <= done[u.stream] }

predicate mapped(pools: seq<PoolMap>, x: nat) { exists h :: 0 <= h < |pools| && has_byte(pools[h].segments, x) }

predicate has_byte(segments: seq<PoolSegment>, x: nat) {
  exists s :: s in segments && s.base <= x < s.base + s.size
}

predicate safe(w: World, granule: nat)
  requires granule > 0
{
  shaped(w) && heaps_valid(w.pools, granule) && heaps_apart(w.pools) && historic(w) && heaps_know(w) && in_order(w.history) &&
  backed(w)
}

// Progress of the machine settles uses and unsettles none. -----------------------------------------------------------------

lemma progress_keeps(w: World, s: nat, granule: nat)
  requires granule > 0 && safe(w, granule) && s < |w.issued|
  ensures safe(progress(w, s), granule)
{
  var a := progress(w, s);
  forall k, x | 0 <= k < |a.history| && a.history[k].lo <= x < a.history[k].hi && !complete_use(a.done, a.history[k])
    ensures mapped(a.pools, x)
  {
    assert !complete_use(w.done, w.history[k]);
  }
  forall h, i | 0 <= h < |a.pools| && 0 <= i < |a.pools[h].blocks|
    ensures knows(a, h, a.pools[h].blocks[i])
  {
    var b := a.pools[h].blocks[i];
    assert knows(w, h, b);
    forall k | 0 <= k < |a.history| && overlaps(a.history[k], b)
      ensures known(a, h, b, a.history[k])
    {
      assert known(w, h, b, w.history[k]);
    }
  }
}

lemma knows_is_of(w: World, a: World, h: nat, b: PoolBlock)
  requires knows(w, h, b) && a.done == w.done && a.history == w.history
  requires owned(b) && b.user < |w.owners| ==> b.user < |a.owners| && a.owners[b.user] == w.owners[b.user]
  ensures knows(a, h, b)
{
  forall k | 0 <= k < |a.history| && overlaps(a.history[k], b)
    ensures known(a, h, b, a.history[k])
  {
    assert known(w, h, b, w.history[k]);
  }
}

lemma record_keeps(w: World, s: nat, granule: nat)
  requires granule > 0 && safe(w, granule) && s < |w.issued|
  ensures safe(record(w, s), granule)
{
  var a := record(w, s);
  forall h, i | 0 <= h < |a.pools| && 0 <= i < |a.pools[h].blocks|
    ensures knows(a, h, a.pools[h].blocks[i])
  {
    assert knows(w, h, w.pools[h].blocks[i]);
    knows_is_of(w, a, h, w.pools[h].blocks[i]);
  }
}

lemma wait_keeps(w: World, t: nat, e: nat, granule: nat)
  requires granule > 0 && safe(w, granule) && t < |w.issued| && e < |w.events|
  ensures safe(wait(w, t, e), granule)
{
  var a := wait(w, t, e);
  forall h, i | 0 <= h < |a.pools| && 0 <= i < |a.pools[h].blocks|
    ensures knows(a, h, a.pools[h].blocks[i])
  {
    assert knows(w, h, w.pools[h].blocks[i]);
    knows_is_of(w, a, h, w.pools[h].blocks[i]);
  }
}

// A use of bytes. --------------------------------------------------------------------------------------------------------

// Two blocks of one world that share a byte are one.
lemma blocks_apart(w: World, g: nat, i: nat, h: nat, j: nat, granule: nat)
  requires granule > 0 && heaps_valid(w.pools, granule) && heaps_apart(w.pools)
  requires g < |w.pools| && h < |w.pools| && i < |w.pools[g].blocks| && j < |w.pools[h].blocks|
  requires w.pools[g].blocks[i].address < end(w.pools[h].blocks[j])
  requires w.pools[h].blocks[j].address < end(w.pools[g].blocks[i])
  ensures g == h && i == j
{
  reveal valid();
  if g == h {
    if i < j { before(w.pools[g], i, j); } else if j < i { before(w.pools[g], j, i); }
  } else {
    var s := home(w.pools[g], i);
    var t := home(w.pools[h], j);
    assert pools_apart(w.pools[g], w.pools[h]) && clear(s, t);
  }
}

lemma kernel_in_order(w: World, h: nat, i: nat, t: nat, granule: nat)
  requires granule > 0 && safe(w, granule) && h < |w.issued| && t < |w.issued| && i < |w.pools[h].blocks|
  ensures in_order(kernel(w, h, i, t).history)
{
  var a := kernel(w, h, i, t);
  var b := w.pools[h].blocks[i];
  var n := |w.history|;
  assert knows(w, h, b);
  forall j, k | 0 <= j < k < |a.history| && overlap(a.history[j], a.history[k]) && a.history[j].owner != a.history[k].owner
    ensures a.history[j].stream < |a.history[k].seen|
    ensures a.history[j].position <= a.history[k].seen[a.history[j].stream]
  {
    if k == n {
      assert a.history[j] == w.history[j] && overlaps(w.history[j], b);
      assert known(w, h, b, w.history[j]);
    } else {
      assert a.history[j] == w.history[j] && a.history[k] == w.history[k];
    }
  }
}

lemma kernel_backed(w: World, h: nat, i: nat, t: nat, granule: nat)
  requires granule > 0 && safe(w, granule) && h < |w.issued| && t < |w.issued| && i < |w.pools[h].blocks|
  ensures backed(kernel(w, h, i, t))
{
  var a := kernel(w, h, i, t);
  reveal valid();
  var s := home(w.pools[h], i);
  forall k, x | 0 <= k < |a.history| && a.history[k].lo <= x < a.history[k].hi && !complete_use(a.done, a.history[k])
    ensures mapped(a.pools, x)
  {
    if k == |w.history| {
      assert has_byte(a.pools[h].segments, x);
    } else {
      assert a.history[k] == w.history[k] && mapped(w.pools, x);
    }
  }
}

lemma kernel_keeps(w: World, h: nat, i: nat, t: nat, granule: nat)
  requires granule > 0 && safe(w, granule) && h < |w.issued| && t < |w.issued| && i < |w.pools[h].blocks|
  ensures safe(kernel(w, h, i, t), granule)
{
  var a := kernel(w, h, i, t);
  kernel_in_order(w, h, i, t, granule);
  kernel_backed(w, h, i, t, granule);
  if a != w {
    var n := |w.history|;
    assert w.pools[h].blocks[i].size > 0 by { around(w.pools[h], i, granule); }
    forall g, j | 0 <= g < |a.pools| && 0 <= j < |a.pools[g].blocks|
      ensures knows(a, g, a.pools[g].blocks[j])
    {
      var b := a.pools[g].blocks[j];
      assert knows(w, g, b);
      forall k | 0 <= k < |a.history| && overlaps(a.history[k], b)
        ensures known(a, g, b, a.history[k])
      {
        if k == n {
          blocks_apart(w, g, j, h, i, granule);
        } else {
          assert a.history[k] == w.history[k] && known(w, g, b, w.history[k]);
        }
      }
    }
  }
}

lemma announce_keeps(w: World, h: nat, i: nat, t: nat, granule: nat)
  requires granule > 0 && safe(w, granule) && h < |w.issued| && t < |w.issued| && i < |w.pools[h].blocks|
  ensures safe(announce(w, h, i, t), granule)
{
  var a := announce(w, h, i, t);
  if a != w {
    forall g, j | 0 <= g < |a.pools| && 0 <= j < |a.pools[g].blocks|
      ensures knows(a, g, a.pools[g].blocks[j])
    {
      var b := a.pools[g].blocks[j];
      assert knows(w, g, b);
      forall k | 0 <= k < |a.history| && overlaps(a.history[k], b)
        ensures known(a, g, b, a.history[k])
      {
        assert known(w, g, b, w.history[k]);
      }
    }
  }
}
