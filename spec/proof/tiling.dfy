// What follows from tiling alone: blocks lie inside their segments (C1), share no byte (C2), and have one address each.
include "pool_clauses.dfy"

lemma above_base(m: PoolMap, i: nat)
  requires tiling(m) && i < |m.blocks|
  ensures m.blocks[i].segment <= m.blocks[i].address
{
  if i > 0 {
    assert meets(m.segments, m.blocks[i - 1], m.blocks[i]);
    if m.blocks[i - 1].segment == m.blocks[i].segment { above_base(m, i - 1); }
  }
}

// The segment of a block, found through the last block of the segment.
lemma home(m: PoolMap, i: nat) returns (s: PoolSegment)
  requires tiling(m) && i < |m.blocks|
  ensures s in m.segments && s.base == m.blocks[i].segment && within(s, m.blocks[i])
  decreases |m.blocks| - i
{
  var block := m.blocks[i];
  above_base(m, i);
  var is_last := i + 1 == |m.blocks|;
  if !is_last { assert meets(m.segments, block, m.blocks[i + 1]); }
  if is_last || m.blocks[i + 1].segment != block.segment {
    assert ends(m.segments, block);
    s :| s in m.segments && s.base == block.segment && s.base + s.size == end(block);
  } else {
    s := home(m, i + 1);
  }
}

lemma inside_holds(m: PoolMap)
  requires tiling(m)
  ensures forall i :: 0 <= i < |m.blocks| ==> inside(m.segments, m.blocks[i])
{
  forall i | 0 <= i < |m.blocks|
    ensures inside(m.segments, m.blocks[i])
  {
    var s := home(m, i);
  }
}

lemma segments_apart(segments: seq<PoolSegment>, s: PoolSegment, t: PoolSegment)
  requires apart(segments) && s in segments && t in segments
  ensures s == t || s.base + s.size <= t.base || t.base + t.size <= s.base
  ensures s.base == t.base ==> s == t
  ensures s.size > 0
{
  var i :| 0 <= i < |segments| && segments[i] == s;
  var j :| 0 <= j < |segments| && segments[j] == t;
  if i < j { assert segments[i].base + segments[i].size <= segments[j].base; }
  if j < i { assert segments[j].base + segments[j].size <= segments[i].base; }
}

lemma before(m: PoolMap, i: nat, j: nat)
  requires tiling(m) && i < j < |m.blocks|
  ensures end(m.blocks[i]) <= m.blocks[j].address
  ensures m.blocks[i].segment <= m.blocks[j].segment
  decreases j
{
  var left, right := m.blocks[j - 1], m.blocks[j];
  assert meets(m.segments, left, right);
  if left.segment != right.segment {
    var s := home(m, j - 1);
    var t := home(m, j);
    segments_apart(m.segments, s, t);
    var e :| e in m.segments && e.base == left.segment && e.base + e.size == end(left);
    segments_apart(m.segments, s, e);
  }
  if i < j - 1 { before(m, i, j - 1); }
}

lemma disjoint_holds(m: PoolMap)
  requires tiling(m)
  ensures disjoint(m)
{
  forall i, j | 0 <= i < j < |m.blocks|
    ensures end(m.blocks[i]) <= m.blocks[j].address
  {
    before(m, i, j);
  }
}

// An address names one block: `at` finds the block at index i.
lemma at_finds(m: PoolMap, i: nat)
  requires tiling(m) && i < |m.blocks|
  ensures at(m.blocks, m.blocks[i].address, 0) == i
{
  var r := at(m.blocks, m.blocks[i].address, 0);
  disjoint_holds(m);
}
