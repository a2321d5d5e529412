#!/usr/bin/env bash
# Checks that ashlar_driver_facts says so, and exits with 2, where there is no libcuda.
#
#   without_driver_test.sh PROGRAM
#
# Imitates: a machine without a GPU. Does not prove anything about a machine with one.
set -euo pipefail

program=$1
status=0
said=$("$program" --driver=/nonexistent/libcuda.so.1 2>&1) || status=$?
if [[ $status != 2 || $said != *"no libcuda found"* ]]; then
  echo "exit $status: $said"
  exit 1
fi
status=0
"$program" --no-such-flag >/dev/null 2>&1 || status=$?
if [[ $status != 2 ]]; then
  echo "exit $status for a wrong flag"
  exit 1
fi
echo "says that there is no libcuda"
