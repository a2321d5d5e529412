# shellcheck shell=bash
# What the scripts of bench/ share; they source it and then stand in the project's root.
# shellcheck source-path=SCRIPTDIR source=../ci/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../ci/lib.sh"

# build_bench SOURCE BUILD TARGET [CMAKE FLAG...]: the benchmarks of the checkout SOURCE, in release, in the folder BUILD.
build_bench() {
  local source=$1 build=$2 target=$3
  shift 3
  cmake -S "$source" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DASHLAR_ASSERTIONS=OFF -DASHLAR_BUILD_BENCHMARKS=ON \
    -DASHLAR_BUILD_TOOL=OFF -DASHLAR_INSTALL=OFF "$@" >&2 &&
    cmake --build "$build" -j "$jobs" --target "$target" >&2
}

# The sample traces, and the further ones where they are present.
# shellcheck disable=SC2034  # for those who source this
trace_flags=("--traces=$PWD/bench/data" "--traces=$PWD/../shared/data/traces/cpu" "--traces=$PWD/../shared/data/traces/gpu")

# checkout_of REV-OR-DIR: the absolute path of its files.
checkout_of() {
  local commit folder
  if [[ -d $caller/$1 ]]; then (cd "$caller/$1" && pwd); return; fi
  if [[ -d $1 ]]; then (cd "$1" && pwd); return; fi
  commit=$(git -c "safe.directory=$PWD" rev-parse --verify --quiet "$1^{commit}") ||
    { echo "$0: $1 is neither a folder nor a revision" >&2; return 2; }
  folder=$PWD/build/against/$commit
  if [[ ! -e $folder/complete ]]; then
    rm -rf "$folder"
    mkdir -p "$folder/tree"
    git -c "safe.directory=$PWD" archive "$commit" | tar -x -C "$folder/tree"
    touch "$folder/complete"
  fi
  echo "$folder/tree"
}
