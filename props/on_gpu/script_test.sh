#!/usr/bin/env bash
# Runs every part of ci/gpu in a copy of the tree, with the programs over the simulated GPU, and looks at the page that it writes.
#
#   script_test.sh PROGRAMS BENCH    PROGRAMS: the folder of ashlar_gpu_suite and its neighbours; BENCH: ashlar_gpu_bench
#
# Imitates: a machine with a driver's library and a GPU, whose costs and benchmark's figures are stand-ins. Does not prove that a driver answers. Exit 77
# (skipped) where jq is missing.
set -euo pipefail

command -v jq >/dev/null || { echo "jq is missing"; exit 77; }
programs=$(realpath "$1") bench=$(realpath "$2")
root=$(cd "$(dirname "$0")/../.." && pwd)
there=$(mktemp -d)
trap 'rm -rf "$there"' EXIT

# stand_in PATH: a script of what stands on standard input.
stand_in() {
  mkdir -p "$(dirname "$there/$1")"
  { echo '#!/usr/bin/env bash'; cat; } >"$there/$1"
  chmod +x "$there/$1"
}

mkdir -p "$there/reports" "$there/spec/gpu" "$there/bench" "$there/props"
cp -r "$root/ci" "$there/"
cp -r "$root/bench/gpu" "$root/bench/data" "$there/bench/"
cp "$root/spec/gpu/usual_costs.h" "$there/spec/gpu/"
for program in ashlar_gpu_suite ashlar_gpu_canaries ashlar_gpu_calibrate; do
  # A thousand worlds are a GPU's work; here ten do.
  stand_in "build/release/props/on_gpu/$program" <<PROGRAM
exec "$programs/$program" --simulated \$(sed 's/--worlds 1000/--worlds 10/' <<<"\$*")
PROGRAM
done
stand_in build/release/bench/ashlar_gpu_bench <<PROGRAM
if [[ \$1 == --events ]]; then exec "$bench" "\$@"; fi
echo '{"trace": "gpt2_train", "events": 3, "skipped": "16 MiB are free"}'
echo '{"trace": "resnet50_train", "events": 2, "ashlar_ns": 1, "cuMemAlloc_ns": 2, "cuMemAllocAsync_ns": 3, "ashlar_by_cuMemAlloc": 0.5, "ashlar_by_cuMemAllocAsync": 0.3}'
PROGRAM
stand_in build/release/bench/ashlar_driver_facts <<'PROGRAM'
for word in "$@"; do
  case $word in --out=*) out=${word#--out=} ;; esac
done
echo '{"card": "a card", "driver": "1.2", "costs": [{"call": "cuMemMap", "of": "2 MiB", "idle": {"calls": 9, "median_us": 0.5}}]}' >"$out"
PROGRAM
stand_in build/release/props/ashlar_ipc_suite <<<'echo holds'
stand_in ci/setup </dev/null
stand_in bin/cmake </dev/null
stand_in bin/compute-sanitizer <<<'while [[ $1 == -* || $1 == [0-9n]* ]]; do shift; done; set -o pipefail; "$@" | tee -a checked'
export PATH="$there/bin:$PATH"

cd "$there"

# answers CODE PART...: ci/gpu exits with CODE for the part; what it says is in the file `said`.
answers() {
  local code=0 wanted=$1
  shift
  ci/gpu "$@" >said 2>&1 || code=$?
  if [[ $code != "$wanted" ]]; then tail -n 40 said; echo "ci/gpu $* answers $code, not $wanted"; exit 1; fi
}

# Without the driver's library nothing is built. The dynamic linker of a machine that has one knows it, and is kept from saying so.
stand_in bin/ldconfig </dev/null
LD_LIBRARY_PATH='' answers 77
if [[ $(<said) != "SKIPPED: no CUDA driver: libcuda was not found" || -e build/ci ]]; then cat said; exit 1; fi

mkdir lib
: >lib/libcuda.so.1
export LD_LIBRARY_PATH=$there/lib
answers 0
page=$(<reports/gpu.md)
for wanted in "a simulated GPU" "random ops on the GPU's memory | holds" "lost-pool | holds | found" "compute-sanitizer: suites, without kernels that have to overlap and launches behind a closed gate | holds" \
    "rules agree, 0 differ" "| PageMap | 0 | 500 |" "| resnet50_train | 2 | 1 | 2 | 3 | 0.5 | 0.3 |" \
    "| gpt2_train | 3 | not run: 16 MiB are free | | | | | |"; do
  if [[ $page != *"$wanted"* ]]; then echo "reports/gpu.md lacks: $wanted"; cat reports/gpu.md; exit 1; fi
done

# Under compute-sanitizer the suite runs without the tests that may not end there.
for left_out in SpinBeforeTheyTouch AGraphsMemoryIsItsPoolsUntilItsLastLaunchIsDone; do
  if [[ $("$programs/ashlar_gpu_suite" --simulated --gtest_list_tests) != *"$left_out"* ]]; then echo "there is no test $left_out"; exit 1; fi
  if grep -q "RUN .*\.$left_out" checked; then echo "run under compute-sanitizer: $left_out"; exit 1; fi
done
if ! grep -q 'OK ] CanaryGpuTest.SeeThroughBothAddressesOfAPage' checked; then echo "compute-sanitizer did not get the suite"; exit 1; fi

# A part that fails is a failure of all, and the page says which.
stand_in build/release/props/on_gpu/ashlar_gpu_suite <<<'echo "1 FAILED TEST"; exit 1'
answers 1 suite
if ! grep -q '\*\*fails\*\* | 1 FAILED TEST' build/ci/gpu/suite.md; then cat build/ci/gpu/suite.md; exit 1; fi

# A part that does not end is ended, and the page is written all the same.
cp -r build/release build/sound
stand_in build/release/props/on_gpu/ashlar_gpu_suite <<<'exec sleep 60'
stand_in build/release/props/on_gpu/ashlar_gpu_calibrate <<<'exec sleep 60'
stand_in build/release/bench/ashlar_gpu_bench <<<'exec sleep 60'
rm reports/gpu.md
ASHLAR_GPU_LIMIT_S=2 answers 1
page=$(<reports/gpu.md)
for wanted in "the canaries themselves | **fails**: not done in 2 s |" "random ops on the GPU's memory |" \
    "**The rules were not asked**: it was not done in 2 s." "**The benchmark did not end as it should**: it was not done in 2 s."; do
  if [[ $page != *"$wanted"* ]]; then echo "reports/gpu.md lacks: $wanted"; cat reports/gpu.md; exit 1; fi
done
rm -r build/release
mv build/sound build/release

# A GPU that cannot be opened is not one that is not there.
rm reports/gpu.md
stand_in build/release/props/on_gpu/ashlar_gpu_canaries <<<'echo "FAILED: the GPU cannot be opened: error 802"; exit 1'
answers 1 report
if [[ $(<said) != *"cannot be opened: error 802"* || -e reports/gpu.md ]]; then cat said; exit 1; fi

# Without a GPU: 77, and the page keeps no figure.
stand_in build/release/props/on_gpu/ashlar_gpu_canaries <<<'echo "SKIPPED: no CUDA driver"; exit 77'
answers 77 bench
if [[ $(<said) != *"SKIPPED: no CUDA driver"* ]]; then cat said; exit 1; fi
answers 0 report
if grep -q 'agree\|holds' reports/gpu.md || ! grep -q 'No GPU was at hand' reports/gpu.md; then cat reports/gpu.md; exit 1; fi
if ! diff -q reports/gpu.md "$root/reports/gpu.md" >/dev/null && grep -q 'No GPU was at hand' "$root/reports/gpu.md"; then
  echo "reports/gpu.md is not what ci/gpu report writes"; exit 1
fi
