# shellcheck shell=bash
# What the scripts of ci/ share. They source it; it changes to the project's root.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Uses ccache where it is installed.
if command -v ccache >/dev/null && [[ -z ${CMAKE_CXX_COMPILER_LAUNCHER:-} ]]; then
  export CMAKE_CXX_COMPILER_LAUNCHER=ccache
fi
# Or it compiles anew each source that precompiled headers belong to.
export CCACHE_SLOPPINESS=${CCACHE_SLOPPINESS:-pch_defines,time_macros}
jobs=${JOBS:-$(nproc)}

# What a command that makes worlds by the thousand is run with: glibc keeps the memory of the last one for the next, and does
# not give it back to the kernel in between, which takes up to a third of the time.
keeps_memory=(env MALLOC_TRIM_THRESHOLD_=4000000000 MALLOC_TOP_PAD_=67108864)

# note TEXT...: one line on stderr that stands out in a log.
note() { printf '== %s\n' "$*" >&2; }

# configure_and_build PRESET [TARGET...]: the array `defines`, when set, holds -D options for the configuration.
configure_and_build() {
  local preset=$1 targets=()
  shift
  if (( $# > 0 )); then targets=(--target "$@"); fi
  cmake --preset "$preset" ${defines[@]+"${defines[@]}"} &&
    cmake --build "build/$preset" -j "$jobs" "${targets[@]}" -- -k 0  # reports every error, not only the first
}

# commit: prints the commit that is measured, marked when files differ from it.
commit() {
  local id
  id=$(git -c "safe.directory=$PWD" rev-parse --short=12 HEAD 2>/dev/null) || { echo unknown; return; }
  # Files that the report itself writes do not change what it measures.
  if [[ -n $(git -c "safe.directory=$PWD" status --porcelain -uno -- . ':!reports' ':!README.md' \
      2>/dev/null) ]]; then
    id+=+changes
  fi
  echo "$id"
}

# row FIGURE VALUE TARGET MET COMMAND: one row of reports/README.md as JSON. MET is true or false, or null where the figure
# has no target.
row() {
  jq -cn --arg figure "$1" --arg value "$2" --arg target "$3" --argjson met "$4" --arg command "$5" \
    '{$figure, $value, $target, $met, $command}'
}

# at_least A B, at_most A B: compares decimals; prints true or false, as `row` expects. False for an A that is not a number
# (jq sorts null below all numbers).
at_least() { jq -n --argjson a "$1" --argjson b "$2" '($a | type) == "number" and $a >= $b'; }
at_most() { jq -n --argjson a "$1" --argjson b "$2" '($a | type) == "number" and $a <= $b'; }
