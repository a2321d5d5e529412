// AddressSanitizer's defaults for every fuzz target; ASAN_OPTIONS overrides them. No check is
// switched off.
//
// All that an input allocates is some 200 KB, so a small quarantine still keeps every block that it
// freed poisoned, and memory comes back warm. Stacks of allocations are not taken; to see them in a
// report, replay its input with ASAN_OPTIONS=malloc_context_size=30:fast_unwind_on_malloc=0, for
// the frames have no pointers to each other.
extern "C" const char* __asan_default_options();
extern "C" const char* __asan_default_options() {
  return "quarantine_size_mb=1:thread_local_quarantine_size_kb=256:malloc_context_size=0";
}
