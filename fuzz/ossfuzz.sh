#!/usr/bin/env bash
# Builds every fuzz target by the contract of OSS-Fuzz and ClusterFuzzLite; their build.sh calls only this script.
#
# Reads from the environment: CC, CXX, CFLAGS, CXXFLAGS (used unchanged), LIB_FUZZING_ENGINE (linked as it is), OUT, and
# WORK for the build tree. SANITIZER and FUZZING_ENGINE are not read: the flags already carry their meaning.
# Leaves in $OUT for each target: the program, NAME_seed_corpus.zip, NAME.dict, NAME.options.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
: "${CC:?}" "${CXX:?}" "${LIB_FUZZING_ENGINE:?}" "${OUT:?}"
export CFLAGS=${CFLAGS:-} CXXFLAGS=${CXXFLAGS:-}  # CMake takes both from the environment
build=${WORK:-$root/build}/ossfuzz

rm -rf "$build"
# Build type None adds no flags.
cmake -S "$root" -B "$build" -G Ninja "-DCMAKE_C_COMPILER=$CC" "-DCMAKE_CXX_COMPILER=$CXX" -DCMAKE_BUILD_TYPE=None \
  "-DASHLAR_FUZZING_ENGINE=$LIB_FUZZING_ENGINE" -DASHLAR_BUILD_FUZZERS=ON -DASHLAR_BUILD_TOOL=OFF -DASHLAR_INSTALL=OFF \
  -DASHLAR_WERROR=OFF -DASHLAR_ASSERTIONS=ON -DASHLAR_VALIDATION=ON \
  -DZLIB_USE_STATIC_LIBS=ON  # the image where the targets run does not have the libraries they were built with
cmake --build "$build" --target fuzzers
cmake --install "$build" --component ashlar_fuzzers --prefix "$OUT"
