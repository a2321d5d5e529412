// grow and shrink keep every clause.
include "pool_keeps.dfy"

// A block at its segment's end is still there after other segments are added or removed.
lemma ends_kept(before: seq<PoolSegment>, after: seq<PoolSegment>, block: PoolBlock)
  requires ends(before, block)
  requires forall s :: s in before && s.base == block.segment ==> s in after
  ensures ends(after, block)
{
  var s :| s in before && s.base == block.segment && s.base + s.size == end(block);
  assert s in after;
}

predicate clear_of(segments: seq<PoolSegment>, base: nat, size: nat) {
  forall s :: s in segments ==> base + size <= s.base || s.base + s.size <= base
}

// The place of a new segment's block: all earlier blocks belong to lower segments, all later ones to higher segments.
lemma place_of(m: PoolMap, base: nat, size: nat, k: nat)
  requires tiling(m) && size > 0 && clear_of(m.segments, base, size) && k < |m.blocks|
  ensures m.blocks[k].segment != base
  ensures k < first_block_from(m.blocks, base, 0) <==> m.blocks[k].segment < base
  ensures m.blocks[k].segment < base <==> m.blocks[k].address < base
{
  var i := first_block_from(m.blocks, base, 0);
  var s := home(m, k);
  segments_apart(m.segments, s, s);
  if i <= k && i < k { before(m, i, k); }
}

// The blocks beside that place end and begin segments.
lemma boundary(m: PoolMap, base: nat, size: nat)
  requires tiling(m) && size > 0 && clear_of(m.segments, base, size)
  ensures var i := first_block_from(m.blocks, base, 0);
    (i > 0 ==> m.blocks[i - 1].segment < base && ends(m.segments, m.blocks[i - 1])) &&
    (i < |m.blocks| ==> base < m.blocks[i].segment && begins(m.blocks[i]))
{
  var i := first_block_from(m.blocks, base, 0);
  if i > 0 { place_of(m, base, size, i - 1); }
  if i < |m.blocks| { place_of(m, base, size, i); }
  if 0 < i && i < |m.blocks| { assert meets(m.segments, m.blocks[i - 1], m.blocks[i]); }
}

lemma meets_kept(before: seq<PoolSegment>, after: seq<PoolSegment>, left: PoolBlock, right: PoolBlock)
  requires meets(before, left, right) && forall s :: s in before ==> s in after
  ensures meets(after, left, right)
{
  if ends(before, left) { ends_kept(before, after, left); }
}

lemma chain_insert(before: seq<PoolSegment>, after: seq<PoolSegment>, blocks: seq<PoolBlock>, i: nat, whole: PoolBlock)
  requires chain(before, blocks) && i <= |blocks| && forall s :: s in before ==> s in after
  requires whole.size > 0 && begins(whole) && ends(after, whole)
  requires i > 0 ==> blocks[i - 1].segment < whole.segment && ends(before, blocks[i - 1])
  requires i < |blocks| ==> whole.segment < blocks[i].segment && begins(blocks[i])
  ensures chain(after, splice(blocks, i, 0, [whole]))
{
  var into := splice(blocks, i, 0, [whole]);
  of_splice(blocks, i, 0, [whole]);
  if i > 0 { ends_kept(before, after, blocks[i - 1]); }
  if |blocks| > 0 { ends_kept(before, after, blocks[|blocks| - 1]); }
  forall x, y | 0 <= x < |into| && y == x + 1 && y < |into|
    ensures meets(after, into[x], into[y])
  {
    if y < i {
      meets_kept(before, after, blocks[x], blocks[y]);
    } else if x > i {
      meets_kept(before, after, blocks[x - 1], blocks[y - 1]);
    }
  }
}

lemma of_insert(segments: seq<PoolSegment>, s: nat, mine: PoolSegment)
  requires s <= |segments|
  ensures var after := segments[..s] + [mine] + segments[s..];
    |after| == |segments| + 1 && after[s] == mine &&
    (forall i :: 0 <= i < s ==> after[i] == segments[i]) &&
    (forall i :: s < i < |after| ==> after[i] == segments[i - 1]) &&
    (forall t :: t in segments ==> t in after) && (forall t :: t in after ==> t in segments || t == mine)
{
  assert segments == segments[..s] + segments[s..];
}

lemma apart_insert(segments: seq<PoolSegment>, s: nat, mine: PoolSegment)
  requires apart(segments) && s <= |segments| && mine.size > 0
  requires forall t :: 0 <= t < s ==> segments[t].base + segments[t].size <= mine.base
  requires forall t :: s <= t < |segments| ==> mine.base + mine.size <= segments[t].base
  ensures apart(segments[..s] + [mine] + segments[s..])
{
  of_insert(segments, s, mine);
}

lemma segments_grown(segments: seq<PoolSegment>, base: nat, size: nat)
  requires apart(segments) && size > 0 && clear_of(segments, base, size)
  ensures var s := first_segment_from(segments, base, 0);
    apart(segments[..s] + [PoolSegment(base, size)] + segments[s..])
{
  var s := first_segment_from(segments, base, 0);
  forall t | 0 <= t < s
    ensures segments[t].base + segments[t].size <= base
  {
    assert segments[t] in segments;
  }
  forall t | s <= t < |segments|
    ensures base + size <= segments[t].base
  {
    assert segments[t] in segments && segments[s].base <= segments[t].base;
  }
  apart_insert(segments, s, PoolSegment(base, size));
}

lemma has_blocks_kept(before: seq<PoolBlock>, after: seq<PoolBlock>, base: nat)
  requires has_blocks(before, base)
  requires forall b :: b in before && b.segment == base ==> b in after
  ensures has_blocks(after, base)
{
  var k :| 0 <= k < |before| && before[k].segment == base;
  assert before[k] in before && before[k] in after;
  var n :| 0 <= n < |after| && after[n] == before[k];
}

lemma covered_insert(before: seq<PoolSegment>, after: seq<PoolSegment>, blocks: seq<PoolBlock>, into: seq<PoolBlock>, base: nat)
  requires covered(before, blocks) && has_blocks(into, base)
  requires forall b :: b in blocks ==> b in into
  requires forall s :: s in after ==> s in before || s.base == base
  ensures covered(after, into)
{
  forall t | 0 <= t < |after|
    ensures has_blocks(into, after[t].base)
  {
    assert after[t] in after;
    if after[t].base != base {
      var u :| 0 <= u < |before| && before[u] == after[t];
      assert has_blocks(blocks, before[u].base);
      has_blocks_kept(blocks, into, before[u].base);
    }
  }
}

lemma in_insert(blocks: seq<PoolBlock>, i: nat, whole: PoolBlock)
  requires i <= |blocks|
  ensures var into := splice(blocks, i, 0, [whole]);
    has_blocks(into, whole.segment) && forall b :: b in blocks ==> b in into
{
  var into := splice(blocks, i, 0, [whole]);
  of_splice(blocks, i, 0, [whole]);
  assert into[i] == whole;
  forall b | b in blocks
    ensures b in into
  {
    var k :| 0 <= k < |blocks| && blocks[k] == b;
    splice_stays(blocks, i, 0, [whole], k);
  }
}

lemma grow_covered(m: PoolMap, base: nat, size: nat, stamp: nat)
  requires covered(m.segments, m.blocks)
  ensures covered(grow(m, base, size, stamp).after.segments, grow(m, base, size, stamp).after.blocks)
{
  var a := grow(m, base, size, stamp).after;
  in_insert(m.blocks, first_block_from(m.blocks, base, 0), PoolBlock(base, size, 0, base, stamp, 0, kFree));
  of_insert(m.segments, first_segment_from(m.segments, base, 0), PoolSegment(base, size));
  covered_insert(m.segments, a.segments, m.blocks, a.blocks, base);
}

lemma grow_conserved(m: PoolMap, base: nat, size: nat, stamp: nat)
  requires conserved(m)
  ensures conserved(grow(m, base, size, stamp).after)
{
  var whole := PoolBlock(base, size, 0, base, stamp, 0, kFree);
  var i := first_block_from(m.blocks, base, 0);
  var s := first_segment_from(m.segments, base, 0);
  bytes_splice(m.blocks, i, 0, [whole]);
  assert m.blocks[i..i + 0] == [];
  bytes_of_one(whole);
  assert [PoolSegment(base, size)][..0] == [];
  assert m.segments == m.segments[..s] + m.segments[s..];
  segment_bytes_plus(m.segments[..s], m.segments[s..]);
  segment_bytes_plus(m.segments[..s] + [PoolSegment(base, size)], m.segments[s..]);
  segment_bytes_plus(m.segments[..s], [PoolSegment(base, size)]);
}

lemma grow_tiling(m: PoolMap, base: nat, size: nat, stamp: nat)
  requires tiling(m) && size > 0 && clear_of(m.segments, base, size)
  ensures tiling(grow(m, base, size, stamp).after)
{
  var i := first_block_from(m.blocks, base, 0);
  var s := first_segment_from(m.segments, base, 0);
  var whole := PoolBlock(base, size, 0, base, stamp, 0, kFree);
  var after := grow(m, base, size, stamp).after;
  boundary(m, base, size);
  of_insert(m.segments, s, PoolSegment(base, size));
  segments_grown(m.segments, base, size);
  assert PoolSegment(base, size) in after.segments && ends(after.segments, whole);
  chain_insert(m.segments, after.segments, m.blocks, i, whole);
  grow_covered(m, base, size, stamp);
}

lemma grow_coalesced(m: PoolMap, base: nat, size: nat, stamp: nat)
  requires tiling(m) && coalesced(m) && size > 0 && clear_of(m.segments, base, size)
  ensures coalesced(grow(m, base, size, stamp).after)
{
  boundary(m, base, size);
  inserted_apart(m.blocks, first_block_from(m.blocks, base, 0), PoolBlock(base, size, 0, base, stamp, 0, kFree));
}

lemma grow_keeps(m: PoolMap, base: nat, size: nat, stamp: nat, granule: nat)
  requires granule > 0 && valid(m, granule) && allowed(m, Grow(base, size, stamp), granule)
  ensures valid(grow(m, base, size, stamp).after, granule)
{
  reveal valid();
  var i := first_block_from(m.blocks, base, 0);
  grow_tiling(m, base, size, stamp);
  grow_coalesced(m, base, size, stamp);
  grow_conserved(m, base, size, stamp);
  each_splice(m.blocks, i, 0, [PoolBlock(base, size, 0, base, stamp, 0, kFree)], granule);
}

lemma inserted_apart(blocks: seq<PoolBlock>, i: nat, whole: PoolBlock)
  requires i <= |blocks| && apart_free(blocks)
  requires i > 0 ==> !joins(blocks[i - 1], whole)
  requires i < |blocks| ==> !joins(whole, blocks[i])
  ensures apart_free(splice(blocks, i, 0, [whole]))
{
  apart_free_splice(blocks, i, 0, [whole]);
}

// The only block of an idle segment is between blocks of other segments.
lemma idle_alone(m: PoolMap, i: nat, k: nat)
  requires tiling(m) && i < |m.blocks| && is_idle(m, m.blocks[i]) && k < |m.blocks| && k != i
  ensures m.blocks[k].segment != m.blocks[i].segment
{
  var s := PoolSegment(m.blocks[i].segment, m.blocks[i].size);
  var t := home(m, k);
  if m.blocks[k].segment == s.base {
    segments_apart(m.segments, s, t);
    if k < i { before(m, k, i); } else { before(m, i, k); }
  }
}

lemma chain_remove(before: seq<PoolSegment>, after: seq<PoolSegment>, blocks: seq<PoolBlock>, i: nat)
  requires chain(before, blocks) && i < |blocks|
  requires forall k :: 0 <= k < |blocks| && k != i && ends(before, blocks[k]) ==> ends(after, blocks[k])
  requires i > 0 ==> ends(before, blocks[i - 1])
  requires i + 1 < |blocks| ==> begins(blocks[i + 1])
  requires 0 < i && i + 1 < |blocks| ==> blocks[i - 1].segment < blocks[i + 1].segment
  ensures chain(after, splice(blocks, i, 1, []))
{
  var rest := splice(blocks, i, 1, []);
  of_splice(blocks, i, 1, []);
  forall x, y | 0 <= x < |rest| && y == x + 1 && y < |rest|
    ensures meets(after, rest[x], rest[y])
  {
    if y < i {
      assert meets(before, blocks[x], blocks[y]);
    } else if x >= i {
      assert meets(before, blocks[x + 1], blocks[y + 1]);
    }
  }
}

lemma shrink_chain(m: PoolMap, i: nat, segments: seq<PoolSegment>)
  requires tiling(m) && i < |m.blocks| && is_idle(m, m.blocks[i])
  requires forall s :: s in m.segments && s.base != m.blocks[i].segment ==> s in segments
  ensures chain(segments, splice(m.blocks, i, 1, []))
{
  forall k | 0 <= k < |m.blocks| && k != i && ends(m.segments, m.blocks[k])
    ensures ends(segments, m.blocks[k])
  {
    idle_alone(m, i, k);
    ends_kept(m.segments, segments, m.blocks[k]);
  }
  if i > 0 { assert meets(m.segments, m.blocks[i - 1], m.blocks[i]); idle_alone(m, i, i - 1); }
  if i + 1 < |m.blocks| { assert meets(m.segments, m.blocks[i], m.blocks[i + 1]); idle_alone(m, i, i + 1); }
  chain_remove(m.segments, segments, m.blocks, i);
}

lemma shrink_covered(m: PoolMap, i: nat, s: nat)
  requires tiling(m) && i < |m.blocks| && is_idle(m, m.blocks[i])
  requires s < |m.segments| && m.segments[s].base == m.blocks[i].segment
  ensures covered(m.segments[..s] + m.segments[s + 1..], splice(m.blocks, i, 1, []))
{
  var segments, after := m.segments[..s] + m.segments[s + 1..], splice(m.blocks, i, 1, []);
  of_splice(m.blocks, i, 1, []);
  forall t | 0 <= t < |segments|
    ensures has_blocks(after, segments[t].base)
  {
    var u := if t < s then t else t + 1;
    assert segments[t] == m.segments[u] && has_blocks(m.blocks, m.segments[u].base);
    var k :| 0 <= k < |m.blocks| && m.blocks[k].segment == m.segments[u].base;
    assert m.segments[if u < s then u else s].base + m.segments[if u < s then u else s].size <=
      m.segments[if u < s then s else u].base;
    assert k != i;
    assert after[if k < i then k else k - 1].segment == segments[t].base;
  }
}

lemma shrink_conserved(m: PoolMap, i: nat, s: nat)
  requires conserved(m) && i < |m.blocks| && s < |m.segments| && m.segments[s].size == m.blocks[i].size
  ensures conserved(PoolMap(m.segments[..s] + m.segments[s + 1..], splice(m.blocks, i, 1, [])))
{
  bytes_splice(m.blocks, i, 1, []);
  assert m.blocks[i..i + 1] == [m.blocks[i]];
  bytes_of_one(m.blocks[i]);
  assert [m.segments[s]][..0] == [];
  assert m.segments == m.segments[..s] + [m.segments[s]] + m.segments[s + 1..];
  segment_bytes_plus(m.segments[..s] + [m.segments[s]], m.segments[s + 1..]);
  segment_bytes_plus(m.segments[..s], [m.segments[s]]);
  segment_bytes_plus(m.segments[..s], m.segments[s + 1..]);
}

// Where shrink finds the segment of an idle block.
lemma idle_segment(m: PoolMap, i: nat)
  requires tiling(m) && i < |m.blocks| && is_idle(m, m.blocks[i])
  ensures var s := first_segment_from(m.segments, m.blocks[i].segment, 0);
    s < |m.segments| && m.segments[s] == PoolSegment(m.blocks[i].segment, m.blocks[i].size)
{
  var mine := PoolSegment(m.blocks[i].segment, m.blocks[i].size);
  var s := first_segment_from(m.segments, mine.base, 0);
  var t :| 0 <= t < |m.segments| && m.segments[t] == mine;
  if s < t { assert m.segments[s].base + m.segments[s].size <= m.segments[t].base; }
}

lemma shrink_tiling(m: PoolMap, i: nat, s: nat)
  requires tiling(m) && i < |m.blocks| && is_idle(m, m.blocks[i])
  requires s < |m.segments| && m.segments[s].base == m.blocks[i].segment
  ensures tiling(PoolMap(m.segments[..s] + m.segments[s + 1..], splice(m.blocks, i, 1, [])))
{
  assert m.segments == m.segments[..s] + [m.segments[s]] + m.segments[s + 1..];
  shrink_chain(m, i, m.segments[..s] + m.segments[s + 1..]);
  shrink_covered(m, i, s);
}

lemma shrink_coalesced(m: PoolMap, i: nat)
  requires tiling(m) && coalesced(m) && i < |m.blocks| && is_idle(m, m.blocks[i])
  ensures apart_free(splice(m.blocks, i, 1, []))
{
  if 0 < i && i + 1 < |m.blocks| {
    before(m, i - 1, i);
    before(m, i, i + 1);
    idle_alone(m, i, i - 1);
  }
  removed_apart(m.blocks, i);
}

lemma removed_apart(blocks: seq<PoolBlock>, i: nat)
  requires apart_free(blocks) && i < |blocks|
  requires 0 < i && i + 1 < |blocks| ==> !joins(blocks[i - 1], blocks[i + 1])
  ensures apart_free(splice(blocks, i, 1, []))
{
  var after := splice(blocks, i, 1, []);
  of_splice(blocks, i, 1, []);
  forall x, y | 0 <= x < |after| && y == x + 1 && y < |after|
    ensures !joins(after[x], after[y])
  {
    if x >= i { assert !joins(blocks[x + 1], blocks[y + 1]); }
  }
}

lemma shrink_keeps(m: PoolMap, base: nat, granule: nat)
  requires granule > 0 && valid(m, granule)
  ensures valid(shrink(m, base).after, granule)
{
  reveal valid();
  var i := at(m.blocks, base, 0);
  if i < |m.blocks| && is_idle(m, m.blocks[i]) {
    idle_segment(m, i);
    var s := first_segment_from(m.segments, base, 0);
    shrink_tiling(m, i, s);
    shrink_coalesced(m, i);
    shrink_conserved(m, i, s);
    each_splice(m.blocks, i, 1, [], granule);
  }
}
