/* ashlar_torch_cpu: Ashlar as PyTorch's CPU allocator, with planned steps.
 *
 * Purpose: the C interface of the shared library libashlar_torch_cpu.so, for ctypes (ashlar_torch_cpu.py) and C++.
 * A function that answers an int answers 0, or the number of an ashlar::Code; ashlar_torch_cpu_error() says why in words.
 * Thread safety: any thread; a step begins and ends on one thread, and one step is under way at a time.
 * In a process that a fork made, such as a worker of a DataLoader, tensors are allocated anew, and what the
 * parent allocated stays as it is; there is no recording and no plan there.
 */
#ifndef ASHLAR_TORCH_CPU_H
#define ASHLAR_TORCH_CPU_H

#include <stdint.h>

#ifdef __cplusplus
#define ASHLAR_TORCH_CPU_API extern "C" __attribute__((visibility("default")))
#else
#define ASHLAR_TORCH_CPU_API __attribute__((visibility("default")))
#endif

/* What is counted, in bytes where a name says so. */
/* NOLINTNEXTLINE(modernize-use-using): C */
typedef struct ashlar_torch_cpu_stats {
  uint64_t allocations;         /* made so far */
  uint64_t allocated_bytes;     /* live now */
  uint64_t reserved_bytes;      /* held of the kernel now */
  uint64_t reserved_bytes_peak; /* the most since the beginning, or since the last reset */
  uint64_t refused_frees; /* of memory that is not live here, the parent's after a fork among it */
  /* The planned step. */
  uint64_t step_allocations; /* that the recorded step made */
  uint64_t step_unmanaged;  /* of those, the ones that it left live: the plan does not place them */
  uint64_t live_bytes_peak; /* the most that its planned allocations ask for at a time */
  uint64_t lower_bound_bytes; /* no plan has less */
  uint64_t plan_bytes;        /* the plan's peak */
  /* Replayed steps. */
  uint64_t served;    /* allocations at their planned place */
  uint64_t fallbacks; /* allocations that were not as recorded, and came from the allocator */
  uint64_t skipped;   /* recorded allocations that were not made */
  uint64_t late;      /* planned memory that was live for longer than recorded */
} ashlar_torch_cpu_stats;

enum {
  ASHLAR_TORCH_CPU_RECORD = 1,   /* record a step, and plan it at its end */
  ASHLAR_TORCH_CPU_VALIDATE = 2, /* compare a step with the recorded one */
  ASHLAR_TORCH_CPU_REPLAY = 3    /* serve a step by the plan */
};

/* Makes it the CPU allocator of this process's tensors. Those that exist keep their memory and free it as before.
 * A second call has no effect. REQUIRES: no other thread allocates tensors meanwhile. */
ASHLAR_TORCH_CPU_API int ashlar_torch_cpu_install(void);
/* Begins a step on the calling thread. */
ASHLAR_TORCH_CPU_API int ashlar_torch_cpu_begin(int step);
/* Ends it. A recorded step is planned for at most plan_ms milliseconds. */
ASHLAR_TORCH_CPU_API int ashlar_torch_cpu_end(uint32_t plan_ms);
/* How the validated step first differs from the recorded one; empty if it does not. The text stays until the
 * calling thread asks again. */
ASHLAR_TORCH_CPU_API const char* ashlar_torch_cpu_difference(void);
/* Fills in the figures. */
ASHLAR_TORCH_CPU_API int ashlar_torch_cpu_get_stats(ashlar_torch_cpu_stats* stats);
/* Begins peaks anew. */
ASHLAR_TORCH_CPU_API int ashlar_torch_cpu_reset_peaks(void);
/* Gives idle memory back to the kernel. */
ASHLAR_TORCH_CPU_API int ashlar_torch_cpu_trim(void);
/* Why the calling thread's last call failed. */
ASHLAR_TORCH_CPU_API const char* ashlar_torch_cpu_error(void);

#endif
