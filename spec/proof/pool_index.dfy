// C5: the free index is the set of free blocks. A splice changes it only by the blocks taken out and put in, so an index can
// be kept step by step. Best fit is its first block that fits, in (size, address) order.
include "pool_answers.dfy"

function free_set(blocks: seq<PoolBlock>): set<PoolBlock> { set b | b in blocks && b.state == kFree }

lemma free_set_plus(a: seq<PoolBlock>, b: seq<PoolBlock>)
  ensures free_set(a + b) == free_set(a) + free_set(b)
{
}

// Blocks of a valid map differ from each other.
predicate distinct(blocks: seq<PoolBlock>) {
  forall i, j :: 0 <= i < j < |blocks| ==> blocks[i] != blocks[j]
}

lemma distinct_holds(m: PoolMap)
  requires tiling(m)
  ensures distinct(m.blocks)
{
  disjoint_holds(m);
}

lemma index_splice(blocks: seq<PoolBlock>, first: nat, count: nat, into: seq<PoolBlock>)
  requires first + count <= |blocks| && distinct(blocks)
  ensures free_set(splice(blocks, first, count, into)) ==
    free_set(blocks) - free_set(blocks[first..first + count]) + free_set(into)
{
  var left, out, right := blocks[..first], blocks[first..first + count], blocks[first + count..];
  assert blocks == left + out + right;
  free_set_plus(left + out, right);
  free_set_plus(left, out);
  free_set_plus(left + into, right);
  free_set_plus(left, into);
  forall b | b in free_set(out)
    ensures b !in free_set(left) && b !in free_set(right)
  {
    var k :| 0 <= k < count && out[k] == b;
    assert blocks[first + k] == b;
    if b in left { var i :| 0 <= i < first && left[i] == b; assert blocks[i] == b; }
    if b in right { var i :| 0 <= i < |right| && right[i] == b; assert blocks[first + count + i] == b; }
  }
}

lemma index_gives_best(m: PoolMap, request: PoolRequest)
  requires tiling(m)
  ensures var i := best_fit(m.blocks, request, |m.blocks|);
    if i == |m.blocks| then forall b :: b in free_set(m.blocks) ==> !fits(b, request)
    else m.blocks[i] in free_set(m.blocks) &&
      forall b :: b in free_set(m.blocks) && fits(b, request) && b != m.blocks[i] ==> better(m.blocks[i], b)
{
  best_answer(m, request);
}
