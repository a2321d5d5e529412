#!/usr/bin/env bash
# Checks that every #include keeps the layer order of the table in src/README.md (between the two `layers` comments).
#
#   layers_test.sh [ROOT]         checks the tree at ROOT (default: the tree that this file is in)
#   layers_test.sh --self-test    plants one forbidden include of every sort in a copy and expects each to be reported
#
# A file belongs to the deepest room of the table that contains it, and so does an included file: plan/ may not include
# plan/solve/, although that folder is inside it.
# Imitates: a change that couples two rooms unnoticed. Does not prove that a room needs what it may include; does not see
# declarations repeated by hand.
set -euo pipefail

# includes_of ROOT ROOM: prints `file|included path`, both from the root, for every include of a header of this project.
includes_of() {
  grep -rHoE --include='*.h' --include='*.cc' --include='*.in' \
    '^[[:space:]]*#[[:space:]]*include[[:space:]]*(<ashlar/|")[^">]*' "$1/$2" |
    sed -E "s|^$1/||"'; s/:[[:space:]]*#[[:space:]]*include[[:space:]]*/|/; s/\|<ashlar\//|src\/ashlar\//; s/\|"/|/'
}

check() {
  local root=$1 table
  table=$(sed -n '/<!-- layers: begin -->/,/<!-- layers: end -->/p' "$root/src/README.md" |
    grep -E '^\| *(src|spec)' || true)
  if [[ -z $table ]]; then echo "src/README.md: no layer table"; return 1; fi
  {
    sed 's/^/T/' <<<"$table"
    cut -d'|' -f2 <<<"$table" | tr -d ' ' | while read -r room; do
      if [[ -d $root/$room ]]; then includes_of "$root" "$room" || true; fi
    done | sort -u | sed 's/^/I|/'
  } | awk -F'|' '
    /^T/ { room = $2; gsub(/ /, "", room); may[room] = " " $3 " "; next }
    # The deepest room that contains the path; "" for none.
    function room_of(path,   r, best) {
      best = ""
      for (r in may) if (index(path, r "/") == 1 && length(r) > length(best)) best = r
      return best
    }
    {
      files++
      file = $2; path = $3; room = room_of(file); to = room_of(path)
      if (path !~ /\//) next                # in the same folder, or generated for it
      if (to == room && to != "") next
      if (index(may[room], " " path " ")) next
      if (to != "" && index(may[room], " " to " ")) next
      if (to == "") {                       # not in the table, as props/
        split(path, part, "/")
        if (index(may[room], " " part[1] " ")) next
      }
      print file ": " room " may not include " path
      broken++
    }
    END {
      if (!files) { print "no include was looked at"; exit 1 }
      if (broken) { print broken " of " files " includes break the layer order"; exit 1 }
      print files " includes keep the layer order"
    }'
}

self_test() {
  local copy planted file line missed=0
  copy=$(mktemp -d)
  trap 'rm -rf "$copy"' RETURN
  while read -r file line; do
    rm -rf "${copy:?}"/*
    mkdir -p "$copy/src/ashlar" "$copy/$(dirname "$file")"
    cp "$1/src/README.md" "$copy/src/"
    cp -r "$1/src/ashlar/base" "$copy/src/ashlar/"
    echo "$line" >> "$copy/$file"
    planted=$(check "$copy" || true)
    if [[ $planted != *"$file: "* ]]; then echo "not noticed: $file with $line"; missed=1; fi
  done <<'PLANTED'
src/ashlar/base/planted.h #include <ashlar/device/device.h>
src/ashlar/block/planted.h #include <ashlar/device/device.h>
src/ashlar/block/planted.cc #include "spec/ops/op.h"
src/ashlar/device/planted.h   #  include <ashlar/cache/config.h>
src/ashlar/cache/planted.h #include "props/adapter.h"
src/ashlar/cache/planted.h #include "src/tool/report.h"
src/ashlar/cache/planted.h #include <ashlar/tool/report.h>
src/ashlar/plan/planted.h #include <ashlar/device/device.h>
src/ashlar/plan/planted.h #include <ashlar/plan/solve/items.h>
src/ashlar/plan/solve/planted.h #include <ashlar/replay/router.h>
src/ashlar/replay/planted.h #include <ashlar/plan/solve/items.h>
src/ashlar/replay/planted.h #include <ashlar/cache/caching_upstream.h>
src/ashlar/plan/planted.h #include <ashlar/replay/recording.h>
spec/planted.h #include <ashlar/cache/device_cache.h>
spec/planted.h #include <ashlar/cache/caching_allocator.h>
spec/planted.h #include <ashlar/device/host_device.h>
spec/planted.h #include <ashlar/plan/plan_file.h>
spec/planted.h #include <ashlar/replay/replay.h>
PLANTED
  return $missed
}

here=$(cd "$(dirname "$0")/../.." && pwd)
if [[ ${1:-} == --self-test ]]; then self_test "$here"; else check "${1:-$here}"; fi
