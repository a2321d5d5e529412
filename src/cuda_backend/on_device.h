// ASHLAR_ON_DEVICE: a function that a GPU's kernels and the host call alike.
//
// Thread safety: a macro.
#pragma once

#ifdef __CUDACC__
#define ASHLAR_ON_DEVICE __host__ __device__
#else
#define ASHLAR_ON_DEVICE
#endif
