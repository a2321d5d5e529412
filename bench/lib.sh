# shellcheck shell=bash
# What bench/ratios and bench/against share; both source it and then stand in the project's root.
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
