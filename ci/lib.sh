# shellcheck shell=bash
# What the scripts of ci/ share. They source it; it changes to the project's root. `caller` is the folder that the script was
# called from: a relative path among its arguments is relative to that.
set -euo pipefail
# shellcheck disable=SC2034  # for those who source this
caller=$PWD
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

# path_of PATH: the caller's path as an absolute one; an empty one stays empty.
path_of() { case $1 in /* | '') echo "$1" ;; *) echo "$caller/$1" ;; esac; }

# flag_of FLAG NAME...: a command's argument with the caller's path in it as an absolute one, where it is --NAME=PATH or -NAME=PATH.
flag_of() {
  local flag=$1 name
  shift
  for name in "$@"; do
    if [[ $flag =~ ^(--?$name=)(.+)$ ]]; then echo "${BASH_REMATCH[1]}$(path_of "${BASH_REMATCH[2]}")"; return; fi
  done
  echo "$flag"
}

# begin_timing, time_taken: the second prints how long it is since the script began, on how many cores, and whether what was built
# meanwhile was cold: with a warm build ccache has most of the objects, or nothing is compiled.
from_ccache() {
  { ccache --print-stats 2>/dev/null || true; } |
    awk '$1 ~ /^(direct|preprocessed)_cache_hit$/ { hits += $2 } $1 == "cache_miss" { misses += $2 } END { print hits + 0, misses + 0 }'
}
begin_timing() { read -r hits_before misses_before < <(from_ccache); }
time_taken() {
  local hits misses build=warm
  read -r hits misses < <(from_ccache)
  hits=$((hits - hits_before)) misses=$((misses - misses_before))
  if ! command -v ccache >/dev/null; then
    echo "time: $((SECONDS / 60)) min $((SECONDS % 60)) s on $(nproc) cores, without ccache"
    return
  fi
  if (( misses > hits )); then build=cold; fi
  echo "time: $((SECONDS / 60)) min $((SECONDS % 60)) s on $(nproc) cores, $build: $hits of $((hits + misses)) compilations from ccache"
}

# is_terminal: whether a line on stderr can be drawn over.
is_terminal() { [[ -t 2 && ${TERM:-dumb} != dumb ]]; }

# counted WHAT LOG COMMAND...: runs a build with its output in LOG, and shows on stderr how far ninja is: one line that is drawn
# over on a terminal and cleared at the end, elsewhere a line every half minute. The exit status is the command's.
counted() {
  local what=$1 log=$2
  shift 2
  "$@" 2>&1 </dev/null | tee "$log" | {
    local line started=$SECONDS said=$SECONDS
    while IFS= read -r line; do
      if [[ ! $line =~ ^\[([0-9]+)/([0-9]+)\] ]]; then continue; fi
      line="[${BASH_REMATCH[1]}/${BASH_REMATCH[2]}] $what, $((SECONDS - started)) s"
      if is_terminal; then
        printf '\r\033[K%s' "$line" >&2
      elif (( SECONDS - said >= 30 )); then
        said=$SECONDS
        note "$line"
      fi
    done
    if is_terminal; then printf '\r\033[K' >&2; fi
  }
}

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
