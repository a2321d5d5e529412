// What a splice keeps, whatever the operation: one lemma for each clause.
include "pool_clauses.dfy"

// Each block after a splice is a block of `into`, or one that was not replaced.
lemma of_splice(blocks: seq<PoolBlock>, first: nat, count: nat, into: seq<PoolBlock>)
  requires first + count <= |blocks|
  ensures var after := splice(blocks, first, count, into);
    |after| == |blocks| - count + |into| &&
    (forall i :: 0 <= i < first ==> after[i] == blocks[i]) &&
    (forall i :: first <= i < first + |into| ==> after[i] == into[i - first]) &&
    (forall i :: first + |into| <= i < |after| ==> after[i] == blocks[i - |into| + count])
{
}

// A block that was not replaced is still there.
lemma splice_stays(blocks: seq<PoolBlock>, first: nat, count: nat, into: seq<PoolBlock>, k: nat)
  requires first + count <= |blocks| && k < |blocks| && !(first <= k < first + count)
  ensures blocks[k] in splice(blocks, first, count, into)
{
  of_splice(blocks, first, count, into);
  var after := splice(blocks, first, count, into);
  if k < first { assert after[k] == blocks[k]; } else { assert after[k - count + |into|] == blocks[k]; }
}

// The blocks of `into` fill exactly the bytes of the replaced blocks, inside one segment.
predicate same_span(blocks: seq<PoolBlock>, first: nat, count: nat, into: seq<PoolBlock>)
  requires first + count <= |blocks|
{
  count > 0 && |into| > 0 &&
  (forall i :: 0 <= i < |into| ==> into[i].size > 0 && into[i].segment == blocks[first].segment) &&
  (forall i, j :: 0 <= i < |into| && j == i + 1 && j < |into| ==> into[j].address == end(into[i])) &&
  blocks[first + count - 1].segment == blocks[first].segment &&
  into[0].address == blocks[first].address &&
  end(into[|into| - 1]) == end(blocks[first + count - 1])
}

lemma chain_splice(segments: seq<PoolSegment>, blocks: seq<PoolBlock>, first: nat, count: nat, into: seq<PoolBlock>)
  requires first + count <= |blocks|
  requires same_span(blocks, first, count, into) && chain(segments, blocks)
  ensures chain(segments, splice(blocks, first, count, into))
{
  var after := splice(blocks, first, count, into);
  of_splice(blocks, first, count, into);
  forall i, j | 0 <= i < |after| && j == i + 1 && j < |after|
    ensures meets(segments, after[i], after[j])
  {
    if j < first {
    } else if j == first {
      assert meets(segments, blocks[i], blocks[j]);
    } else if j < first + |into| {
    } else {
      var k := j - |into| + count;
      assert meets(segments, blocks[k - 1], blocks[k]);
    }
  }
}

lemma covered_splice(segments: seq<PoolSegment>, blocks: seq<PoolBlock>, first: nat, count: nat, into: seq<PoolBlock>)
  requires first + count <= |blocks| && |into| > 0
  requires covered(segments, blocks)
  requires forall i :: first <= i < first + count ==> blocks[i].segment == into[0].segment
  ensures covered(segments, splice(blocks, first, count, into))
{
  var after := splice(blocks, first, count, into);
  of_splice(blocks, first, count, into);
  forall s | 0 <= s < |segments|
    ensures has_blocks(after, segments[s].base)
  {
    assert has_blocks(blocks, segments[s].base);
    var i :| 0 <= i < |blocks| && blocks[i].segment == segments[s].base;
    var k := if i < first then i else if i < first + count then first else i - count + |into|;
    assert after[k].segment == segments[s].base;
  }
}

lemma apart_free_splice(blocks: seq<PoolBlock>, first: nat, count: nat, into: seq<PoolBlock>)
  requires first + count <= |blocks| && |into| > 0
  requires apart_free(blocks) && apart_free(into)
  requires first > 0 ==> !joins(blocks[first - 1], into[0])
  requires first + count < |blocks| ==> !joins(into[|into| - 1], blocks[first + count])
  ensures apart_free(splice(blocks, first, count, into))
{
  var after := splice(blocks, first, count, into);
  of_splice(blocks, first, count, into);
  forall i, j | 0 <= i < |after| && j == i + 1 && j < |after|
    ensures !joins(after[i], after[j])
  {
    if first + |into| <= i {
      assert !joins(blocks[i - |into| + count], blocks[j - |into| + count]);
    }
  }
}

lemma bytes_plus(a: seq<PoolBlock>, b: seq<PoolBlock>)
  ensures bytes(a + b) == bytes(a) + bytes(b)
{
  if |b| == 0 {
    assert a + b == a;
  } else {
    assert (a + b)[..|a + b| - 1] == a + b[..|b| - 1];
    bytes_plus(a, b[..|b| - 1]);
  }
}

lemma bytes_splice(blocks: seq<PoolBlock>, first: nat, count: nat, into: seq<PoolBlock>)
  requires first + count <= |blocks|
  ensures bytes(splice(blocks, first, count, into)) == bytes(blocks) - bytes(blocks[first..first + count]) + bytes(into)
{
  var rest := blocks[first + count..];
  assert blocks == blocks[..first] + blocks[first..first + count] + rest;
  bytes_plus(blocks[..first] + blocks[first..first + count], rest);
  bytes_plus(blocks[..first], blocks[first..first + count]);
  bytes_plus(blocks[..first] + into, rest);
  bytes_plus(blocks[..first], into);
}

lemma segment_bytes_plus(a: seq<PoolSegment>, b: seq<PoolSegment>)
  ensures segment_bytes(a + b) == segment_bytes(a) + segment_bytes(b)
{
  if |b| == 0 {
    assert a + b == a;
  } else {
    assert (a + b)[..|a + b| - 1] == a + b[..|b| - 1];
    segment_bytes_plus(a, b[..|b| - 1]);
  }
}

// Every block is well-formed by itself, if every block of `into` is.
lemma each_splice(blocks: seq<PoolBlock>, first: nat, count: nat, into: seq<PoolBlock>, granule: nat)
  requires first + count <= |blocks| && granule > 0
  requires forall i :: 0 <= i < |blocks| ==> aligned(blocks[i], granule) && plain(blocks[i])
  requires forall i :: 0 <= i < |into| ==> aligned(into[i], granule) && plain(into[i])
  ensures var after := splice(blocks, first, count, into);
    forall i :: 0 <= i < |after| ==> aligned(after[i], granule) && plain(after[i])
{
  of_splice(blocks, first, count, into);
}
