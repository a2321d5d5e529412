#!/usr/bin/env bash
# Runs ossfuzz.sh under an imitation of OSS-Fuzz's environment (their flags, clang 19, libFuzzer) and checks $OUT as their
# bad_build_check would: every target starts from any folder, has enough edges and enough instrumented code, and its corpus,
# dictionary and options can be read. Does not cover: their container, their libc++, engines other than libFuzzer.
#
#   ossfuzz_test.sh FOLDER [SANITIZER]     FOLDER is emptied and used; SANITIZER: address (default) or undefined
#
# Exit: 0 passed, 1 failed, 77 when clang 19 is not installed.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
folder=$1
export SANITIZER=${2:-address}
command -v clang++-19 >/dev/null || { echo "clang++-19 is not installed"; exit 77; }

# OSS-Fuzz's own bounds: a smaller figure means that the target is not instrumented, or not linked with its subject.
edges_min=100
declare -A calls_min=([address]=1000 [undefined]=168) prefix=([address]=asan [undefined]=ubsan)

case $SANITIZER in
  address) flags='-fsanitize=address -fsanitize-address-use-after-scope' ;;
  undefined) flags='-fsanitize=array-bounds,bool,builtin,enum,function,integer-divide-by-zero,null,object-size,return,returns-nonnull-attribute,shift,signed-integer-overflow,unsigned-integer-overflow,unreachable,vla-bound,vptr -fno-sanitize-recover=array-bounds,bool,builtin,enum,function,integer-divide-by-zero,null,object-size,return,returns-nonnull-attribute,shift,signed-integer-overflow,unreachable,vla-bound,vptr' ;;
  *) echo "no imitation of sanitizer $SANITIZER"; exit 1 ;;
esac
rm -rf "$folder"
mkdir -p "$folder/out" "$folder/work" "$folder/elsewhere"
folder=$(cd "$folder" && pwd)
export OUT=$folder/out WORK=$folder/work FUZZING_ENGINE=libfuzzer ARCHITECTURE=x86_64
export CC=clang-19 CXX=clang++-19 LIB_FUZZING_ENGINE=-fsanitize=fuzzer
CFLAGS="-O1 -fno-omit-frame-pointer -gline-tables-only -DFUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION"
export CFLAGS="$CFLAGS $flags -fsanitize=fuzzer-no-link"
export CXXFLAGS=$CFLAGS
bash "$here/ossfuzz.sh" >"$folder/build.log" 2>&1 || { tail -n 40 "$folder/build.log"; exit 1; }

failures=0
fail() { echo "$1: $2"; failures=$((failures + 1)); }

check_target() {
  local name=$1 log=$folder/$1.log edges calls
  if [[ ! $name =~ ^[A-Za-z0-9_-]+$ ]]; then fail "$name" "OSS-Fuzz does not accept this name"; fi
  if [[ ! -x $OUT/$name ]]; then fail "$name" "no program in \$OUT"; return; fi
  for file in "${name}_seed_corpus.zip" "$name.dict" "$name.options"; do
    if [[ ! -s $OUT/$file ]]; then fail "$name" "no $file in \$OUT"; return; fi
  done
  if ! grep -q '^\[libfuzzer\]$' "$OUT/$name.options" || ! grep -q '^max_len *= *[0-9]' "$OUT/$name.options"; then
    fail "$name" "the options file has no [libfuzzer] section with a max_len"
  fi
  mkdir -p "$folder/corpus/$name"
  if ! (cd "$folder/corpus/$name" && cmake -E tar xf "$OUT/${name}_seed_corpus.zip") ||
     [[ -z $(ls -A "$folder/corpus/$name") ]]; then
    fail "$name" "the seed corpus cannot be unpacked, or is empty"
  fi
  if ! (cd "$folder/elsewhere" && "$OUT/$name" -runs=4 -seed=1 "-dict=$OUT/$name.dict") >"$log" 2>&1 </dev/null; then
    tail -n 20 "$log"
    fail "$name" "fails within four inputs"
  fi
  if ! (cd "$folder/elsewhere" && "$OUT/$name" -runs=0 "$folder/corpus/$name") >>"$log" 2>&1 </dev/null; then
    tail -n 20 "$log"
    fail "$name" "fails on its own seeds"
  fi
  # Their images have only a C library. The C++ library is linked into their programs, and shared in ours.
  local needed
  needed=$(readelf -d "$OUT/$name" | sed -nE 's/.*\(NEEDED\).*\[(.*)\]/\1/p' |
    grep -vE '^(ld-linux-x86-64|libc|libm|libgcc_s|libstdc\+\+|libpthread|libdl|librt|libresolv)\.so' || true)
  if [[ -n $needed ]]; then fail "$name" "needs $needed, which the image where it runs does not have"; fi
  edges=$(sed -nE 's/.*Loaded [0-9]+ modules +\(([0-9]+) inline 8-bit counters\).*/\1/p' "$log" | head -n 1)
  if (( ${edges:-0} < edges_min )); then fail "$name" "${edges:-0} edges, fewer than $edges_min"; fi
  calls=$(objdump -d --no-show-raw-insn "$OUT/$name" | grep -cE "callq? .*<__${prefix[$SANITIZER]}" || true)
  if (( calls < ${calls_min[$SANITIZER]} )); then
    fail "$name" "$calls instrumented places, fewer than ${calls_min[$SANITIZER]}"
  fi
  echo "$name: $edges edges, $calls instrumented places, $(find "$folder/corpus/$name" -type f | wc -l) seeds"
}

mapfile -t targets <"$WORK/ossfuzz/fuzz/targets.txt"
if [[ -z ${targets[*]} ]]; then fail "fuzz" "no target is registered"; fi
for target in ${targets[*]}; do check_target "$target"; done
expected=$((4 * $(wc -w <<<"${targets[*]}")))
found=$(find "$OUT" -type f | wc -l)
if (( found != expected )); then fail "\$OUT" "$found files, expected $expected: $(ls "$OUT" | tr '\n' ' ')"; fi
(( failures == 0 ))
