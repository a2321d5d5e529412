#!/usr/bin/env bash
# The ties of the proof to the code: the C++ side and the compiled Dafny model are in the same state after each of OPS random
# operations, for each of SEEDS seeds.
#
#   tie.sh pool POOL_TRACE [SEEDS [OPS]]        the block pool's models: the same answer and the same state
#   tie.sh stream STREAM_TRACE [SEEDS [OPS]]    the caching allocator and its model: the model of streams takes every step, and
#                                               gets to the same state
# default: 20 seeds of 100000
#
# Exit 77 (skipped) where dafny or mono's compiler is not installed. ci/figures/proof reads the line of each seed.
set -euo pipefail
tie=$1 trace=$2 seeds=${3:-20} ops=${4:-100000}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
case $tie in
  pool) model=block_pool_model ;;
  stream) model=stream_model ;;
  *) echo "usage: tie.sh pool|stream TRACE [SEEDS [OPS]]" >&2; exit 2 ;;
esac
for tool in dafny mcs mono; do
  command -v "$tool" >/dev/null || { echo "SKIPPED: $tool is not installed"; exit 77; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# /noVerify: ci/prove verifies the model; here it only runs.
dafny /noVerify /compile:2 "/out:$work/model.dll" "$here/../$model.dfy" </dev/null >"$work/log" 2>&1 ||
  { cat "$work/log"; exit 1; }
[[ -s $work/model.dll ]] || { cat "$work/log"; exit 1; }
mcs -nologo -optimize "-out:$work/tie.exe" "-r:$work/model.dll" -r:System.Numerics.dll "$here/${tie}_tie.cs"
for (( seed = 1; seed <= seeds; ++seed )); do
  printf 'seed %d: ' "$seed"
  "$trace" "$seed" "$ops" | mono "$work/tie.exe"
done
echo "tie: $ops ops on each of $seeds seeds"
