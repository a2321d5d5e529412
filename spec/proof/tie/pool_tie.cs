// Reads the output of pool_trace, runs each op on the Dafny model (block_pool_model.dfy, compiled by Dafny's own C# backend), and
// compares the answer and the hash of the whole state after every op. Exit 0 when all are equal.
using System;
using System.Numerics;
using _module;

static class PoolTie {
  static readonly BigInteger granule = 512;

  static ulong Word(BigInteger n) { return (ulong)n; }

  static ulong Hash(PoolMap map) {
    ulong hash = 0xcbf29ce484222325;
    Action<ulong> add = word => { unchecked { hash = (hash ^ word) * 0x100000001b3; } };
    foreach (var segment in map.dtor_segments.Elements) {
      add(Word(segment.dtor_base));
      add(Word(segment.dtor_size));
    }
    foreach (var block in map.dtor_blocks.Elements) {
      add(Word(block.dtor_address));
      add(Word(block.dtor_size));
      add(Word(block.dtor_requested));
      add(Word(block.dtor_segment));
      add(Word(block.dtor_stamp));
      add(Word(block.dtor_user));
      add(block.dtor_state.is_kFree ? 0ul : block.dtor_state.is_kLive ? 1ul : block.dtor_state.is_kPending ? 2ul : 3ul);
    }
    return hash;
  }

  static PoolOp Op(string[] word) {
    Func<int, BigInteger> number = i => BigInteger.Parse(word[i]);
    switch (word[0]) {
      case "G": return PoolOp.create_Grow(number(1), number(2), number(3));
      case "A": return PoolOp.create_Allocate(PoolRequest.create(number(1), number(2), word[3] == "1", number(4), number(5)));
      case "R": return PoolOp.create_Release(number(1), number(2));
      case "D": return PoolOp.create_Defer(number(1));
      case "C": return PoolOp.create_Complete(number(1), number(2));
      case "L": return PoolOp.create_Lift(number(1));
      case "W": return PoolOp.create_Lower(number(1), number(2));
      case "S": return PoolOp.create_Shrink(number(1));
      default: throw new FormatException("no such op: " + word[0]);
    }
  }

  static int Main() {
    var map = PoolMap.create(Dafny.Sequence<PoolSegment>.Empty, Dafny.Sequence<PoolBlock>.Empty);
    long ops = 0, blocks = 0, done = 0;
    for (string line; (line = Console.ReadLine()) != null; ++ops) {
      var word = line.Split(' ');
      int n = word.Length;
      Answer answer = __default.apply(map, Op(word), granule);
      map = answer.dtor_after;
      string got = answer.dtor_code.ToString().Replace("Code.", "") + " " + answer.dtor_value + " " + Hash(map);
      string must = word[n - 3] + " " + word[n - 2] + " " + word[n - 1];
      if (got != must) {
        Console.WriteLine("op " + ops + ": " + line + "\nthe Dafny model answers " + got + "\n" + map);
        return 1;
      }
      if (answer.dtor_code.is_kOk) ++done;
      blocks = Math.Max(blocks, (long)map.dtor_blocks.Count);
    }
    Console.WriteLine(ops + " ops the same, " + done + " of them successful, up to " + blocks + " blocks");
    return ops > 0 ? 0 : 1;
  }
}
