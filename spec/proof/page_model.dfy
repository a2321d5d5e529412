// Pages, modelled before they are written: the heaps' address space is reserved, and backed page by page.
//
// Pages tile the reserved ranges; each page is mapped or not. Memory is handed out only where every page it touches is mapped.
// A page is unmapped only when every block it touches is free and its uses are complete. Within these rules pages may be
// mapped and unmapped at any time, under free blocks too.
include "stream_model.dfy"

datatype Page = Page(base: nat, size: nat, mapped: bool)

datatype Paged = Paged(world: World, pages: seq<Page>)

predicate method touches(page: Page, block: PoolBlock) {
  page.base < end(block) && block.address < page.base + page.size
}

// Is every page that the block touches mapped?
predicate method is_backed(pages: seq<Page>, block: PoolBlock) {
  forall p :: 0 <= p < |pages| && touches(pages[p], block) ==> pages[p].mapped
}

// The page is not in use: every block it touches is free, and every use of them is complete.
predicate method is_spare(w: World, page: Page)
  requires shaped(w)
{
  forall h :: 0 <= h < |w.pools| ==> forall i :: 0 <= i < |w.pools[h].blocks| ==>
    (touches(page, w.pools[h].blocks[i]) ==>
      w.pools[h].blocks[i].state == kFree && w.pools[h].blocks[i].stamp <= w.done[h])
}

predicate method is_reserved(pages: seq<Page>, base: nat, size: nat) {
  forall x :: base <= x < base + size ==> has_page(pages, x)
}

predicate method has_page(pages: seq<Page>, x: nat) {
  exists p :: 0 <= p < |pages| && pages[p].base <= x < pages[p].base + pages[p].size
}

datatype PageOp = MapPage(page: nat) | UnmapPage(page: nat) | InWorld(op: WorldOp)

function method map_page(m: Paged, p: nat): Paged
  requires p < |m.pages|
{
  m.(pages := m.pages[p := m.pages[p].(mapped := true)])
}

function method unmap_page(m: Paged, p: nat): Paged
  requires shaped(m.world) && p < |m.pages|
{
  if !is_spare(m.world, m.pages[p]) then m else m.(pages := m.pages[p := m.pages[p].(mapped := false)])
}

// The rules of the world, and two more: a block that is handed out is backed, and segments lie in reserved ranges.
predicate method may_step(m: Paged, op: WorldOp)
  requires shaped(m.world)
{
  if op.Take? then
    op.heap < |m.world.pools| ==>
      var blocks := m.world.pools[op.heap].blocks;
      op.block < |blocks| && fits(blocks[op.block], op.request) ==>
        is_backed(m.pages, carve(blocks[op.block], op.request)[0])
  else if op.Extend? then is_reserved(m.pages, op.base, op.size)
  else if op.Adopt? then is_reserved(m.pages, op.base, op.size)
  else true
}

function method page_step(m: Paged, op: PageOp, granule: nat): Paged
  requires shaped(m.world) && granule > 0
{
  match op
  case MapPage(p) => if p < |m.pages| then map_page(m, p) else m
  case UnmapPage(p) => if p < |m.pages| then unmap_page(m, p) else m
  case InWorld(inner) => if may_step(m, inner) then m.(world := step(m.world, inner, granule)) else m
}
