#!/usr/bin/env bash
# Writes snapshots, and reads them with Python's pickle and with a program that does as PyTorch's viewer.
#
#   read_back_test.sh EXCHANGE_FILES     exit 77, skipped, without python3 or node
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
for needed in python3 node; do
  command -v "$needed" >/dev/null || { echo "skipped: no $needed here"; exit 77; }
done
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$1" "$scratch" >"$scratch/names"
mapfile -t names <"$scratch/names"
if (( ${#names[@]} == 0 )); then echo "no snapshot was written"; exit 1; fi
python3 -B "$here/read_pickle.py" "${names[@]}"
for name in "${names[@]}"; do node "$here/viewer_replay.js" "$name"; done
