// The block pool's theorem: after any operations in any order every clause holds.
include "pool_segments.dfy"
include "pool_answers.dfy"

lemma apply_keeps(m: PoolMap, op: PoolOp, granule: nat)
  requires granule > 0 && valid(m, granule)
  ensures valid(apply(m, op, granule).after, granule)
{
  if allowed(m, op, granule) {
    match op
    case Grow(base, size, stamp) => grow_keeps(m, base, size, stamp, granule);
    case Shrink(base) => shrink_keeps(m, base, granule);
    case Allocate(request) => allocate_keeps(m, request, granule);
    case Release(address, stamp) => release_keeps(m, address, stamp, granule);
    case Defer(address) => defer_keeps(m, address, granule);
    case Complete(address, stamp) => complete_keeps(m, address, stamp, granule);
    case Lift(address) => lift_keeps(m, address, granule);
    case Lower(address, stamp) => lower_keeps(m, address, stamp, granule);
  }
}

// The state after all these operations, from an empty pool.
function method run(ops: seq<PoolOp>, granule: nat): PoolMap
  requires granule > 0
{
  if |ops| == 0 then PoolMap([], [])
  else apply(run(ops[..|ops| - 1], granule), ops[|ops| - 1], granule).after
}

lemma run_valid(ops: seq<PoolOp>, granule: nat)
  requires granule > 0
  ensures valid(run(ops, granule), granule)
{
  if |ops| == 0 {
    reveal valid();
  } else {
    run_valid(ops[..|ops| - 1], granule);
    apply_keeps(run(ops[..|ops| - 1], granule), ops[|ops| - 1], granule);
  }
}

// C1-C4 and conservation (C14), as the contract states them.
lemma clauses_hold(ops: seq<PoolOp>, granule: nat)
  requires granule > 0
  ensures var m := run(ops, granule);
    usable(m, granule) && disjoint(m) && tiling(m) && coalesced(m) && conserved(m)
{
  var m := run(ops, granule);
  run_valid(ops, granule);
  reveal valid();
  inside_holds(m);
  disjoint_holds(m);
}
