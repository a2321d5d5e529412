// Random operations on the compiled model of streams: every one of them comes to something. A theorem about worlds in which
// nothing can happen would be true, and worth nothing.
include "../stream_model.dfy"

method Main() {
  var names := ["progress", "record", "wait", "kernel", "announce", "take", "give", "settle", "extend", "give-back", "adopt"];
  var done := [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
  var lent, waited, seed, w, n := 0, 0, 1, at_rest(3), 0;
  while n < 4000 {
    var draws: seq<nat> := [];
    while |draws| < 6 {
      seed := (seed * 1103515245 + 12345) % 2147483648;
      draws := draws + [seed / 65536];
    }
    var h, g, t, x := draws[0] % 3, draws[1] % 3, draws[2] % 3, draws[3];
    var base := (draws[4] % 4) * 64;
    var i := if |w.pools[h].blocks| > 0 then x % |w.pools[h].blocks| else 0;
    var kind := draws[5] % 11;
    var op := if kind == 0 then Progress(t)
      else if kind == 1 then Record(t)
      else if kind == 2 then Wait(t, if |w.events| > 0 then |w.events| - 1 else 0)
      else if kind == 3 then Kernel(h, i, t)
      else if kind == 4 then Announce(h, i, t)
      else if kind == 5 then Take(h, i, t, PoolRequest(4 + x % 40, 1000, true, 1, 0))
      else if kind == 6 then Give(h, i)
      else if kind == 7 then Settle(h, i)
      else if kind == 8 then Extend(h, base, 64)
      else if kind == 9 then GiveBack(h, base)
      else Adopt(h, g, base, 64);
    var after := step(w, op, 1);
    if after != w {
      done := done[kind := done[kind] + 1];
      if kind == 5 && t != h { lent := lent + 1; }
      if kind == 6 && after.owners != w.owners { waited := waited + 1; }
    }
    w, n := after, n + 1;
  }
  var k := 0;
  while k < |names| {
    print names[k], " ", done[k], "\n";
    k := k + 1;
  }
  print "lent ", lent, "\npending ", waited, "\n";
}
