// AddressSanitizer's defaults for every fuzz target; ASAN_OPTIONS overrides them. No check is switched off.
//
// An input's world is far smaller than the quarantine, so a small one still keeps every block that it freed poisoned, and
// memory comes back warm. Stacks of allocations are not taken; to see them in a report, replay its input with
// ASAN_OPTIONS=malloc_context_size=30.
extern "C" const char* __asan_default_options();
extern "C" const char* __asan_default_options() { return "quarantine_size_mb=4:malloc_context_size=0"; }
