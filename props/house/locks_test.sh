#!/usr/bin/env bash
# Holds every lock of the library to clang's thread-safety analysis.
#
#   locks_test.sh [--include DIR] [ROOT]        checks the tree at ROOT (default: the one this file is in)
#   locks_test.sh [--include DIR] --self-test   plants one violation of every sort in a copy
#
# --include names the folder of the generated headers (base/export.h).
#   (a) every source of a room of src/ashlar that says what its locks guard compiles with -Werror=thread-safety;
#   (b) a class of cache/ or replay/ that owns a lock says of each other field which lock guards it, unless the
#       field is const, a reference, atomic or a lock, or is marked ASHLAR_UNGUARDED;
#   (c) no comment says which lock a function needs ("Locked.", "Reclaiming."): its declaration does.
# Imitates: a field read without its lock, a lock kept on one way out, a new field that nobody guards. Does not prove: that
# what the locks protect is enough, or that their order is kept; the threaded suites run under ThreadSanitizer for that.
# Skipped (77) without clang.
set -euo pipefail

include="" self=no root=""
while (( $# > 0 )); do
  case $1 in
    --include) include=$2; shift ;;
    --self-test) self=yes ;;
    *) root=$1 ;;
  esac
  shift
done
here=$(cd "$(dirname "$0")/../.." && pwd)
root=${root:-$here}
compiler=""
for name in clang++-19 clang++-16 clang++-14 clang++; do
  if command -v "$name" >/dev/null; then compiler=$name; break; fi
done
if [[ -z $compiler ]]; then echo "skipped: no clang here"; exit 77; fi

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
if [[ -z $include ]]; then
  mkdir -p "$scratch/generated/ashlar/base"
  echo '#define ASHLAR_API' >"$scratch/generated/ashlar/base/export.h"
  echo '#define ASHLAR_VERSION "0"' >"$scratch/generated/ashlar/base/version.h"
  include=$scratch/generated
fi

# analysed ROOT [FILE...]: what the compiler says of the locks, a line each.
analysed() {
  local tree=$1
  shift
  printf '%s\n' "$@" | xargs -P 2 -I{} "$compiler" -std=c++20 -fsyntax-only -Wthread-safety \
    -Wthread-safety-reference -Werror=thread-safety -DASHLAR_STATIC_DEFINE -DASHLAR_ASSERTIONS=1 \
    "-I$tree/src" "-I$include" {} 2>&1 | grep -E 'error: ' || true
}

# unguarded ROOT: fields that no lock guards, in classes that own a lock.
unguarded() {
  awk '
    FNR == 1 { depth = 0; inside = 0 }
    /^(class|struct) .*[A-Za-z]+ .*\{$/ || /^(class|struct) [A-Za-z:]+ \{$/ {
      inside = 1; owns = 0; n = 0; name = $0
    }
    inside {
      # A field: two spaces, a type, a name, perhaps a guard and an initialiser; no parenthesis of a function.
      line = $0
      guard = line ~ /ASHLAR_(GUARDED_BY\(|UNGUARDED)/
      sub(/ASHLAR_(GUARDED_BY\([^)]*\)|UNGUARDED)/, "", line)
      sub(/ *\/\/.*$/, "", line)
      if (line ~ /^  (alignas\([0-9]+\) )?(mutable )?(SpinLock|Mutex|ReclaimLock) [a-z_]+;$/) owns = 1
      else if (line ~ /^  [A-Za-z].* [a-z][a-z_0-9]* *(\[[A-Za-z0-9_]+\])?( = [^;]*|\{[^;]*\})?;$/ && line !~ /[(&]/ &&
               line !~ /^  (static|using|friend|typedef|return|enum|const |class |struct )/ && line !~ /std::atomic/ && !guard)
        field[n++] = FILENAME ":" FNR ": no lock guards" line
    }
    inside && /^\};$/ {
      if (owns) for (i = 0; i < n; i++) print field[i]
      inside = 0
    }' "$1"/src/ashlar/cache/*.h "$1"/src/ashlar/replay/*.h | sed "s|^$1/||"
}

check() {
  local tree=$1 broken=0 line sources rooms
  mapfile -t rooms < <(grep -rlE 'ASHLAR_(GUARDED_BY|REQUIRES)' "$tree"/src/ashlar --include='*.h' | xargs -n 1 dirname | sort -u)
  mapfile -t sources < <(find "${rooms[@]}" -maxdepth 1 -name '*.cc' | sort)
  while read -r line; do
    if [[ -n $line ]]; then echo "${line#"$tree"/}"; broken=$((broken + 1)); fi
  done < <(
    # Several sources at a time, which takes a fifth of the time.
    rm -f "$scratch"/joined.*
    printf '#include "%s"\n' "${sources[@]}" | split -l 8 --additional-suffix=.cc - "$scratch/joined."
    analysed "$tree" "$scratch"/joined.*
    unguarded "$tree"
    grep -nE '//.*\b(Locked|Reclaiming)[.,]' "$tree"/src/ashlar/cache/*.h "$tree"/src/ashlar/cache/*.cc |
      sed "s|^$tree/||; s|\$| (say it with ASHLAR_REQUIRES)|" || true)
  if (( broken > 0 )); then echo "$broken violations"; return 1; fi
  echo "${#sources[@]} sources keep their locks, says $compiler"
}

self_test() {
  local missed=0 copy=$scratch/copy sed_line file expected
  while IFS='@' read -r file sed_line expected; do
    rm -rf "$copy"
    mkdir -p "$copy/src"
    cp -r "$root/src/ashlar" "$copy/src/"
    sed -i "$sed_line" "$copy/$file"
    if cmp -s "$root/$file" "$copy/$file"; then echo "nothing was planted: $file $sed_line"; missed=1; fi
    # Only the file with the plant is compiled: the others are as they are in the tree itself.
    found=$( (
      [[ $file != *.cc ]] || analysed "$copy" "$copy/$file"
      unguarded "$copy"
      grep -nE '//.*\b(Locked|Reclaiming)[.,]' "$copy/$file" || true
    ) )
    if [[ $found != *"$expected"* ]]; then echo "not noticed: $file with $sed_line"; missed=1; fi
  done <<'PLANTED'
src/ashlar/cache/segment_ledger.cc@0,/  const Guard guard(lock_);/s///@requires holding
src/ashlar/cache/reclaimer.cc@0,/^  lock_.unlock();$/s///@not held on every path
src/ashlar/cache/use_tracker.cc@s/^    heap.lock.lock();$//@not held
src/ashlar/share/opened_ranges.cc@s/^  const MutexGuard guard(lock_);$//@requires holding
src/ashlar/cache/segment_ledger.h@s/Bytes charged_ ASHLAR_GUARDED_BY(lock_);/Bytes charged_;/@no lock guards
src/ashlar/cache/stream_heap.h@s#^  // Uses of a block#  // Locked. Uses of a block#@Locked.
PLANTED
  return $missed
}

if [[ $self == yes ]]; then self_test; else check "$root"; fi
