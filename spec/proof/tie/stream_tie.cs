// Reads the output of stream_trace, runs each step on the Dafny model (stream_model.dfy, compiled by Dafny's own C# backend), and
// compares the hashes of the whole worlds after every operation. The model must take each step, and refuse each step marked `!`;
// a refused step returns the same object. Exit 0 when this holds and every kind of step occurred.
using System;
using System.Collections.Generic;
using System.Numerics;
using _module;

static class StreamTie {
  static readonly BigInteger granule = 512;
  static readonly BigInteger noEnd = BigInteger.One << 64;

  static World[] worlds = new World[2];
  static ulong[] hashes = new ulong[2];
  static bool[] stale = new bool[2];
  static SortedDictionary<string, long> counts = new SortedDictionary<string, long>();

  static ulong Word(BigInteger n) { return (ulong)n; }

  static ulong Hash(World w) {
    ulong hash = 0xcbf29ce484222325;
    Action<ulong> add = word => { unchecked { hash = (hash ^ word) * 0x100000001b3; } };
    int streams = w.dtor_issued.Count;
    for (int t = 0; t < streams; ++t) {
      add(Word(w.dtor_issued.Select(t)));
      add(Word(w.dtor_done.Select(t)));
      // The work that the next work of t comes after: of its own stream, everything.
      for (int s = 0; s < streams; ++s) add(Word(s == t ? w.dtor_issued.Select(t) : w.dtor_clocks.Select(t).Select(s)));
    }
    add((ulong)w.dtor_events.Count);
    foreach (var pool in w.dtor_pools.Elements) {
      int at = 0;
      foreach (var segment in pool.dtor_segments.Elements) {
        add(Word(segment.dtor_base));
        add(Word(segment.dtor_size));
        for (; at < pool.dtor_blocks.Count; ++at) {
          var block = pool.dtor_blocks.Select(at);
          if (block.dtor_segment != segment.dtor_base) break;
          AddBlock(add, w, block);
        }
      }
      if (at != pool.dtor_blocks.Count) throw new InvalidOperationException("a block in no segment");
    }
    return hash;
  }

  static void AddBlock(Action<ulong> add, World w, PoolBlock block) {
    add(Word(block.dtor_address));
    add(Word(block.dtor_size));
    if (block.dtor_state.is_kFree) {
      add(Word(block.dtor_stamp));
      return;
    }
    var owner = w.dtor_owners.Select(block.dtor_user);
    ulong others = 0;
    foreach (var t in owner.dtor_recorded.Elements) {
      if (t != owner.dtor_stream) others |= 1ul << (int)t;
    }
    add(block.dtor_state.is_kPending ? 2ul : 1ul);
    add(Word(block.dtor_requested));
    add(Word(owner.dtor_stream));
    add(others);
    add(Word(owner.dtor_since));
    if (!block.dtor_state.is_kPending) return;
    foreach (var place in owner.dtor_until.Elements) add(Word(place));
  }

  static BigInteger Number(string word) { return ulong.Parse(word); }

  // The index of the block at that address; the number of blocks where there is none.
  static BigInteger At(World w, string heap, string address) {
    return __default.at(w.dtor_pools.Select(Number(heap)).dtor_blocks, Number(address), 0);
  }

  static WorldOp Op(World w, string letter, string[] word) {
    Func<int, BigInteger> number = i => Number(word[i]);
    switch (letter) {
      case "P": return WorldOp.create_Progress(number(2));
      case "R": return WorldOp.create_Record(number(2));
      case "V": return WorldOp.create_Wait(number(2), number(3));
      case "K": return WorldOp.create_Kernel(number(2), At(w, word[2], word[3]), number(4));
      case "N": return WorldOp.create_Announce(number(2), At(w, word[2], word[3]), number(4));
      case "T":
        var request = PoolRequest.create(number(5), noEnd, word[7] == "1", number(6), 0);
        return WorldOp.create_Take(number(2), At(w, word[2], word[3]), number(4), request);
      case "G": return WorldOp.create_Give(number(2), At(w, word[2], word[3]));
      case "S": return WorldOp.create_Settle(number(2), At(w, word[2], word[3]));
      case "E": return WorldOp.create_Extend(number(2), number(3), number(4));
      case "B": return WorldOp.create_GiveBack(number(2), number(3));
      case "A": return WorldOp.create_Adopt(number(2), number(3), number(4), number(5));
      default: throw new FormatException("no such step: " + letter);
    }
  }

  static void Count(string what) {
    long before;
    counts.TryGetValue(what, out before);
    counts[what] = before + 1;
  }

  // An error text; null if there is none.
  static string Step(string[] word) {
    int k = int.Parse(word[0]);
    bool refused = word[1][0] == '!';
    string letter = refused ? word[1].Substring(1) : word[1];
    World before = worlds[k];
    World after = __default.step(before, Op(before, letter, word), granule);
    if (ReferenceEquals(before, after) != refused) return refused ? "takes a step that is too early" : "refuses it";
    Count(word[1]);
    if (letter == "T" && !refused && word[2] != word[4]) {
      BigInteger h = Number(word[2]);
      Count(after.dtor_owners.Select(after.dtor_owners.Count - 1).dtor_since <= before.dtor_done.Select(h) ? "lent" : "lent behind a wait");
    }
    if (letter == "G" && !ReferenceEquals(before.dtor_owners, after.dtor_owners)) Count("pending");
    worlds[k] = after;
    stale[k] |= !refused;
    return null;
  }

  static string Compare(string[] word) {
    for (int k = 0; k < 2; ++k) {
      if (stale[k]) hashes[k] = Hash(worlds[k]);
      stale[k] = false;
      if (hashes[k] != ulong.Parse(word[1 + k])) return "is another after it:\n" + worlds[k];
    }
    return null;
  }

  static void Begin(string[] word) {
    for (int k = 0; k < 2; ++k) {
      worlds[k] = __default.at__rest(Number(word[1]));
      stale[k] = true;
    }
  }

  static int Main() {
    string[] kinds = {"P", "R", "V", "K", "N", "T", "G", "S", "E", "B", "A", "!K", "!G", "!S", "!E", "!B", "!A", "!T",
                      "lent", "lent behind a wait", "pending"};
    long ops = 0, steps = 0, refused = 0;
    bool isWhole = false;
    for (string line; (line = Console.ReadLine()) != null;) {
      var word = line.Split(' ');
      string wrong = null;
      if (word[0] == ".") { isWhole = true; continue; }
      if (word[0] == "W") Begin(word);
      else if (word[0] == "=") { ++ops; wrong = Compare(word); }
      else {
        wrong = Step(word);
        if (word[1][0] == '!') ++refused;
        else ++steps;
      }
      if (wrong == null) continue;
      Console.WriteLine("op " + ops + ": " + line + "\nthe Dafny model " + wrong);
      return 1;
    }
    if (!isWhole) {
      Console.WriteLine("stream_trace broke off after " + ops + " ops");
      return 1;
    }
    foreach (string kind in kinds) {
      if (counts.ContainsKey(kind)) continue;
      Console.WriteLine("never happened: " + kind);
      return 1;
    }
    Console.WriteLine(ops + " ops the same, in " + steps + " steps; " + refused + " steps refused; " + counts["A"] + " segments adopted, " +
      counts["lent"] + " blocks lent, " + counts["lent behind a wait"] + " behind a wait");
    return ops > 0 ? 0 : 1;
  }
}
