#!/usr/bin/env bash
# Builds runtime_program.cu with nvcc and runs it over the simulated GPU's libcudart.
#
#   runtime_program_test.sh FOLDER    FOLDER holds libcudart.so.13
#
# Imitates: a user's program that was linked with NVIDIA's library. Does not prove: anything of kernels, which never run here.
# Skipped (77) without nvcc from CUDA 13 on.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
nvcc=$(command -v nvcc || echo /usr/local/cuda-13.0/bin/nvcc)
if [[ ! -x $nvcc ]]; then echo "skipped: no nvcc here"; exit 77; fi
if ! grep -qE 'release (1[3-9]|[2-9][0-9])\.' <<<"$("$nvcc" --version)"; then echo "skipped: nvcc is older than 13"; exit 77; fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

for threads in legacy per-thread; do
  "$nvcc" -default-stream "$threads" -cudart none -o "$scratch/$threads" "$here/runtime_program.cu" -L"$1" -l:libcudart.so.13
  export LD_LIBRARY_PATH=$1
  said=$(ASHLAR_SIM_GPU="devices=2,memory=1GiB" "$scratch/$threads")
  if [[ $said != "2 devices, 1073741824 bytes, all free" ]]; then echo "$threads: $said"; exit 1; fi
  said=$("$scratch/$threads")
  if [[ $said != "1 devices, 8589934592 bytes, all free" ]]; then echo "$threads: $said"; exit 1; fi
  if ASHLAR_SIM_GPU="devices=none" "$scratch/$threads" 2>"$scratch/said"; then echo "a text that says nothing made a GPU"; exit 1; fi
  grep -q "no simulated GPU" "$scratch/said"
done
