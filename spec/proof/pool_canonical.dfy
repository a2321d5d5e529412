// Canonical form: the segments and the blocks that are not free determine the whole sequence of blocks. So coalescing is
// complete, and an implementation can be compared by the blocks it has handed out alone.
include "pool_runs.dfy"

// Equal in canonical form: a free block's stamp is history and does not count.
function form(block: PoolBlock): PoolBlock { if block.state == kFree then block.(stamp := 0) else block }

predicate same_owned(a: PoolMap, b: PoolMap) {
  forall x: PoolBlock :: x.state != kFree ==> (x in a.blocks <==> x in b.blocks)
}

// Two blocks that begin at one address: if their ends differed, the longer one would cover a block of the other map.
lemma shorter_is_impossible(a: PoolMap, b: PoolMap, i: nat)
  requires tiling(a) && tiling(b) && coalesced(a) && a.segments == b.segments && same_owned(a, b)
  requires i < |a.blocks| && i < |b.blocks|
  requires a.blocks[i].address == b.blocks[i].address && a.blocks[i].segment == b.blocks[i].segment
  requires a.blocks[i].state == kFree
  ensures end(b.blocks[i]) <= end(a.blocks[i])
{
  var x, y := a.blocks[i], b.blocks[i];
  if end(x) < end(y) {
    var s := home(b, i);
    if i + 1 == |a.blocks| || a.blocks[i + 1].segment != x.segment {
      if i + 1 < |a.blocks| { assert meets(a.segments, x, a.blocks[i + 1]); }
      assert ends(a.segments, x);
      var t :| t in a.segments && t.base == x.segment && t.base + t.size == end(x);
      segments_apart(a.segments, s, t);
    } else {
      var next := a.blocks[i + 1];
      assert meets(a.segments, x, next) && !joins(x, next);
      assert next in a.blocks && next in b.blocks;
      var k :| 0 <= k < |b.blocks| && b.blocks[k] == next;
      if k < i { before(b, k, i); } else if k > i { before(b, i, k); }
    }
  }
}

// A block that is not free has the same index in both maps, when it begins at the same address.
lemma owned_is_same(a: PoolMap, b: PoolMap, i: nat)
  requires tiling(a) && tiling(b) && same_owned(a, b)
  requires i < |a.blocks| && i < |b.blocks|
  requires a.blocks[i].address == b.blocks[i].address && a.blocks[i].state != kFree
  ensures a.blocks[i] == b.blocks[i]
{
  assert a.blocks[i] in a.blocks && a.blocks[i] in b.blocks;
  var k :| 0 <= k < |b.blocks| && b.blocks[k] == a.blocks[i];
  if k < i { before(b, k, i); } else if k > i { before(b, i, k); }
}

lemma same_block(a: PoolMap, b: PoolMap, i: nat, granule: nat)
  requires granule > 0 && valid(a, granule) && valid(b, granule) && a.segments == b.segments && same_owned(a, b)
  requires i < |a.blocks| && i < |b.blocks|
  requires a.blocks[i].address == b.blocks[i].address && a.blocks[i].segment == b.blocks[i].segment
  ensures form(a.blocks[i]) == form(b.blocks[i])
{
  reveal valid();
  if a.blocks[i].state != kFree {
    owned_is_same(a, b, i);
  } else if b.blocks[i].state != kFree {
    owned_is_same(b, a, i);
  } else {
    shorter_is_impossible(a, b, i);
    shorter_is_impossible(b, a, i);
    assert plain(a.blocks[i]) && plain(b.blocks[i]);
  }
}

// A block belongs to the first segment that no earlier block fills.
lemma next_segment(a: PoolMap, b: PoolMap, i: nat)
  requires tiling(a) && tiling(b) && a.segments == b.segments && i < |a.blocks| && i < |b.blocks|
  requires forall k :: 0 <= k < i ==> a.blocks[k].segment == b.blocks[k].segment
  requires i > 0 ==> a.blocks[i].segment != a.blocks[i - 1].segment
  ensures a.blocks[i].segment <= b.blocks[i].segment || (i > 0 && b.blocks[i].segment == b.blocks[i - 1].segment)
{
  var base := b.blocks[i].segment;
  if base < a.blocks[i].segment && (i == 0 || base != b.blocks[i - 1].segment) {
    var s := home(b, i);
    var t :| 0 <= t < |a.segments| && a.segments[t] == s;
    assert has_blocks(a.blocks, a.segments[t].base);
    var k :| 0 <= k < |a.blocks| && a.blocks[k].segment == base;
    if k >= i {
      if k > i { before(a, i, k); }
    } else {
      if k < i - 1 { before(b, k, i - 1); }
      before(b, i - 1, i);
    }
  }
}

// If block i - 1 ends its segment in one map, it does in the other.
lemma same_turn(a: PoolMap, b: PoolMap, i: nat)
  requires tiling(a) && tiling(b) && a.segments == b.segments && 0 < i < |a.blocks| && i < |b.blocks|
  requires a.blocks[i - 1].segment == b.blocks[i - 1].segment && end(a.blocks[i - 1]) == end(b.blocks[i - 1])
  requires a.blocks[i].segment != a.blocks[i - 1].segment
  ensures b.blocks[i].segment != b.blocks[i - 1].segment
{
  assert meets(a.segments, a.blocks[i - 1], a.blocks[i]);
  var s :| s in a.segments && s.base == a.blocks[i - 1].segment && s.base + s.size == end(a.blocks[i - 1]);
  if b.blocks[i].segment == b.blocks[i - 1].segment {
    assert meets(b.segments, b.blocks[i - 1], b.blocks[i]);
    var t := home(b, i);
    segments_apart(a.segments, s, t);
  }
}

lemma same_place(a: PoolMap, b: PoolMap, i: nat)
  requires tiling(a) && tiling(b) && a.segments == b.segments && i < |a.blocks| && i < |b.blocks|
  requires forall k :: 0 <= k < i ==> form(a.blocks[k]) == form(b.blocks[k])
  ensures a.blocks[i].address == b.blocks[i].address && a.blocks[i].segment == b.blocks[i].segment
{
  assert forall k :: 0 <= k < i ==> a.blocks[k].segment == b.blocks[k].segment;
  if i > 0 {
    assert form(a.blocks[i - 1]) == form(b.blocks[i - 1]);
    assert meets(a.segments, a.blocks[i - 1], a.blocks[i]) && meets(b.segments, b.blocks[i - 1], b.blocks[i]);
    if a.blocks[i].segment != a.blocks[i - 1].segment { same_turn(a, b, i); }
    if b.blocks[i].segment != b.blocks[i - 1].segment { same_turn(b, a, i); }
  }
  if i == 0 || a.blocks[i].segment != a.blocks[i - 1].segment {
    next_segment(a, b, i);
    next_segment(b, a, i);
  }
}

lemma same_prefix(a: PoolMap, b: PoolMap, n: nat, granule: nat)
  requires granule > 0 && valid(a, granule) && valid(b, granule) && a.segments == b.segments && same_owned(a, b)
  requires n <= |a.blocks| && n <= |b.blocks|
  ensures forall k :: 0 <= k < n ==> form(a.blocks[k]) == form(b.blocks[k])
{
  if n > 0 {
    same_prefix(a, b, n - 1, granule);
    assert tiling(a) && tiling(b) by { reveal valid(); }
    same_place(a, b, n - 1);
    same_block(a, b, n - 1, granule);
  }
}

// Neither map has more blocks: an extra block would lie in a segment that is full, or that the other map does not have.
lemma no_more(a: PoolMap, b: PoolMap)
  requires tiling(a) && tiling(b) && a.segments == b.segments && |a.blocks| <= |b.blocks|
  requires forall k :: 0 <= k < |a.blocks| ==> form(a.blocks[k]) == form(b.blocks[k])
  ensures |a.blocks| == |b.blocks|
{
  var n := |a.blocks|;
  if n < |b.blocks| {
    var s := home(b, n);
    var t :| 0 <= t < |a.segments| && a.segments[t] == s;
    assert has_blocks(a.blocks, a.segments[t].base);
    var k :| 0 <= k < n && a.blocks[k].segment == s.base;
    assert form(a.blocks[k]) == form(b.blocks[k]) && form(a.blocks[n - 1]) == form(b.blocks[n - 1]);
    if k < n - 1 { before(b, k, n - 1); }
    before(b, n - 1, n);
    assert ends(a.segments, a.blocks[n - 1]);
    var e :| e in a.segments && e.base == a.blocks[n - 1].segment && e.base + e.size == end(a.blocks[n - 1]);
    segments_apart(a.segments, s, e);
  }
}

lemma canonical(a: PoolMap, b: PoolMap, granule: nat)
  requires granule > 0 && valid(a, granule) && valid(b, granule) && a.segments == b.segments && same_owned(a, b)
  ensures |a.blocks| == |b.blocks|
  ensures forall k :: 0 <= k < |a.blocks| ==> form(a.blocks[k]) == form(b.blocks[k])
{
  var n := if |a.blocks| <= |b.blocks| then |a.blocks| else |b.blocks|;
  same_prefix(a, b, n, granule);
  reveal valid();
  if |a.blocks| <= |b.blocks| { no_more(a, b); } else { no_more(b, a); }
}
