#!/usr/bin/env bash
# Holds the tree to one name for one thing.
#
#   names_test.sh [ROOT]         checks the tree at ROOT (default: the one this file is in)
#   names_test.sh --self-test    plants one violation of every sort in a copy and expects each to be reported
#
#   (a) no two C++ files have one base name, whatever their folders; the headers that users include
#       (src/ashlar/ashlar.h, src/ashlar/plan.h) may be named as their room;
#   (b) no two classes, structs or enums at namespace scope have one name, but in anonymous namespaces;
#   (c) the namespace that a file of src/ashlar opens is its room's.
# Imitates: a second `recorder.h`, a second `Recorder`, a room whose names lie elsewhere. Does not prove that one concept has
# one name; only readers see that. Skipped (77) without universal-ctags.
set -euo pipefail
if [[ $(ctags --version 2>/dev/null) != *Universal* ]]; then echo "skipped: no universal-ctags here"; exit 77; fi
here=$(cd "$(dirname "$0")/../.." && pwd)

sources() { (cd "$1" && find src spec props fuzz bench examples -name '*.h' -o -name '*.cc' 2>/dev/null | sort); }

# Types that are declared again on purpose: mains of test programs, forward declarations are no definitions.
types() {
  local copy=$1/types
  mkdir -p "$copy"
  # ctags 5.9 does not know `namespace a::inline b`.
  (cd "$2" && sources . | grep '\.h$' | while read -r file; do
    mkdir -p "$copy/$(dirname "$file")"
    sed 's/::inline v0//' "$file" >"$copy/$file"
  done)
  (cd "$copy" && find . -name '*.h' | sed 's|^\./||' | sort | ctags -L - -f - --kinds-C++=csgn --fields=+sk 2>/dev/null) |
    awk -F'\t' '$4 ~ /^[csg]$/ && $1 !~ /^__anon/ {
      scope = ""
      for (i = 5; i <= NF; i++) if ($i ~ /^(class|struct|enum):/) scope = $i
      if (scope == "") print $1, $2
    }' | sort -u
}

check() {
  local root=$1 broken=0 line scratch
  scratch=$(mktemp -d)
  while read -r line; do
    if [[ -n $line ]]; then echo "$line"; broken=$((broken + 1)); fi
  done < <(
    sources "$root" | grep -vE '^src/ashlar/[a-z]+\.h$' | awk -F/ '{ if ($NF in seen) print $0 ": another file has this name: " seen[$NF]; else seen[$NF] = $0 }'
    types "$scratch" "$root" | awk '{ if ($1 in seen && seen[$1] != $2) print $2 ": another type is named " $1 ": " seen[$1]; else seen[$1] = $2 }'
    (cd "$root" && grep -HE '^namespace ashlar' $(sources . | grep '^src/ashlar/') || true) | awk -F: '
      { file = $1; sub(/^[^:]*:/, ""); room = file
        sub(/^src\/ashlar\//, "", room)
        if (!sub(/\/[^\/]*$/, "", room)) room = ""
        gsub(/\//, "::", room)
        # plan/solve implements the public functions of plan/, in their namespace.
        want = "namespace ashlar::inline v0" (room == "" || room == "base" ? "" : "::" room) " {"
        if ($0 != want && !(room == "plan::solve" && $0 == "namespace ashlar::inline v0::plan {"))
          print file ": opens `" $0 "`, not its room'"'"'s" }'
  )
  rm -rf "$scratch"
  if (( broken > 0 )); then echo "$broken violations"; return 1; fi
  echo "$(sources "$root" | wc -l) files, each with a name of its own"
}

self_test() {
  local copy missed=0 file text expected found
  copy=$(mktemp -d)
  trap 'rm -rf "$copy"' RETURN
  while IFS='@' read -r file text expected; do
    rm -rf "${copy:?}"/*
    mkdir -p "$copy/src/ashlar" "$copy/$(dirname "$file")"
    cp -r "$1/src/ashlar/base" "$1/src/ashlar/replay" "$copy/src/ashlar/"
    printf '%b' "$text" >"$copy/$file"
    found=$(check "$copy" || true)
    if [[ $found != *"$file: $expected"* ]]; then echo "not noticed: $file with $text"; missed=1; fi
  done <<'PLANTED'
src/tool/recorder.h@struct Other {};\n@another file has this name
src/tool/planted.h@class Recorder {\n};\n@another type is named Recorder
src/tool/planted.h@enum class Code { kOne };\n@another type is named Code
src/ashlar/base/planted.h@namespace ashlar::inline v0::cache {\n}\n@opens
src/ashlar/replay/planted.h@namespace ashlar {\n}\n@opens
PLANTED
  return $missed
}

if [[ ${1:-} == --self-test ]]; then self_test "$here"; else check "${1:-$here}"; fi
