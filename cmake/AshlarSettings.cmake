# What every target of ours is built with: one place for the standard, the warnings and the sanitizers.
add_library(ashlar_settings INTERFACE)
target_compile_features(ashlar_settings INTERFACE cxx_std_20)
set(CMAKE_CXX_EXTENSIONS OFF)
target_compile_options(ashlar_settings INTERFACE
  -Wall -Wextra -Wshadow -Wconversion -Wnon-virtual-dtor -Wold-style-cast -Woverloaded-virtual
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-restrict>  # false in std::string: GCC bug 105651
  $<$<BOOL:${ASHLAR_WERROR}>:-Werror>)
if(ASHLAR_SANITIZE)
  target_compile_options(ashlar_settings INTERFACE
    -fsanitize=${ASHLAR_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(ashlar_settings INTERFACE -fsanitize=${ASHLAR_SANITIZE})
endif()
# What leads a fuzzer, by target or source file: all of it is -fsanitize=fuzzer-no-link's choice. A generator of whole ops
# has no use for comparisons traced, which cost half its speed; and it is to be led by what src/ does, not by what judges it.
# What judges is not under test either: there stack frames are left where they are (a tenth of the speed), while src/ has
# its own moved to the heap, so that a use after a return shows.
set(ASHLAR_FUZZ_TRACE_NONE)
set(ASHLAR_FUZZ_TRACE_EDGES)
set(ASHLAR_FUZZ_TRACE_ALL)
if(ASHLAR_SANITIZE MATCHES "fuzzer-no-link")
  # Checks make small functions look too large to inline, which costs a sixth of the speed.
  target_compile_options(ashlar_settings INTERFACE "SHELL:-mllvm -inline-threshold=2000")
  # Reports unwind by tables; checks are short of registers (a fortieth of the speed).
  target_compile_options(ashlar_settings INTERFACE -fomit-frame-pointer)
  set(ASHLAR_FUZZ_TRACE_NONE -fno-sanitize-coverage=inline-8bit-counters,pc-table,trace-cmp,indirect-calls,stack-depth
    -fsanitize-address-use-after-return=never)
  set(ASHLAR_FUZZ_TRACE_EDGES -fno-sanitize-coverage=trace-cmp,stack-depth)
  set(ASHLAR_FUZZ_TRACE_ALL -fsanitize-coverage=inline-8bit-counters,pc-table,trace-cmp,indirect-calls)
endif()
if(ASHLAR_COVERAGE)
  target_compile_options(ashlar_settings INTERFACE -fprofile-instr-generate -fcoverage-mapping)
  target_link_options(ashlar_settings INTERFACE -fprofile-instr-generate)
endif()

# Headers that CMake writes (version.h, export.h): included and installed as <ashlar/base/...>.
set(ASHLAR_GENERATED_ROOT "${CMAKE_CURRENT_BINARY_DIR}/generated")
