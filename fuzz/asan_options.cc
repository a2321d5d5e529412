// AddressSanitizer's defaults for every fuzz target; ASAN_OPTIONS overrides them. No check is
// switched off.
//
// An input allocates some 200 KB in all, so a small quarantine keeps every block that it freed
// poisoned, and memory is reused while it is in the caches. Stacks of allocations are not recorded.
// To see them in a report, replay its input with
// ASAN_OPTIONS=malloc_context_size=30:fast_unwind_on_malloc=0: the frames have no frame pointers,
// so the fast unwinder cannot walk them.
extern "C" const char* __asan_default_options();
extern "C" const char* __asan_default_options() {
  return "quarantine_size_mb=1:thread_local_quarantine_size_kb=256:malloc_context_size=0";
}
