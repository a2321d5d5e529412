#!/usr/bin/env bash
# Holds every #include to the layer order stated in src/README.md (between its two `layers` comments).
#
#   layers_test.sh [ROOT]         checks the tree at ROOT (default: the one this file is in)
#   layers_test.sh --self-test    plants one forbidden include of every sort in a copy and expects each to be reported
#
# Imitates: a change that quietly couples two rooms. Does not prove that a room needs what it may include, and sees only
# includes, not declarations repeated by hand.
set -euo pipefail

check() {
  local root=$1 table broken=0 files=0
  table=$(sed -n '/<!-- layers: begin -->/,/<!-- layers: end -->/p' "$root/src/README.md" | grep -E '^\| *(src|spec)' || true)
  if [[ -z $table ]]; then echo "src/README.md: no layer table"; return 1; fi
  local room may
  while IFS='|' read -r _ room may _; do
    room=${room// /}
    [[ -d $root/$room ]] || continue
    local file include
    while IFS=: read -r file include; do
      files=$((files + 1))
      if ! allowed "$include" "$room" "$may"; then
        echo "${file#"$root"/}: $room may not include $include"
        broken=$((broken + 1))
      fi
    # Own headers are <ashlar/...> and "..."; with -o and -H each line is `file:the include's path, from the root`.
    done < <(grep -rHoE --include='*.h' --include='*.cc' --include='*.in' \
               '^[[:space:]]*#[[:space:]]*include[[:space:]]*(<ashlar/|")[^">]*' "$root/$room" |
             sed -E 's/:[[:space:]]*#[[:space:]]*include[[:space:]]*/:/; s/:<ashlar\//:src\//; s/:"/:/')
  done <<<"$table"
  if (( files == 0 )); then echo "no include was looked at"; return 1; fi
  if (( broken > 0 )); then echo "$broken of $files includes break the layer order"; return 1; fi
  echo "$files includes keep the layer order"
}

# allowed INCLUDE ROOM "MAY MAY ...": is the path in the room itself, in a room it may use, or the very file it may use?
allowed() {
  local include=$1 one
  if [[ $include != */* ]]; then return 0; fi  # beside the file itself, or generated for it
  for one in $2 $3; do
    if [[ $include == "$one" || $include == "$one"/* ]]; then return 0; fi
  done
  return 1
}

self_test() {
  local copy planted file line missed=0
  copy=$(mktemp -d)
  trap 'rm -rf "$copy"' RETURN
  while read -r file line; do
    rm -rf "${copy:?}"/*
    mkdir -p "$copy/src" "$copy/$(dirname "$file")"
    cp "$1/src/README.md" "$copy/src/"
    cp -r "$1/src/base" "$copy/src/"
    echo "$line" >> "$copy/$file"
    planted=$(check "$copy" || true)
    if [[ $planted != *"$file: "* ]]; then echo "not noticed: $file with $line"; missed=1; fi
  done <<'PLANTED'
src/base/planted.h #include <ashlar/device/device.h>
src/block/planted.h #include <ashlar/device/device.h>
src/block/planted.cc #include "spec/ops/op.h"
src/device/planted.h   #  include <ashlar/cache/config.h>
src/cache/planted.h #include "props/adapter.h"
src/cache/planted.h #include <ashlar/tool/report.h>
src/plan/planted.h #include <ashlar/device/device.h>
src/plan/planted.h #include <ashlar/cache/caching_upstream.h>
spec/planted.h #include <ashlar/cache/stats.h>
spec/planted.h #include <ashlar/device/host_device.h>
spec/planted.h #include <ashlar/plan/plan_file.h>
spec/planted.h #include <ashlar/plan/replay.h>
PLANTED
  return $missed
}

here=$(cd "$(dirname "$0")/.." && pwd)
if [[ ${1:-} == --self-test ]]; then self_test "$here"; else check "${1:-$here}"; fi
