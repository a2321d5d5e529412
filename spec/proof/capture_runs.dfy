// The theorem of capture pools: after any operations the memory of a live graph is in its own heap, and so in no other.
include "capture_model.dfy"
include "stream_runs.dfy"

predicate lies_in(segments: seq<PoolSegment>, r: Range) {
  exists s :: s in segments && s.base <= r.lo && r.hi <= s.base + s.size
}

predicate kept(m: Captured) {
  forall g, r :: 0 <= g < |m.graphs| && m.graphs[g].is_live && r in m.graphs[g].baked ==>
    m.graphs[g].heap < |m.world.pools| && lies_in(m.world.pools[m.graphs[g].heap].segments, r)
}

predicate captured_safe(m: Captured, granule: nat)
  requires granule > 0
{
  safe(m.world, granule) && named(m.world) && kept(m)
}

predicate stay(w: World, a: World, h: nat) {
  h < |w.pools| && h < |a.pools| && forall s :: s in w.pools[h].segments ==> s in a.pools[h].segments
}

lemma grow_stays(m: PoolMap, base: nat, size: nat)
  ensures forall s :: s in m.segments ==> s in grow(m, base, size, 0).after.segments
{
  grow_segments(m, base, size);
}

lemma heap_stays(w: World, to: nat, p: PoolMap, h: nat)
  requires h < |w.pools| && to < |w.pools| && forall s :: s in w.pools[to].segments ==> s in p.segments
  ensures stay(w, w.(pools := w.pools[to := p]), h)
{
}

lemma extend_stays(w: World, to: nat, base: nat, size: nat, granule: nat, h: nat)
  requires granule > 0 && shaped(w) && h < |w.pools| && to < |w.issued|
  ensures stay(w, extend(w, to, base, size, granule), h)
{
  if unused(w, base, size) && allowed(w.pools[to], Grow(base, size, 0), granule) {
    var p := grow(w.pools[to], base, size, 0).after;
    grow_stays(w.pools[to], base, size);
    heap_stays(w, to, p, h);
  }
}

// Segments leave a heap only through give_back and adopt.
lemma segments_stay(w: World, op: WorldOp, granule: nat, h: nat)
  requires granule > 0 && shaped(w) && h < |w.pools|
  requires op.GiveBack? ==> op.heap != h
  requires op.Adopt? ==> op.heap != h
  ensures stay(w, step(w, op, granule), h)
{
  if step(w, op, granule) != w {
    match op
    case Progress(s) =>
    case Record(s) =>
    case Wait(t, e) =>
    case Kernel(f, i, t) =>
    case Announce(f, i, t) =>
    case Take(f, i, t, request) =>
    case Give(f, i) =>
    case Settle(f, i) =>
    case Extend(f, base, size) => extend_stays(w, f, base, size, granule, h);
    case GiveBack(f, base) =>
    case Adopt(f, to, base, size) => extend_stays(give_back(w, f, base), to, base, size, granule, h);
  }
}

lemma heaps_keep(m: Captured, op: WorldOp, granule: nat)
  requires granule > 0 && captured_safe(m, granule) && may_beside(m, op)
  ensures kept(m.(world := step(m.world, op, granule)))
{
  var a := m.(world := step(m.world, op, granule));
  forall g, r | 0 <= g < |a.graphs| && a.graphs[g].is_live && r in a.graphs[g].baked
    ensures a.graphs[g].heap < |a.world.pools| && lies_in(a.world.pools[a.graphs[g].heap].segments, r)
  {
    var h := m.graphs[g].heap;
    assert is_private(m.graphs, h) && lies_in(m.world.pools[h].segments, r);
    segments_stay(m.world, op, granule, h);
    var s :| s in m.world.pools[h].segments && s.base <= r.lo && r.hi <= s.base + s.size;
    assert s in a.world.pools[h].segments;
  }
}

lemma bake_keeps(m: Captured, g: nat, i: nat, granule: nat)
  requires granule > 0 && captured_safe(m, granule) && g < |m.graphs|
  ensures kept(bake(m, g, i))
{
  var graph := m.graphs[g];
  if bake(m, g, i) != m {
    var pool := m.world.pools[graph.heap];
    assert tiling(pool) by { reveal valid(); }
    var s := home(pool, i);
    assert lies_in(pool.segments, Range(pool.blocks[i].address, end(pool.blocks[i])));
  }
}

lemma capture_step_keeps(m: Captured, op: CaptureOp, granule: nat)
  requires granule > 0 && captured_safe(m, granule)
  ensures captured_safe(capture_step(m, op, granule), granule)
{
  match op
  case BeginCapture(h, streams) =>
  case EndCapture(g) =>
  case Bake(g, i) => if g < |m.graphs| { bake_keeps(m, g, i, granule); }
  case Destroy(g) =>
  case InHeaps(inner) =>
    if may_beside(m, inner) {
      step_keeps(m.world, inner, granule);
      heaps_keep(m, inner, granule);
    }
}

function captured_after(n: nat, ops: seq<CaptureOp>, granule: nat): (m: Captured)
  requires granule > 0
  ensures captured_safe(m, granule)
{
  if |ops| == 0 then
    at_rest_safe(n, granule);
    Captured(at_rest(n), [])
  else
    var before := captured_after(n, ops[..|ops| - 1], granule);
    capture_step_keeps(before, ops[|ops| - 1], granule);
    capture_step(before, ops[|ops| - 1], granule)
}

// C8: no block of another heap has a byte of a live graph's memory.
lemma isolated(m: Captured, granule: nat, g: nat, r: Range, h: nat, i: nat)
  requires granule > 0 && captured_safe(m, granule)
  requires g < |m.graphs| && m.graphs[g].is_live && r in m.graphs[g].baked
  requires h < |m.world.pools| && h != m.graphs[g].heap && i < |m.world.pools[h].blocks|
  ensures r.hi <= m.world.pools[h].blocks[i].address || end(m.world.pools[h].blocks[i]) <= r.lo
{
  var own := m.graphs[g].heap;
  var s :| s in m.world.pools[own].segments && s.base <= r.lo && r.hi <= s.base + s.size;
  assert tiling(m.world.pools[h]) by { reveal valid(); }
  var t := home(m.world.pools[h], i);
  assert pools_apart(m.world.pools[own], m.world.pools[h]) && clear(s, t);
}

// C8: inside its own heap only its captures are served.
lemma served_alone(m: Captured, granule: nat, op: WorldOp)
  requires granule > 0 && captured_safe(m, granule) && op.Take? && is_private(m.graphs, op.heap)
  requires !captures(m.graphs, op.heap, op.stream)
  ensures capture_step(m, InHeaps(op), granule) == m
{
}
