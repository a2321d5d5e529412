# shellcheck shell=bash
# What the scripts beside this one share; they source it and then stand in the project's root.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# A build tree that is shared by nobody needs no cache; where there is one, use it.
if command -v ccache >/dev/null && [[ -z ${CMAKE_CXX_COMPILER_LAUNCHER:-} ]]; then
  export CMAKE_CXX_COMPILER_LAUNCHER=ccache
fi
jobs=${JOBS:-$(nproc)}

# note TEXT...: one line on stderr that stands out in a log.
note() { printf '== %s\n' "$*" >&2; }

# configure_and_build PRESET [TARGET...]: -D options for the configuration come in the array `defines`, when set.
configure_and_build() {
  local preset=$1 targets=()
  shift
  if (( $# > 0 )); then targets=(--target "$@"); fi
  cmake --preset "$preset" ${defines[@]+"${defines[@]}"} &&
    cmake --build "build/$preset" -j "$jobs" "${targets[@]}"
}
