#!/usr/bin/env bash
# The tie of the proof to the code: the C++ model and the Dafny model, compiled, give the same answer and the same hash of the
# whole state after each of OPS random operations, for each of SEEDS seeds.
#
#   tie.sh POOL_TRACE [SEEDS [OPS]]     default: 20 seeds of 100000
#
# And in the model of streams, compiled, every operation comes to something (stream_run.dfy).
# Exit 77 (skipped) where dafny or mono's compiler is not installed. The last line is counted by ci/figures/proof.
set -euo pipefail
trace=$1 seeds=${2:-20} ops=${3:-100000}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
for tool in dafny mcs mono; do
  command -v "$tool" >/dev/null || { echo "SKIPPED: $tool is not installed"; exit 77; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# /noVerify: what it says is ci/prove's matter; here it runs.
dafny /noVerify /compile:2 "/out:$work/pool.dll" "$here/../block_pool_model.dfy" </dev/null >"$work/log" 2>&1 ||
  { cat "$work/log"; exit 1; }
[[ -s $work/pool.dll ]] || { cat "$work/log"; exit 1; }
mcs -nologo -optimize "-out:$work/tie.exe" "-r:$work/pool.dll" -r:System.Numerics.dll "$here/pool_tie.cs"
dafny /noVerify /compile:2 "/out:$work/streams.exe" "$here/stream_run.dfy" </dev/null >"$work/log" 2>&1 ||
  { cat "$work/log"; exit 1; }
mono "$work/streams.exe" | tee "$work/streams.txt"
if [[ ! -s $work/streams.txt ]] || grep -q ' 0$' "$work/streams.txt"; then echo "an operation never happens"; exit 1; fi
for (( seed = 1; seed <= seeds; ++seed )); do
  printf 'seed %d: ' "$seed"
  "$trace" "$seed" "$ops" | mono "$work/tie.exe"
done
echo "tie: $ops ops on each of $seeds seeds"
