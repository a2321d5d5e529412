#!/usr/bin/env bash
# Compiles the GPU's kernels with nvcc, so that no line of them is first compiled on the day a GPU comes.
#
#   device_kernels_nvcc_test.sh ROOT GENERATED FOLDER   ROOT: the sources; GENERATED: CMake's headers; FOLDER: for the object
#
# Does not prove that they compute anything: device_kernels_test does, on the host. Exit 77 (skipped) where nvcc is missing.
set -euo pipefail
root=$1 generated=$2 folder=$3
nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null || true)
if [[ -z $nvcc ]]; then echo "nvcc is missing"; exit 77; fi
"$nvcc" -std=c++20 --expt-relaxed-constexpr --extended-lambda -Werror all-warnings -Wno-deprecated-gpu-targets \
  -Xcompiler -Wall,-Wextra -DASHLAR_STATIC_DEFINE -DASHLAR_ASSERTIONS=0 -DASHLAR_VALIDATION=0 \
  "-I$root" "-I$root/src" "-I$generated" -c "$root/src/cuda_backend/device_kernels.cu" -o "$folder/device_kernels.o"
echo "compiled: $(wc -c <"$folder/device_kernels.o") bytes"
