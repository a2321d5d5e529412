// Capture pools, modelled before they are written (C8): a graph's memory is handed out only inside its pool, and stays mapped.
//
// A capture routes its streams to a heap of its own. The addresses it uses are baked into the graph, and a replay uses them
// again without asking. Graphs may share a heap: the caller must then replay them in the order of their captures.
include "stream_model.dfy"

datatype Range = Range(lo: nat, hi: nat)

datatype Graph = Graph(heap: nat, is_live: bool, streams: set<nat>, baked: seq<Range>)

datatype Captured = Captured(world: World, graphs: seq<Graph>)

// Does the heap belong to a live graph?
predicate method is_private(graphs: seq<Graph>, h: nat) {
  exists g :: 0 <= g < |graphs| && graphs[g].is_live && graphs[g].heap == h
}

// Is the stream capturing into that heap?
predicate method captures(graphs: seq<Graph>, h: nat, t: nat) {
  exists g :: 0 <= g < |graphs| && graphs[g].is_live && graphs[g].heap == h && t in graphs[g].streams
}

datatype CaptureOp =
  | BeginCapture(heap: nat, streams: set<nat>)
  | EndCapture(graph: nat)
  | Bake(graph: nat, block: nat)
  | Destroy(graph: nat)
  | InHeaps(op: WorldOp)

// What is allowed while graphs are live: a private heap serves only its captures, and keeps its segments.
predicate method may_beside(m: Captured, op: WorldOp) {
  if op.Take? then is_private(m.graphs, op.heap) ==> captures(m.graphs, op.heap, op.stream)
  else if op.GiveBack? then !is_private(m.graphs, op.heap)
  else if op.Adopt? then !is_private(m.graphs, op.heap)
  else true
}

// The address of an owned block is baked into the graph.
function method bake(m: Captured, g: nat, i: nat): Captured
  requires g < |m.graphs|
{
  var graph := m.graphs[g];
  if !graph.is_live || graph.heap >= |m.world.pools| || i >= |m.world.pools[graph.heap].blocks| then m
  else
    var block := m.world.pools[graph.heap].blocks[i];
    if !owned(block) then m
    else m.(graphs := m.graphs[g := graph.(baked := graph.baked + [Range(block.address, end(block))])])
}

function method capture_step(m: Captured, op: CaptureOp, granule: nat): Captured
  requires shaped(m.world) && granule > 0
{
  match op
  case BeginCapture(h, streams) => m.(graphs := m.graphs + [Graph(h, true, streams, [])])
  case EndCapture(g) => if g < |m.graphs| then m.(graphs := m.graphs[g := m.graphs[g].(streams := {})]) else m
  case Bake(g, i) => if g < |m.graphs| then bake(m, g, i) else m
  case Destroy(g) => if g < |m.graphs| then m.(graphs := m.graphs[g := m.graphs[g].(is_live := false)]) else m
  case InHeaps(inner) => if may_beside(m, inner) then m.(world := step(m.world, inner, granule)) else m
}
