// The theorem of pages: after any operations every owned byte is in a mapped page, and every use of unmapped bytes is complete.
include "page_model.dfy"
include "stream_runs.dfy"

predicate pool_backed(pages: seq<Page>, blocks: seq<PoolBlock>) {
  forall i :: 0 <= i < |blocks| && owned(blocks[i]) ==> is_backed(pages, blocks[i])
}

predicate all_backed(m: Paged) {
  forall h :: 0 <= h < |m.world.pools| ==> pool_backed(m.pages, m.world.pools[h].blocks)
}

predicate all_reserved(m: Paged) {
  forall h, s :: 0 <= h < |m.world.pools| && s in m.world.pools[h].segments ==> is_reserved(m.pages, s.base, s.size)
}

predicate paged_safe(m: Paged, granule: nat)
  requires granule > 0
{
  safe(m.world, granule) && named(m.world) && all_backed(m) && all_reserved(m)
}

// Owned blocks that a splice puts in are backed, if owned blocks that it takes out were.
lemma splice_backed(pages: seq<Page>, blocks: seq<PoolBlock>, first: nat, count: nat, into: seq<PoolBlock>)
  requires first + count <= |blocks| && pool_backed(pages, blocks) && pool_backed(pages, into)
  ensures pool_backed(pages, splice(blocks, first, count, into))
{
  of_splice(blocks, first, count, into);
}

lemma free_at_backed(pages: seq<Page>, m: PoolMap, index: nat, stamp: nat)
  requires index < |m.blocks| && pool_backed(pages, m.blocks)
  ensures pool_backed(pages, free_at(m, index, stamp).blocks)
{
  var freed := m.blocks[index].(state := kFree, stamp := stamp, requested := 0, user := 0);
  var right := index + 1 < |m.blocks| && joins(freed, m.blocks[index + 1]);
  var left := index > 0 && joins(m.blocks[index - 1], freed);
  var first := if left then index - 1 else index;
  var last := if right then index + 2 else index + 1;
  splice_backed(pages, m.blocks, first, last - first, [whole_of(m, index, stamp, left, right)]);
}

lemma restate_backed(pages: seq<Page>, m: PoolMap, i: nat, state: PoolState)
  requires i < |m.blocks| && pool_backed(pages, m.blocks) && owned(m.blocks[i])
  ensures pool_backed(pages, restate(m, i, state).blocks)
{
  assert is_backed(pages, m.blocks[i]);
  splice_backed(pages, m.blocks, i, 1, [m.blocks[i].(state := state)]);
}

lemma grow_backed(pages: seq<Page>, m: PoolMap, base: nat, size: nat)
  requires pool_backed(pages, m.blocks)
  ensures pool_backed(pages, grow(m, base, size, 0).after.blocks)
{
  splice_backed(pages, m.blocks, first_block_from(m.blocks, base, 0), 0, [PoolBlock(base, size, 0, base, 0, 0, kFree)]);
}

lemma shrink_backed(pages: seq<Page>, m: PoolMap, base: nat)
  requires pool_backed(pages, m.blocks)
  ensures pool_backed(pages, shrink(m, base).after.blocks)
{
  var i := at(m.blocks, base, 0);
  if i < |m.blocks| { splice_backed(pages, m.blocks, i, 1, []); }
}

// One heap changes.
lemma heap_backed(m: Paged, a: Paged, h: nat)
  requires all_backed(m) && all_reserved(m) && h < |m.world.pools| && |a.world.pools| == |m.world.pools|
  requires a.pages == m.pages && forall g :: 0 <= g < |m.world.pools| && g != h ==> a.world.pools[g] == m.world.pools[g]
  requires pool_backed(a.pages, a.world.pools[h].blocks)
  requires forall s :: s in a.world.pools[h].segments ==> is_reserved(a.pages, s.base, s.size)
  ensures all_backed(a) && all_reserved(a)
{
}

lemma extend_backed(m: Paged, h: nat, base: nat, size: nat, granule: nat)
  requires shaped(m.world) && granule > 0 && h < |m.world.issued| && all_backed(m) && all_reserved(m)
  requires is_reserved(m.pages, base, size)
  ensures var a := m.(world := extend(m.world, h, base, size, granule)); all_backed(a) && all_reserved(a)
{
  var w := m.world;
  if unused(w, base, size) && allowed(w.pools[h], Grow(base, size, 0), granule) {
    grow_backed(m.pages, w.pools[h], base, size);
    grow_segments(w.pools[h], base, size);
    heap_backed(m, m.(world := w.(pools := w.pools[h := grow(w.pools[h], base, size, 0).after])), h);
  }
}

lemma give_back_backed(m: Paged, h: nat, base: nat, granule: nat)
  requires shaped(m.world) && granule > 0 && h < |m.world.issued| && all_backed(m) && all_reserved(m)
  requires valid(m.world.pools[h], granule)
  ensures var a := m.(world := give_back(m.world, h, base)); all_backed(a) && all_reserved(a)
{
  var w := m.world;
  if rests(w, h, base) {
    shrink_backed(m.pages, w.pools[h], base);
    assert tiling(w.pools[h]) by { reveal valid(); }
    shrink_segments(w.pools[h], base);
    heap_backed(m, m.(world := w.(pools := w.pools[h := shrink(w.pools[h], base).after])), h);
  }
}

lemma take_backed(m: Paged, h: nat, i: nat, t: nat, request: PoolRequest, granule: nat)
  requires shaped(m.world) && granule > 0 && h < |m.world.issued| && t < |m.world.issued| && i < |m.world.pools[h].blocks|
  requires all_backed(m) && all_reserved(m) && may_step(m, Take(h, i, t, request))
  ensures var a := m.(world := take(m.world, h, i, t, request)); all_backed(a) && all_reserved(a)
{
  var blocks := m.world.pools[h].blocks;
  var mine := request.(user := |m.world.owners|);
  if fits(blocks[i], request) {
    var asked, got := carve(blocks[i], request), carve(blocks[i], mine);
    assert got[0].address == asked[0].address && got[0].size == asked[0].size;
    assert is_backed(m.pages, got[0]);
    splice_backed(m.pages, blocks, i, 1, got);
  }
}

lemma give_backed(m: Paged, h: nat, i: nat)
  requires shaped(m.world) && h < |m.world.issued| && i < |m.world.pools[h].blocks| && all_backed(m) && all_reserved(m)
  ensures var a := m.(world := give(m.world, h, i)); all_backed(a) && all_reserved(a)
{
  free_at_backed(m.pages, m.world.pools[h], i, m.world.issued[h]);
  if owned(m.world.pools[h].blocks[i]) { restate_backed(m.pages, m.world.pools[h], i, kPending); }
}

lemma settle_backed(m: Paged, h: nat, i: nat)
  requires shaped(m.world) && h < |m.world.issued| && i < |m.world.pools[h].blocks| && all_backed(m) && all_reserved(m)
  ensures var a := m.(world := settle(m.world, h, i)); all_backed(a) && all_reserved(a)
{
  free_at_backed(m.pages, m.world.pools[h], i, m.world.issued[h]);
}

lemma adopt_backed(m: Paged, h: nat, g: nat, base: nat, size: nat, granule: nat)
  requires shaped(m.world) && granule > 0 && h < |m.world.issued| && g < |m.world.issued| && all_backed(m) && all_reserved(m)
  requires valid(m.world.pools[h], granule) && is_reserved(m.pages, base, size)
  ensures var a := m.(world := adopt(m.world, h, g, base, size, granule)); all_backed(a) && all_reserved(a)
{
  give_back_backed(m, h, base, granule);
  extend_backed(m.(world := give_back(m.world, h, base)), g, base, size, granule);
}

lemma world_backed(m: Paged, op: WorldOp, granule: nat)
  requires granule > 0 && shaped(m.world) && heaps_valid(m.world.pools, granule) && all_backed(m) && all_reserved(m)
  requires may_step(m, op)
  ensures var a := m.(world := step(m.world, op, granule)); all_backed(a) && all_reserved(a)
{
  if step(m.world, op, granule) != m.world {
    match op
    case Progress(s) =>
    case Record(s) =>
    case Wait(t, e) =>
    case Kernel(h, i, t) =>
    case Announce(h, i, t) =>
    case Take(h, i, t, request) => take_backed(m, h, i, t, request, granule);
    case Give(h, i) => give_backed(m, h, i);
    case Settle(h, i) => settle_backed(m, h, i);
    case Extend(h, base, size) => extend_backed(m, h, base, size, granule);
    case GiveBack(h, base) => give_back_backed(m, h, base, granule);
    case Adopt(h, g, base, size) => adopt_backed(m, h, g, base, size, granule);
  }
}

// Mapping and unmapping pages does not move them.
lemma remapped(m: Paged, p: nat, mapped: bool)
  requires p < |m.pages| && all_reserved(m)
  ensures all_reserved(m.(pages := m.pages[p := m.pages[p].(mapped := mapped)]))
{
  var pages := m.pages[p := m.pages[p].(mapped := mapped)];
  forall x: nat | has_page(m.pages, x)
    ensures has_page(pages, x)
  {
    var q :| 0 <= q < |m.pages| && m.pages[q].base <= x < m.pages[q].base + m.pages[q].size;
    assert pages[q].base <= x < pages[q].base + pages[q].size;
  }
}

lemma page_step_keeps(m: Paged, op: PageOp, granule: nat)
  requires granule > 0 && paged_safe(m, granule)
  ensures paged_safe(page_step(m, op, granule), granule)
{
  match op
  case MapPage(p) => if p < |m.pages| { remapped(m, p, true); map_backed(m, p); }
  case UnmapPage(p) => if p < |m.pages| { remapped(m, p, false); unmap_backed(m, p); }
  case InWorld(inner) =>
    if may_step(m, inner) {
      step_keeps(m.world, inner, granule);
      world_backed(m, inner, granule);
    }
}

lemma map_backed(m: Paged, p: nat)
  requires p < |m.pages| && all_backed(m)
  ensures all_backed(map_page(m, p))
{
  var a := map_page(m, p);
  forall h, i | 0 <= h < |a.world.pools| && 0 <= i < |a.world.pools[h].blocks| && owned(a.world.pools[h].blocks[i])
    ensures is_backed(a.pages, a.world.pools[h].blocks[i])
  {
    assert pool_backed(m.pages, m.world.pools[h].blocks) && is_backed(m.pages, m.world.pools[h].blocks[i]);
  }
}

// No page that an owned block touches is unmapped.
lemma unmap_backed(m: Paged, p: nat)
  requires shaped(m.world) && p < |m.pages| && all_backed(m)
  ensures all_backed(unmap_page(m, p))
{
  var a := unmap_page(m, p);
  forall h, i | 0 <= h < |a.world.pools| && 0 <= i < |a.world.pools[h].blocks| && owned(a.world.pools[h].blocks[i])
    ensures is_backed(a.pages, a.world.pools[h].blocks[i])
  {
    assert pool_backed(m.pages, m.world.pools[h].blocks) && is_backed(m.pages, m.world.pools[h].blocks[i]);
  }
}

function paged_after(n: nat, pages: seq<Page>, ops: seq<PageOp>, granule: nat): (m: Paged)
  requires granule > 0
  ensures paged_safe(m, granule)
{
  if |ops| == 0 then
    at_rest_safe(n, granule);
    Paged(at_rest(n), pages)
  else
    var before := paged_after(n, pages, ops[..|ops| - 1], granule);
    page_step_keeps(before, ops[|ops| - 1], granule);
    page_step(before, ops[|ops| - 1], granule)
}

// C1 for pages: every owned byte lies in a mapped page.
lemma owned_bytes_mapped(m: Paged, h: nat, i: nat, x: nat, granule: nat)
  requires granule > 0 && paged_safe(m, granule) && h < |m.world.pools| && i < |m.world.pools[h].blocks|
  requires owned(m.world.pools[h].blocks[i]) && m.world.pools[h].blocks[i].address <= x < end(m.world.pools[h].blocks[i])
  ensures exists p :: 0 <= p < |m.pages| && m.pages[p].mapped && m.pages[p].base <= x < m.pages[p].base + m.pages[p].size
{
  assert tiling(m.world.pools[h]) by { reveal valid(); }
  var s := home(m.world.pools[h], i);
  assert is_reserved(m.pages, s.base, s.size) && has_page(m.pages, x);
  var p :| 0 <= p < |m.pages| && m.pages[p].base <= x < m.pages[p].base + m.pages[p].size;
  assert pool_backed(m.pages, m.world.pools[h].blocks) && is_backed(m.pages, m.world.pools[h].blocks[i]);
  assert touches(m.pages[p], m.world.pools[h].blocks[i]);
}

// The block that holds a byte of a segment, found from any block of it.
lemma walk_to(m: PoolMap, s: PoolSegment, i: nat, x: nat) returns (k: nat)
  requires tiling(m) && s in m.segments && s.base <= x < s.base + s.size
  requires i < |m.blocks| && m.blocks[i].segment == s.base && m.blocks[i].address <= x
  ensures k < |m.blocks| && m.blocks[k].address <= x < end(m.blocks[k])
  decreases |m.blocks| - i
{
  if x < end(m.blocks[i]) { return i; }
  if i + 1 < |m.blocks| { assert meets(m.segments, m.blocks[i], m.blocks[i + 1]); }
  if i + 1 == |m.blocks| || m.blocks[i + 1].segment != s.base {
    assert ends(m.segments, m.blocks[i]);
    var t :| t in m.segments && t.base == s.base && t.base + t.size == end(m.blocks[i]);
    segments_apart(m.segments, s, t);
  }
  k := walk_to(m, s, i + 1, x);
}

lemma first_of(m: PoolMap, i: nat) returns (k: nat)
  requires tiling(m) && i < |m.blocks|
  ensures k < |m.blocks| && m.blocks[k].segment == m.blocks[i].segment == m.blocks[k].address
{
  if i > 0 { assert meets(m.segments, m.blocks[i - 1], m.blocks[i]); }
  if i > 0 && m.blocks[i - 1].segment == m.blocks[i].segment { k := first_of(m, i - 1); } else { k := i; }
}

lemma block_of_byte(m: PoolMap, s: PoolSegment, x: nat) returns (k: nat)
  requires tiling(m) && s in m.segments && s.base <= x < s.base + s.size
  ensures k < |m.blocks| && m.blocks[k].address <= x < end(m.blocks[k])
{
  var t :| 0 <= t < |m.segments| && m.segments[t] == s;
  assert has_blocks(m.blocks, m.segments[t].base);
  var i :| 0 <= i < |m.blocks| && m.blocks[i].segment == s.base;
  var f := first_of(m, i);
  k := walk_to(m, s, f, x);
}

// Every use of unmapped bytes is complete.
lemma spare_is_at_rest(w: World, page: Page, k: nat, granule: nat)
  requires granule > 0 && safe(w, granule) && is_spare(w, page) && k < |w.history|
  requires w.history[k].lo < page.base + page.size && page.base < w.history[k].hi && page.size > 0
  ensures complete_use(w.done, w.history[k])
{
  var u := w.history[k];
  if !complete_use(w.done, u) {
    var x := if u.lo < page.base then page.base else u.lo;
    assert u.lo <= x < u.hi && mapped(w.pools, x);
    var h :| 0 <= h < |w.pools| && has_byte(w.pools[h].segments, x);
    var s :| s in w.pools[h].segments && s.base <= x < s.base + s.size;
    assert tiling(w.pools[h]) by { reveal valid(); }
    var i := block_of_byte(w.pools[h], s, x);
    assert touches(page, w.pools[h].blocks[i]);
    assert knows(w, h, w.pools[h].blocks[i]) && known(w, h, w.pools[h].blocks[i], u);
  }
}
