// The contract's clauses about a block pool. They mirror spec/model/pool_clauses.h, and know no policy.
//
// Adjacency is written `forall i, j :: j == i + 1`, not s[i] and s[i + 1], so that z3 has terms to match.
include "block_pool_model.dfy"

// C1 for every owned block: it is at least as large as requested, and lies on the granule inside its segment.
predicate usable(m: PoolMap, granule: nat)
  requires granule > 0
{
  forall i :: 0 <= i < |m.blocks| ==>
    inside(m.segments, m.blocks[i]) && aligned(m.blocks[i], granule) && plain(m.blocks[i])
}

predicate inside(segments: seq<PoolSegment>, block: PoolBlock) {
  exists s :: s in segments && s.base == block.segment && within(s, block)
}

predicate within(s: PoolSegment, block: PoolBlock) { s.base <= block.address && end(block) <= s.base + s.size }

predicate aligned(block: PoolBlock, granule: nat)
  requires granule > 0
{
  on_granule(block.address, granule) && on_granule(block.size, granule)
}

// Each field has a meaning only in some states; an owned block is at least as large as its request.
predicate plain(block: PoolBlock) {
  if owned(block) then block.requested <= block.size && block.stamp == 0
  else block.requested == 0 && block.user == 0
}

// C2: no two blocks share a byte. The earlier one in the sequence is the lower one.
predicate disjoint(m: PoolMap) {
  forall i, j :: 0 <= i < j < |m.blocks| ==> end(m.blocks[i]) <= m.blocks[j].address
}

// C3: the blocks of each segment tile it.
predicate tiling(m: PoolMap) {
  apart(m.segments) && chain(m.segments, m.blocks) && covered(m.segments, m.blocks)
}

predicate apart(segments: seq<PoolSegment>) {
  (forall s :: 0 <= s < |segments| ==> segments[s].size > 0) &&
  (forall s, t :: 0 <= s < t < |segments| ==> segments[s].base + segments[s].size <= segments[t].base)
}

// Every block begins where the block before it ends; or it begins a segment, and the block before it ends another.
predicate chain(segments: seq<PoolSegment>, blocks: seq<PoolBlock>) {
  (forall i :: 0 <= i < |blocks| ==> blocks[i].size > 0) &&
  (forall i, j :: 0 <= i < |blocks| && j == i + 1 && j < |blocks| ==> meets(segments, blocks[i], blocks[j])) &&
  (|blocks| > 0 ==> begins(blocks[0]) && ends(segments, blocks[|blocks| - 1]))
}

predicate meets(segments: seq<PoolSegment>, left: PoolBlock, right: PoolBlock) {
  if left.segment == right.segment then right.address == end(left)
  else left.segment < right.segment && ends(segments, left) && begins(right)
}

predicate begins(block: PoolBlock) { block.address == block.segment }

predicate ends(segments: seq<PoolSegment>, block: PoolBlock) {
  exists s :: s in segments && s.base == block.segment && s.base + s.size == end(block)
}

predicate covered(segments: seq<PoolSegment>, blocks: seq<PoolBlock>) {
  forall s :: 0 <= s < |segments| ==> has_blocks(blocks, segments[s].base)
}

predicate has_blocks(blocks: seq<PoolBlock>, base: nat) {
  exists i :: 0 <= i < |blocks| && blocks[i].segment == base
}

// C4: no two free blocks of a segment touch.
predicate coalesced(m: PoolMap) { apart_free(m.blocks) }

predicate apart_free(blocks: seq<PoolBlock>) {
  forall i, j :: 0 <= i < |blocks| && j == i + 1 && j < |blocks| ==> !joins(blocks[i], blocks[j])
}

// C14: every byte of every segment is in exactly one block.
predicate conserved(m: PoolMap) { bytes(m.blocks) == segment_bytes(m.segments) }

function method bytes(blocks: seq<PoolBlock>): nat {
  if |blocks| == 0 then 0 else bytes(blocks[..|blocks| - 1]) + blocks[|blocks| - 1].size
}

function method segment_bytes(segments: seq<PoolSegment>): nat {
  if |segments| == 0 then 0 else segment_bytes(segments[..|segments| - 1]) + segments[|segments| - 1].size
}

// The invariant that every operation keeps. C2 follows from C3 (disjoint_holds), and so does `inside` (inside_holds).
// Opaque: a proof that needs a part of it reveals it, and z3 does not see the rest.
predicate {:opaque} valid(m: PoolMap, granule: nat)
  requires granule > 0
{
  tiling(m) && coalesced(m) && conserved(m) &&
  forall i :: 0 <= i < |m.blocks| ==> aligned(m.blocks[i], granule) && plain(m.blocks[i])
}
