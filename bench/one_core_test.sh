#!/usr/bin/env bash
# Runs the threads' pair on one core, where two threads never run together: each repetition is unsound, and the figure is
# neither measured nor met. Imitates a busy machine, on which the program used to end by a segmentation fault.
#
#   one_core_test.sh ASHLAR_BENCH     exit 77, skipped, without taskset or jq
set -euo pipefail
for needed in taskset jq; do
  command -v "$needed" >/dev/null || { echo "skipped: no $needed here"; exit 77; }
done
rows=$(mktemp)
trap 'rm -f "$rows"' EXIT
core=$(taskset -pc $$ | sed 's/.*: //; s/[,-].*//')
taskset -c "$core" "$1" --ratios '--benchmark_filter=^threads-pair/(ashlar|empty)' "--rows=$rows"
jq -es 'map(select(.figure | startswith("two threads on two streams, pair")))
  | length == 1 and .[0].met == false and .[0].value == "not measured: 100 of 100 repetitions left out"' "$rows"
