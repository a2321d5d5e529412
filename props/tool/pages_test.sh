#!/usr/bin/env bash
# Runs page_test.js with Node, which stands in for a browser.
#
#   pages_test.sh ASHLAR     exit 77, skipped, where node is missing or older than 18
set -euo pipefail
node=$(command -v node || command -v nodejs || true)
if [[ -z $node ]]; then echo "skipped: no node here"; exit 77; fi
if ! "$node" -e 'process.exit(typeof DecompressionStream === "function" && typeof Response === "function" ? 0 : 1)'; then
  echo "skipped: $("$node" --version) is older than 18"
  exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$node" "$(dirname "$0")/page_test.js" "$(realpath "$1")" "$folder"
