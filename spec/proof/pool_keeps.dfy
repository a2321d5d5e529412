// Every operation of the block pool keeps every clause: `NAME_keeps` for each of block_pool_model.dfy.
include "splice.dfy"
include "tiling.dfy"
include "arithmetic.dfy"

// An operation inside one segment that replaces `count` blocks by `into`.
lemma splice_keeps(m: PoolMap, first: nat, count: nat, into: seq<PoolBlock>, granule: nat)
  requires granule > 0 && valid(m, granule)
  requires first + count <= |m.blocks| && same_span(m.blocks, first, count, into)
  requires forall i :: first <= i < first + count ==> m.blocks[i].segment == m.blocks[first].segment
  requires forall i :: 0 <= i < |into| ==> aligned(into[i], granule) && plain(into[i])
  requires apart_free(into) && bytes(into) == bytes(m.blocks[first..first + count])
  requires first > 0 ==> !joins(m.blocks[first - 1], into[0])
  requires first + count < |m.blocks| ==> !joins(into[|into| - 1], m.blocks[first + count])
  ensures valid(m.(blocks := splice(m.blocks, first, count, into)), granule)
{
  reveal valid();
  chain_splice(m.segments, m.blocks, first, count, into);
  covered_splice(m.segments, m.blocks, first, count, into);
  apart_free_splice(m.blocks, first, count, into);
  bytes_splice(m.blocks, first, count, into);
  each_splice(m.blocks, first, count, into, granule);
}

// What is known about a block and its neighbours.
lemma around(m: PoolMap, i: nat, granule: nat)
  requires granule > 0 && valid(m, granule) && i < |m.blocks|
  ensures proper(m.blocks[i], granule)
  ensures i > 0 ==> proper(m.blocks[i - 1], granule) && beside(m.blocks[i - 1], m.blocks[i])
  ensures i > 1 ==> beside(m.blocks[i - 2], m.blocks[i - 1])
  ensures i + 1 < |m.blocks| ==> proper(m.blocks[i + 1], granule) && beside(m.blocks[i], m.blocks[i + 1])
  ensures i + 2 < |m.blocks| ==> beside(m.blocks[i + 1], m.blocks[i + 2])
{
  reveal valid();
  assert i > 0 ==> meets(m.segments, m.blocks[i - 1], m.blocks[i]);
  assert i > 1 ==> meets(m.segments, m.blocks[i - 2], m.blocks[i - 1]);
  assert i + 1 < |m.blocks| ==> meets(m.segments, m.blocks[i], m.blocks[i + 1]);
  assert i + 2 < |m.blocks| ==> meets(m.segments, m.blocks[i + 1], m.blocks[i + 2]);
}

predicate proper(block: PoolBlock, granule: nat)
  requires granule > 0
{
  aligned(block, granule) && plain(block) && block.size > 0
}

predicate beside(left: PoolBlock, right: PoolBlock) {
  !joins(left, right) && (left.segment == right.segment ==> right.address == end(left))
}

lemma bytes_of_one(block: PoolBlock)
  ensures bytes([block]) == block.size
{
  assert [block][..0] == [];
}

lemma bytes_of_two(a: PoolBlock, b: PoolBlock)
  ensures bytes([a, b]) == a.size + b.size
{
  assert [a, b] == [a] + [b];
  bytes_of_one(a);
  bytes_of_one(b);
  bytes_plus([a], [b]);
}

// What carving makes of a block; about the block alone.
lemma carve_shape(found: PoolBlock, request: PoolRequest, granule: nat)
  requires granule > 0 && aligned(found, granule) && plain(found) && fits(found, request)
  requires request.requested <= request.size && request.size > 0 && on_granule(request.size, granule)
  ensures var into := carve(found, request);
    1 <= |into| <= 2 && into[0].address == found.address && into[0].state == kLive && into[0].size > 0 &&
    into[0].segment == found.segment && aligned(into[0], granule) && plain(into[0]) &&
    (|into| == 1 ==> into[0].size == found.size) &&
    (|into| == 2 ==> into[1].address == end(into[0]) && into[0].size + into[1].size == found.size &&
      into[1].size > 0 && into[1].segment == found.segment && aligned(into[1], granule) && plain(into[1]))
{
  multiples(found.address, request.size, granule);
  multiples(request.size, found.size, granule);
}

lemma carve_bytes(found: PoolBlock, request: PoolRequest)
  requires request.size <= found.size
  ensures bytes(carve(found, request)) == found.size
{
  var into := carve(found, request);
  if |into| == 1 {
    assert into == [into[0]];
    bytes_of_one(into[0]);
  } else {
    assert into == [into[0], into[1]];
    bytes_of_two(into[0], into[1]);
  }
}

lemma carve_keeps(m: PoolMap, i: nat, request: PoolRequest, granule: nat)
  requires granule > 0 && valid(m, granule)
  requires i < |m.blocks| && fits(m.blocks[i], request)
  requires request.requested <= request.size && request.size > 0 && on_granule(request.size, granule)
  ensures valid(m.(blocks := splice(m.blocks, i, 1, carve(m.blocks[i], request))), granule)
{
  var into := carve(m.blocks[i], request);
  around(m, i, granule);
  carve_shape(m.blocks[i], request, granule);
  carve_bytes(m.blocks[i], request);
  assert m.blocks[i..i + 1] == [m.blocks[i]];
  bytes_of_one(m.blocks[i]);
  assert apart_free(into);
  assert same_span(m.blocks, i, 1, into);
  splice_keeps(m, i, 1, into, granule);
}

lemma allocate_keeps(m: PoolMap, request: PoolRequest, granule: nat)
  requires granule > 0 && valid(m, granule) && allowed(m, Allocate(request), granule)
  ensures valid(allocate(m, request).after, granule)
{
  var i := best_fit(m.blocks, request, |m.blocks|);
  if i < |m.blocks| { carve_keeps(m, i, request, granule); }
}

lemma restate_keeps(m: PoolMap, i: nat, state: PoolState, granule: nat)
  requires granule > 0 && valid(m, granule) && i < |m.blocks| && state != kFree
  requires plain(m.blocks[i].(state := state))
  ensures valid(restate(m, i, state), granule)
{
  var into := [m.blocks[i].(state := state)];
  around(m, i, granule);
  assert m.blocks[i..i + 1] == [m.blocks[i]];
  bytes_of_one(m.blocks[i]);
  bytes_of_one(into[0]);
  splice_keeps(m, i, 1, into, granule);
}

// Two adjacent blocks, joined.
lemma join_shape(left: PoolBlock, right: PoolBlock, granule: nat)
  requires granule > 0 && aligned(left, granule) && aligned(right, granule) && plain(left) && left.state == kFree
  requires right.address == end(left)
  ensures var both := join(left, right);
    both.address == left.address && end(both) == end(right) && both.size == left.size + right.size &&
    both.segment == left.segment && both.state == kFree && aligned(both, granule) && plain(both)
{
  multiples(left.size, right.size, granule);
}

// The block that free_at makes when the neighbours on these sides join.
function method whole_of(m: PoolMap, index: nat, stamp: nat, left: bool, right: bool): PoolBlock
  requires index < |m.blocks| && (left ==> index > 0) && (right ==> index + 1 < |m.blocks|)
{
  var freed := m.blocks[index].(state := kFree, stamp := stamp, requested := 0, user := 0);
  var part := if right then join(freed, m.blocks[index + 1]) else freed;
  if left then join(m.blocks[index - 1], part) else part
}

lemma whole_shape(m: PoolMap, index: nat, stamp: nat, left: bool, right: bool, granule: nat)
  requires granule > 0 && index < |m.blocks| && proper(m.blocks[index], granule)
  requires right ==> index + 1 < |m.blocks| && proper(m.blocks[index + 1], granule)
  requires right ==> m.blocks[index + 1].address == end(m.blocks[index])
  requires left ==> index > 0 && proper(m.blocks[index - 1], granule) && m.blocks[index - 1].state == kFree
  requires left ==> m.blocks[index].address == end(m.blocks[index - 1])
  requires left ==> m.blocks[index - 1].segment == m.blocks[index].segment
  ensures var whole := whole_of(m, index, stamp, left, right);
    whole.address == m.blocks[if left then index - 1 else index].address &&
    end(whole) == end(m.blocks[if right then index + 1 else index]) &&
    whole.size == (if left then m.blocks[index - 1].size else 0) + m.blocks[index].size +
      (if right then m.blocks[index + 1].size else 0) &&
    whole.segment == m.blocks[index].segment && whole.state == kFree && proper(whole, granule)
{
  var freed := m.blocks[index].(state := kFree, stamp := stamp, requested := 0, user := 0);
  var part := if right then join(freed, m.blocks[index + 1]) else freed;
  if right { join_shape(freed, m.blocks[index + 1], granule); }
  if left { join_shape(m.blocks[index - 1], part, granule); }
}

// Replaces `count` blocks by the one free block that spans them.
lemma mend_keeps(m: PoolMap, first: nat, count: nat, whole: PoolBlock, granule: nat)
  requires granule > 0 && valid(m, granule) && count > 0 && first + count <= |m.blocks|
  requires forall i :: first <= i < first + count ==> m.blocks[i].segment == whole.segment
  requires whole.address == m.blocks[first].address && end(whole) == end(m.blocks[first + count - 1])
  requires bytes(m.blocks[first..first + count]) == whole.size && proper(whole, granule)
  requires first > 0 ==> !joins(m.blocks[first - 1], whole)
  requires first + count < |m.blocks| ==> !joins(whole, m.blocks[first + count])
  ensures valid(m.(blocks := splice(m.blocks, first, count, [whole])), granule)
{
  bytes_of_one(whole);
  assert same_span(m.blocks, first, count, [whole]);
  splice_keeps(m, first, count, [whole], granule);
}

lemma free_at_keeps(m: PoolMap, index: nat, stamp: nat, granule: nat)
  requires granule > 0 && valid(m, granule) && index < |m.blocks| && m.blocks[index].state != kFree
  ensures valid(free_at(m, index, stamp), granule)
{
  var freed := m.blocks[index].(state := kFree, stamp := stamp, requested := 0, user := 0);
  var right := index + 1 < |m.blocks| && joins(freed, m.blocks[index + 1]);
  var left := index > 0 && joins(m.blocks[index - 1], freed);
  var whole := whole_of(m, index, stamp, left, right);
  around(m, index, granule);
  whole_shape(m, index, stamp, left, right, granule);
  bytes_of_neighbours(m.blocks, index);
  if left && right {
    mend_keeps(m, index - 1, 3, whole, granule);
  } else if left {
    mend_keeps(m, index - 1, 2, whole, granule);
  } else if right {
    mend_keeps(m, index, 2, whole, granule);
  } else {
    mend_keeps(m, index, 1, whole, granule);
  }
}

lemma bytes_of_neighbours(b: seq<PoolBlock>, index: nat)
  requires index < |b|
  ensures bytes(b[index..index + 1]) == b[index].size
  ensures index + 1 < |b| ==> bytes(b[index..index + 2]) == b[index].size + b[index + 1].size
  ensures index > 0 ==> bytes(b[index - 1..index + 1]) == b[index - 1].size + b[index].size
  ensures index > 0 && index + 1 < |b| ==>
    bytes(b[index - 1..index + 2]) == b[index - 1].size + b[index].size + b[index + 1].size
{
  assert b[index..index + 1] == [b[index]];
  bytes_of_one(b[index]);
  if index + 1 < |b| {
    assert b[index..index + 2] == [b[index], b[index + 1]];
    bytes_of_two(b[index], b[index + 1]);
  }
  if index > 0 {
    assert b[index - 1..index + 1] == [b[index - 1], b[index]];
    bytes_of_two(b[index - 1], b[index]);
  }
  if index > 0 && index + 1 < |b| {
    assert b[index - 1..index + 2] == b[index - 1..index + 1] + [b[index + 1]];
    bytes_of_one(b[index + 1]);
    bytes_plus(b[index - 1..index + 1], [b[index + 1]]);
  }
}

lemma release_keeps(m: PoolMap, address: nat, stamp: nat, granule: nat)
  requires granule > 0 && valid(m, granule)
  ensures valid(release(m, address, stamp).after, granule)
{
  var i := at(m.blocks, address, 0);
  if release(m, address, stamp).code == kOk { free_at_keeps(m, i, stamp, granule); }
}

lemma defer_keeps(m: PoolMap, address: nat, granule: nat)
  requires granule > 0 && valid(m, granule)
  ensures valid(defer(m, address).after, granule)
{
  var i := at(m.blocks, address, 0);
  if defer(m, address).code == kOk { around(m, i, granule); restate_keeps(m, i, kPending, granule); }
}

lemma complete_keeps(m: PoolMap, address: nat, stamp: nat, granule: nat)
  requires granule > 0 && valid(m, granule)
  ensures valid(complete(m, address, stamp).after, granule)
{
  var i := at(m.blocks, address, 0);
  if complete(m, address, stamp).code == kOk { free_at_keeps(m, i, stamp, granule); }
}

lemma lift_keeps(m: PoolMap, address: nat, granule: nat)
  requires granule > 0 && valid(m, granule)
  ensures valid(lift(m, address).after, granule)
{
  var i := at(m.blocks, address, 0);
  if lift(m, address).code == kOk { around(m, i, granule); restate_keeps(m, i, kInTransfer, granule); }
}

lemma lower_keeps(m: PoolMap, address: nat, stamp: nat, granule: nat)
  requires granule > 0 && valid(m, granule)
  ensures valid(lower(m, address, stamp).after, granule)
{
  var i := at(m.blocks, address, 0);
  if lower(m, address, stamp).code == kOk { free_at_keeps(m, i, stamp, granule); }
}
