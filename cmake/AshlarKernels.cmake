# Kernels for GPUs: nvcc compiles them to a fat binary, which becomes part of a target; without nvcc from CUDA 12 on the target
# has none, and says so.
include_guard(GLOBAL)

set(ASHLAR_CUDA_ARCHITECTURES "75;80;90" CACHE STRING
  "The GPUs that nvcc compiles machine code for; others get it from the driver, from the first one's portable code.")
find_program(ASHLAR_NVCC nvcc PATHS /usr/local/cuda/bin)
set(nvcc_release 0)
if(ASHLAR_NVCC)
  execute_process(COMMAND "${ASHLAR_NVCC}" --version OUTPUT_VARIABLE nvcc_text ERROR_QUIET)
  if(nvcc_text MATCHES "release ([0-9]+)")
    set(nvcc_release "${CMAKE_MATCH_1}")
  endif()
endif()
# From CUDA 13 on fat binaries are compressed in a way that drivers before 12.4 cannot read.
set(ASHLAR_NVCC_PLAIN "" CACHE INTERNAL "")
if(ASHLAR_NVCC)
  execute_process(COMMAND "${ASHLAR_NVCC}" --help OUTPUT_VARIABLE nvcc_text ERROR_QUIET)
  if(nvcc_text MATCHES "--no-compress")
    set(ASHLAR_NVCC_PLAIN --no-compress CACHE INTERNAL "")
  endif()
endif()
set(ASHLAR_HAS_NVCC OFF CACHE INTERNAL "")
if(nvcc_release GREATER_EQUAL 12)  # the first that takes C++20
  set(ASHLAR_HAS_NVCC ON CACHE INTERNAL "")
else()
  message(STATUS "no nvcc from CUDA 12 on here: there are no kernels for a GPU")
endif()
set(ASHLAR_KERNEL_IMAGE_TEMPLATE "${CMAKE_CURRENT_LIST_DIR}/kernel_image.cc.in" CACHE INTERNAL "")

# ashlar_add_kernels(TARGET SOURCE file.cu HEADER header NAMESPACE namespace FUNCTION name)
# The target gets a definition of the function, which HEADER (a path from the project's root) declares in that namespace:
# `std::span<const std::byte> name() noexcept`, what the driver loads as a module; empty without nvcc.
function(ashlar_add_kernels target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "SOURCE;HEADER;NAMESPACE;FUNCTION" "")
  get_filename_component(name "${arg_SOURCE}" NAME_WE)
  set(image "${CMAKE_CURRENT_BINARY_DIR}/${name}.fatbin")
  set(embedder "${CMAKE_CURRENT_BINARY_DIR}/${name}_image.cc")
  configure_file("${ASHLAR_KERNEL_IMAGE_TEMPLATE}" "${embedder}" @ONLY)
  target_sources(${target} PRIVATE "${embedder}")
  set_source_files_properties("${embedder}" PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON SKIP_PRECOMPILE_HEADERS ON)
  if(NOT ASHLAR_HAS_NVCC)
    return()
  endif()
  set(architectures "")
  foreach(architecture IN LISTS ASHLAR_CUDA_ARCHITECTURES)
    if(NOT architectures)
      list(APPEND architectures -gencode "arch=compute_${architecture},code=compute_${architecture}")
    endif()
    list(APPEND architectures -gencode "arch=compute_${architecture},code=sm_${architecture}")
  endforeach()
  add_custom_command(OUTPUT "${image}"
    COMMAND "${ASHLAR_NVCC}" -std=c++20 --expt-relaxed-constexpr --extended-lambda -Werror all-warnings -Wno-deprecated-gpu-targets
      -Xcompiler -Wall,-Wextra -DASHLAR_STATIC_DEFINE -DASHLAR_ASSERTIONS=0 -DASHLAR_VALIDATION=0
      "-I${PROJECT_SOURCE_DIR}" "-I${PROJECT_SOURCE_DIR}/src" "-I${ASHLAR_GENERATED_ROOT}" ${architectures} --fatbin ${ASHLAR_NVCC_PLAIN} -MD
      -MF "${image}.d" -MT "${image}" "${CMAKE_CURRENT_SOURCE_DIR}/${arg_SOURCE}" -o "${image}"
    DEPENDS "${arg_SOURCE}" DEPFILE "${image}.d"
    COMMENT "Compiling the kernels of ${arg_SOURCE}" VERBATIM)
  set_source_files_properties("${embedder}" PROPERTIES OBJECT_DEPENDS "${image}")
endfunction()
