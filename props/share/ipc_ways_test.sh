#!/usr/bin/env bash
# Memory between two processes where the host or the driver lacks some of the ways: those are skipped, and the others are checked.
#
#   ipc_ways_test.sh SUITE LIBRARY ODD_LIBRARY WITHOUT_FETCHING
#
# Imitates: WSL and virtual GPUs, whose drivers refuse calls; a container whose seccomp profile refuses pidfd_getfd. Does not prove that
# either of them answers so.
set -euo pipefail
suite=$1 library=$2 odd=$3 without_fetching=$4

# says CODE LINES COMMAND...: the command exits with CODE, and prints LINES and nothing else.
says() {
  local wanted=$1 lines=$2 code=0 said
  shift 2
  said=$("$@" 2>&1) || code=$?
  if [[ $code == 77 && $wanted != 77 ]]; then echo "$said"; exit 77; fi
  if [[ $code != "$wanted" || $said != "$lines" ]]; then echo "$* exits with $code:"; echo "$said"; echo "wanted: $wanted"; echo "$lines"; exit 1; fi
}

sent="pages, descriptors sent" fetched="pages, descriptors fetched" handle="a segment of one handle" fabric="fabric handles"
whole="a whole segment" shared="the bytes are shared"
no_pages="skipped: the GPU has no virtual memory" no_calls="skipped: the driver does not support the call"

says 0 "$sent: $shared
$fetched: not permitted here (ptrace_scope, or a container's seccomp profile)
$handle: $shared
$fabric: $shared
$whole: $shared" "$without_fetching" "$suite" "$library"

ASHLAR_ODD_DRIVER=cuDeviceGetAttribute=801 says 0 "$sent: $no_pages
$fetched: $no_pages
$handle: skipped: the GPU or its driver has no virtual memory
$fabric: $no_pages
$whole: $shared" "$suite" "$odd"

ASHLAR_ODD_DRIVER=cuIpcGetMemHandle=801 says 0 "$sent: $shared
$fetched: $shared
$handle: $shared
$fabric: $shared
$whole: $no_calls" "$suite" "$odd"

ASHLAR_ODD_DRIVER=cuDeviceGetAttribute=801,cuIpcGetMemHandle=801 says 77 "$sent: $no_calls
$fetched: $no_calls
$handle: skipped: the GPU or its driver has no virtual memory
$fabric: $no_calls
$whole: $no_calls
SKIPPED: this machine has no way for memory between processes" "$suite" "$odd"
