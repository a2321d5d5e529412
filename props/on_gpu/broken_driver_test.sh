#!/usr/bin/env bash
# A driver that is broken fails each suite; only a machine without a GPU, or with a driver that is too old, skips it.
#
#   broken_driver_test.sh ODD_LIBRARY PROGRAM...    ODD_LIBRARY: of props/cuda/odd_driver.cc, called libcuda.so.1
#
# Imitates: a driver whose first call answers with an error. Does not prove that a driver answers so.
set -euo pipefail
LD_LIBRARY_PATH=$(dirname "$1")
export LD_LIBRARY_PATH
shift

# ends CODE TEXT ODD: every program exits with CODE, and with a line of TEXT, over a driver that answers so.
ends() {
  local program said code
  for program in "${programs[@]}"; do
    code=0
    said=$(ASHLAR_ODD_DRIVER=$3 "$program" 2>&1) || code=$?
    if [[ $code != "$1" || $said != "$2" ]]; then echo "$program exits with $code, not $1: $said"; exit 1; fi
  done
}

programs=("$@")
broken="FAILED: the GPU cannot be opened"
ends 77 "SKIPPED: the CUDA driver has no GPU of that ordinal" cuInit=100
ends 1 "$broken: the GPU's services have not started yet (CUDA error 802)" cuInit=802
ends 1 "$broken: the CUDA driver's library is of another version than its kernel module (CUDA error 803)" cuInit=803
ends 1 "$broken: the GPU does not run with this newer CUDA driver library (CUDA error 804)" cuInit=804
ends 1 "$broken: the CUDA driver cannot be initialised" cuInit=999
ends 1 "$broken: another process has the GPU for itself (CUDA error 46)" cuDevicePrimaryCtxRetain=46
