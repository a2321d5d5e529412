#!/usr/bin/env bash
# Holds the figures of README.md to the measured rows.
#
#   readme_test.sh [ROOT]         checks the tree at ROOT (default: that of this file)
#   readme_test.sh --self-test    plants wrong figures in a copy and expects each to be reported
#
#   (a) what stands between the two markers of README.md is what ci/headlines draws from
#       reports/rows, blank lines apart;
#   (b) no number with a unit of time, memory or proportion stands elsewhere in its prose; what is
#       between ``` fences is not seen.
#
# Exit 77 (skipped) where jq is missing, which ci/headlines needs.
#
# Imitates: a figure is typed or left behind by hand after a new measurement. Does not prove that a
# row was measured as its command says.
set -euo pipefail

if ! command -v jq >/dev/null; then
  echo "jq is missing"
  exit 77
fi

check() {
  local root=$1 drawn found strays
  if ! drawn=$("$root/ci/headlines"); then
    echo "ci/headlines cannot draw the figures"
    return 1
  fi
  found=$(sed -n '/^<!-- headline figures: begin/,/^<!-- headline figures: end/p' \
    "$root/README.md" | sed -E '/^<!-- .* -->$/d; /^$/d')
  if [[ $found != "$drawn" ]]; then
    echo "README.md: the headline figures are not those of reports/rows; ci/headlines --write"
    diff <(echo "$drawn") <(echo "$found") || true
    return 1
  fi
  strays=$(awk '
    /^```/ { fenced = !fenced }
    /^<!-- headline figures: begin/ { drawn = 1 }
    /^<!-- headline figures: end/ { drawn = 0 }
    !fenced && !drawn { print "README.md:" FNR ": " $0 }' "$root/README.md" |
    grep -E '[0-9] ?(%|percent|times|x|[nmuµ]?s|seconds|[KMGT]i?B)([^A-Za-z0-9]|$)' || true)
  if [[ -n $strays ]]; then
    echo "$strays"
    echo "a figure outside of the markers: draw it with ci/headlines"
    return 1
  fi
  echo "$(($(wc -l <<<"$drawn") - 2)) headline figures are those of reports/rows"
}

# expect VERDICT WHAT COMMAND...: runs the command in a fresh copy; VERDICT says whether check then
# reports (1) or accepts (0).
expect() {
  local verdict=$1 what=$2 said
  shift 2
  rm -rf "${copy:?}"/*
  mkdir -p "$copy/ci" "$copy/reports"
  cp "$here/README.md" "$copy/"
  cp "$here/ci/lib.sh" "$here/ci/headlines" "$copy/ci/"
  cp -r "$here/reports/rows" "$copy/reports/"
  (cd "$copy" && "$@")
  if [[ $what != unchanged ]] && diff -q "$copy/README.md" "$here/README.md" >/dev/null &&
     diff -rq "$copy/reports/rows" "$here/reports/rows" >/dev/null 2>&1; then
    echo "nothing was planted: $what"
    missed=1
  fi
  if said=$(check "$copy" 2>&1); then
    if [[ $verdict == 1 ]]; then echo "not noticed: $what"; missed=1; fi
  elif [[ $verdict == 0 ]]; then
    echo "$what: reported: $said"
    missed=1
  fi
}

# in_rows FILTER: rewrites every file of rows by a jq filter.
in_rows() {
  local rows
  for rows in reports/rows/*.json; do jq "$1" "$rows" >rows.tmp && mv rows.tmp "$rows"; done
}
# append TEXT...: a line at the end of the page.
append() { echo "$*" >>README.md; }
# write_again FILTER: new rows, and the block drawn from them.
write_again() { in_rows "$1" && ci/headlines --write; }
# spoil_and_write: a wrong line in the block, which is then drawn anew.
spoil_and_write() {
  sed -i '/headline figures: begin/a | wrong |' README.md
  ci/headlines --write
  append more
}
# only_block_differs: a change before and after the block survives that the block is drawn anew.
only_block_differs() {
  sed -i '1s/.*/# Another name/' README.md
  append "the last line"
  write_again 'map(.value = "7")'
  [[ $(head -n 1 README.md) == "# Another name" && $(tail -n 1 README.md) == "the last line" ]]
}
# refused FILTER: with these rows ci/headlines writes nothing and fails.
refused() {
  cp README.md before
  in_rows "$1"
  if ci/headlines --write 2>/dev/null; then
    echo "written in spite of: $1"
    return 1
  fi
  diff before README.md && rm before
}

self_test() {
  missed=0
  copy=$(mktemp -d)
  trap 'rm -rf "$copy"' EXIT
  expect 0 unchanged true
  expect 1 'a figure of the block typed by hand' \
    sed -i '/headline figures: begin/,/headline figures: end/s/| met |/| MET |/' README.md
  expect 1 'a line of the block deleted' sed -i '/^| .* | met |/{0,//d}' README.md
  expect 1 'the whole block deleted' \
    sed -i '/headline figures: begin/,/headline figures: end/{/^|/d}' README.md
  expect 1 'a line added to the block' sed -i '/headline figures: end/i | more | 1 | | met | 0 |' \
    README.md
  expect 1 'the markers deleted' sed -i '/headline figures: /d' README.md
  expect 1 'rows measured anew' in_rows 'map(.value = "7")'
  expect 1 'rows of another commit' in_rows 'map(.commit = "0123456789ab")'
  expect 1 'a target that is missed now' in_rows 'map(.met = false)'
  expect 1 'figures renamed' refused 'map(.figure = "another")'
  expect 1 'a row twice' refused '. + .'
  expect 1 'no rows' rm -r reports/rows
  expect 1 'a share in the prose' append 'It uses 97 % of the memory.'
  expect 1 'a time in the prose' append 'A free takes 17 ns.'
  expect 1 'a factor in the prose' append 'That is 3x less.'
  expect 1 'memory in the prose' append 'It saves 2.5 GiB.'
  expect 0 'versions in the prose' append 'g++ 12, C++20, CUDA 12.4 and 3 suites'
  expect 0 'a size in code' append $'```\nallocate 10 MiB\n```'
  expect 0 'rows measured anew and written' write_again 'map(.value = "7")'
  expect 0 'a script that failed' \
    write_again 'map(.figure = "another" | .value = "could not be measured")'
  expect 0 'a wrong block written again' spoil_and_write
  expect 0 'another page around the block' only_block_differs
  return $missed
}

here=$(cd "$(dirname "$0")/../.." && pwd)
if [[ ${1:-} == --self-test ]]; then self_test; else check "$(cd "${1:-$here}" && pwd)"; fi
