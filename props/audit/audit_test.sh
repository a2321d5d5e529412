#!/usr/bin/env bash
# Audits the allocators of this folder: sound ones break nothing, and each planted bug breaks its clause.
#
#   audit_test.sh ASHLAR FOLDER     FOLDER: where the libraries are
#
# CUB's allocator is audited where it was built: its million operations end, and the clauses that it keeps are kept.
set -euo pipefail
tool=$(realpath "$1") libraries=$(realpath "$2")
pages=$(realpath "$(dirname "$0")/../../docs")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
failures=0
complain() { echo "$*"; failures=$((failures + 1)); }

# audit CODE NAME OPTION...: into NAME.json; the command has to end with that code.
audit() {
  local wanted=$1 name=$2 code=0
  shift 2
  "$tool" audit --library "$libraries/$name.so" --cases "$name" --json "$name.json" "$@" >"$name.txt" 2>"$name.err" || code=$?
  if (( code != wanted )); then complain "$name: exit $code, not $wanted"; cat "$name.txt" "$name.err"; fi
}

for name in direct caching cuda_async cuda_pool; do audit 0 "$name"; done

# broken NAME CLAUSE WORD: the clause, whose smallest case breaks it again, and has at most 16 operations.
broken() {
  local name=$1 clause=$2 word=$3 case=$1/audit-$2.ops
  audit 1 "$name"
  if ! jq -e --arg c "$clause" --arg w "$word" '.broken[] | select(.clause == $c and (.text | contains($w)))' "$name.json" >/dev/null; then
    complain "$name: $clause with '$word' was not found"
    return
  fi
  if (( $(grep -vc '^#' "$case") > 17 )); then complain "$case is not small"; cat "$case"; fi
  "$tool" audit --library "$libraries/$name.so" "$case" --json again.json >/dev/null && complain "$case breaks nothing"
  jq -e --arg c "$clause" '.broken[0].clause == $c' again.json >/dev/null || complain "$case does not break $clause"
}
broken early_reuse C6 early-reuse
broken h1 C6 early-reuse
broken h5 C6 early-reuse
broken h33 C16 'freed twice'
broken crash crash died
broken throw crash 'audit_alloc threw: no third block'
if [[ -s throw.err ]]; then complain "throw: says more on stderr"; cat throw.err; fi
if jq -e '.broken[] | select(.clause == "C6") | .worlds | (.threads == null or .streams != null)' h5.json >/dev/null; then
  complain "h5: broken on plain streams, or not by threads"
fi

if [[ -e $libraries/cub.so ]]; then
  audit 1 cub --ops 1000000
  jq -e '.ops >= 1000000' cub.json >/dev/null || complain "cub: fewer than a million operations"
  for clause in C1 C2; do
    jq -e --arg c "$clause" '[.broken[].clause] | index($c) | not' cub.json >/dev/null || complain "cub: $clause is broken"
  done
  # On plain streams and devices it keeps every clause.
  jq -e '[.broken[].worlds | keys[]] | unique - ["captures", "deaths", "misuse", "shortage", "threads"] == []' cub.json >/dev/null ||
    complain "cub: broken in other worlds than expected"
fi

# What cannot be audited: one line, and exit 3, or another CODE.
refused() {
  local code=0 text wanted=${CODE:-3}
  text=$("$tool" audit "${@:2}" 2>&1 >/dev/null) || code=$?
  if (( code != wanted )) || [[ $text != *"$1"* ]] || (( $(wc -l <<<"$text") != 1 )); then complain "exit $code, '$text', not '$1'"; fi
}
refused 'cannot open shared object file' --library ./none.so
head -c 8000 "$libraries/direct.so" >half.so  # its data are behind that
refused 'the process died while it loaded half.so: Bus error' --library half.so
for option in --alloc --free --record-stream --empty-cache; do
  refused "direct.so has no function other (is it extern \"C\"? $option gives another name)" --library "$libraries/direct.so" "$option" other
done
refused 'has no function audit_empty_cache' --library "$libraries/direct.so" --empty-cache audit_empty_cache
echo 'ashlar-ops 1 cache
alloc' >bad.ops
refused 'bad.ops:2:' --library "$libraries/direct.so" bad.ops
if [[ -n $("$tool" audit --library "$libraries/direct.so" bad.ops 2>/dev/null) ]]; then complain "a report without a world"; fi
echo 'ashlar-ops 1 pool' >pool.ops
refused 'pool.ops: is not of an allocator' --library "$libraries/direct.so" pool.ops
CODE=2 refused '0 is too few' --library "$libraries/direct.so" --ops 0

# Standard output is the report's alone, whatever the library writes there.
"$tool" audit --library "$libraries/talk.so" --ops 1 --json - 2>/dev/null >talk.json || true
jq -e '.allocations > 3' talk.json >/dev/null || { complain "talk: no JSON"; head talk.json; }

# The cases of an earlier audit go, and nothing else does.
mkdir stale
for file in audit-C6 audit-crash audit-C99; do echo 'ashlar-ops 1 cache' >"stale/$file.ops"; done
echo 'my notes' >stale/audit-C1.ops
"$tool" audit --library "$libraries/direct.so" --cases stale --ops 1 >/dev/null || complain "stale: broken"
left=$(cd stale && echo *)
if [[ $left != 'audit-C1.ops audit-C99.ops' ]]; then complain "stale: $left is left"; fi

# An allocator that hangs has its verdict in time: one world of each sort, and a short reduction.
code=0
timeout 300 "$tool" audit --library "$libraries/loop.so" --ops 10 --json loop.json >loop.txt || code=$?
if (( code != 1 )) || ! jq -e '.broken == [.broken[] | select(.clause == "C30" and (.ops | length > 0))] and (.not_drawn | length == 7)' loop.json >/dev/null; then
  complain "loop: exit $code"
  cat loop.txt
fi
jq -e '.allocations > 0 and .judged.C1 > 0' loop.json >/dev/null || complain "loop: what it did before is not counted"

# An interrupt keeps what was found. (Without --foreground, two signals may come.)
interrupted() {
  local wanted=$1 name=$2 code=0
  timeout --foreground --preserve-status -s INT 5 "$tool" audit --library "$libraries/$name.so" --ops 1000000000 --json int.json >int.txt || code=$?
  if (( code != wanted )) || ! grep -q '^interrupted after [1-9]' int.txt || ! jq -e '.stopped_early and .ops > 0' int.json >/dev/null; then
    complain "interrupted $name: exit $code"
    cat int.txt
  fi
}
interrupted 0 direct
interrupted 1 early_reuse

# A library that cannot be loaded any more ends the audit, and what was found stays.
cp "$libraries/once.so" .
code=0
timeout 60 "$tool" audit --library ./once.so --ops 1000000000 --json once.json >once.txt 2>once.err || code=$?
if (( code != 3 )) || [[ $(<once.err) != *'once.so'*'cannot open shared object file'* ]] || ! grep -q '^interrupted after [1-9]' once.txt ||
    ! jq -e '.stopped_early and .worlds >= 1' once.json >/dev/null; then
  complain "once: exit $code"
  cat once.txt once.err
fi

# The library of the page breaks what the page says, and the functions that the page names are there.
page=$pages/audit.md
sed -n '/^\/\/ mine.cc/,/^```/p' "$page" | grep -v '^```' >mine.cc
bash -c "$(sed -n 's/^    \(g++ .*\)/\1/p' "$page")" || complain "the page's library does not build"
"$tool" audit --library ./libmine.so --ops 20000 --json mine.json >/dev/null || true
if [[ $(jq -c '[.broken[].clause] | sort' mine.json) != '["C16","C9"]' ]]; then complain "the page's library breaks others than C9 and C16"; fi
echo 'ashlar-ops 1 cache
stream s1 d0
capture-begin s0 global
alloc p1 512 s1' >capture.ops
"$tool" audit --library ./libmine.so capture.ops --json capture.json >/dev/null || true
jq -e '.broken[0].text | contains("cudaMalloc while capturing")' capture.json >/dev/null || complain "C9: the call is not named"
for name in $(sed -n '/^| of | functions/,/^$/p' "$page" | grep -o 'cuda[A-Za-z]*'); do
  nm -D --defined-only "$tool" | grep " $name\$" >/dev/null || complain "the page names $name, which is not there"
done

# Files that test nothing do not pass.
for ops in '' 'device d0 0' 'alloc p1 100 s9'; do
  printf 'ashlar-ops 1 cache\n%s\n' "$ops" >idle.ops
  code=0
  text=$("$tool" audit --library "$libraries/direct.so" idle.ops --json idle.json) || code=$?
  if (( code != 1 )) || [[ $text != *'idle.ops: nothing was judged'* ]] || [[ $(jq -c .unjudged idle.json) != '["idle.ops"]' ]]; then
    complain "idle.ops with '$ops': exit $code, '$text'"
  fi
done

exit $(( failures > 0 ))
