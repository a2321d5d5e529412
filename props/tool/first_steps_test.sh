#!/usr/bin/env bash
# Runs the commands of docs/first-steps.md, and compares what they print with the page.
#
#   first_steps_test.sh ASHLAR [PAGE]     PAGE: default docs/first-steps.md of these sources
#
# What is run: each line `$ ...` of a fence marked `console`; the lines up to the next are what it prints. Times are not compared:
# the second column of a table, where it is ns/event, and what stands before " s" at a line's end; nor is the width of columns.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
tool=$(realpath "$1")
page=${2:-$root/docs/first-steps.md}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/bin" "$folder/clone"
ln -s "$tool" "$folder/bin/ashlar"
ln -s "$root/bench" "$folder/clone/bench"
export PATH=$folder/bin:$PATH
unset ASHLAR_ALLOC_CONF PYTORCH_CUDA_ALLOC_CONF
cd "$folder/clone"

# without_times: lines as they are compared.
without_times() {
  tr -s ' -' | awk '
    /^trace ns\/event / { timed = 1 }
    /^$/ { timed = 0 }
    { sub(/ +$/, "") }
    timed && $2 ~ /^[0-9.]+$/ { $2 = "TIME" }
    { sub(/[0-9.]+ s$/, "TIME s"); print }'
}

commands=0
# run COMMAND EXPECTED: EXPECTED is a file.
run() {
  commands=$((commands + 1))
  bash -c "$1" >"$folder/printed" 2>&1 </dev/null || { echo "\$ $1 ends with $?:"; cat "$folder/printed"; exit 1; }
  diff -u --label "the page" --label "printed" <(without_times <"$2") <(without_times <"$folder/printed") ||
    { echo "\$ $1 prints something else than the page says"; exit 1; }
}

command="" fenced=false
while IFS= read -r line; do
  if [[ $line == '```console' ]]; then fenced=true; command=""; continue; fi
  if ! $fenced; then continue; fi
  if [[ $line == '$ '* || $line == '```' ]]; then
    if [[ -n $command ]]; then run "$command" "$folder/expected"; fi
    command=${line#'$ '}
    : >"$folder/expected"
    if [[ $line == '```' ]]; then fenced=false; command=""; fi
  else
    printf '%s\n' "$line" >>"$folder/expected"
  fi
done <"$page"
if (( commands < 5 )); then echo "only $commands commands in $page"; exit 1; fi
echo "$commands commands print what $page says"
