# The settings of every target of this project: the C++ standard, the warnings, the sanitizers.
add_library(ashlar_settings INTERFACE)
target_compile_features(ashlar_settings INTERFACE cxx_std_20)
set(CMAKE_CXX_EXTENSIONS OFF)
target_compile_options(ashlar_settings INTERFACE
  -Wall -Wextra -Wshadow -Wconversion -Wnon-virtual-dtor -Wold-style-cast -Woverloaded-virtual
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-restrict>  # false alarms in std::string: GCC bug 105651
  $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety>  # locks: base/thread_annotations.h
  $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety-reference>
  $<$<BOOL:${ASHLAR_WERROR}>:-Werror>)
if(ASHLAR_SANITIZE)
  target_compile_options(ashlar_settings INTERFACE
    -fsanitize=${ASHLAR_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(ashlar_settings INTERFACE -fsanitize=${ASHLAR_SANITIZE})
endif()
# For code that takes longer to compile with sanitizers than to run: suites, and the tool.
set(ASHLAR_SHORT_RUN_OPTIONS)
if(ASHLAR_SANITIZE)
  set(ASHLAR_SHORT_RUN_OPTIONS -O0)
endif()
# Which instrumentation guides a fuzzer, by target or source file. -fsanitize=fuzzer-no-link alone turns on all of it.
#   TRACE_ALL    for parsers of text: all of it.
#   TRACE_EDGES  for src/: no traced comparisons. A generator of whole ops gains nothing from them, and they cost half the
#                speed.
#   TRACE_NONE   for the models and checkers in spec/: new behaviour of src/ guides the fuzzer, not that of its judges. The
#                judges are not under test either, so their stack frames stay on the stack (a tenth of the speed), while
#                those of src/ are moved to the heap, which shows a use after a return.
set(ASHLAR_FUZZ_TRACE_NONE)
set(ASHLAR_FUZZ_TRACE_EDGES)
set(ASHLAR_FUZZ_TRACE_ALL)
if(ASHLAR_SANITIZE MATCHES "fuzzer-no-link")
  # With checks, small functions look too large to inline; without this that costs a sixth of the speed.
  target_compile_options(ashlar_settings INTERFACE "SHELL:-mllvm -inline-threshold=2000")
  # Reports unwind by tables, so no frame pointer is needed; checks need the register (a fortieth of the speed).
  target_compile_options(ashlar_settings INTERFACE -fomit-frame-pointer)
  set(ASHLAR_FUZZ_TRACE_NONE -fno-sanitize-coverage=inline-8bit-counters,pc-table,trace-cmp,indirect-calls,stack-depth
    -fsanitize-address-use-after-return=never)
  set(ASHLAR_FUZZ_TRACE_EDGES -fno-sanitize-coverage=trace-cmp,stack-depth)
  set(ASHLAR_FUZZ_TRACE_ALL -fsanitize-coverage=inline-8bit-counters,pc-table,trace-cmp,indirect-calls)
endif()
if(ASHLAR_COVERAGE)
  # Atomic counters: llvm-cov subtracts them from each other, so a count that two threads lost hides a side that was taken.
  target_compile_options(ashlar_settings INTERFACE
    -fprofile-instr-generate -fprofile-update=atomic -fcoverage-mapping -fcoverage-mcdc)
  target_link_options(ashlar_settings INTERFACE -fprofile-instr-generate)
endif()

# Whether the library checks its own assumptions (base/assert.h): 0 or 1, or what is that once the build type is known.
if(ASHLAR_ASSERTIONS STREQUAL "")
  set(ASHLAR_ASSERTIONS_VALUE "$<NOT:$<CONFIG:Release,RelWithDebInfo,MinSizeRel>>")
else()
  set(ASHLAR_ASSERTIONS_VALUE "$<BOOL:${ASHLAR_ASSERTIONS}>")
endif()

# Headers that CMake writes (version.h, export.h): included and installed as <ashlar/base/...>.
set(ASHLAR_GENERATED_ROOT "${CMAKE_CURRENT_BINARY_DIR}/generated")
