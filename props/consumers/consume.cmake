# One step of the consumer tests (CMakeLists.txt), run by ctest: cmake -DSTEP=... -P consume.cmake.
set(work "${BUILD}/consumers")
set(installed "${work}/moved here")  # with a space, as in many home folders
set(app "${CMAKE_CURRENT_LIST_DIR}/app")

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    string(JOIN " " command ${ARGN})
    message(FATAL_ERROR "exit ${status}: ${command}")
  endif()
endfunction()

# Configures app/ from scratch with the given options.
function(configure_app)
  file(REMOVE_RECURSE "${work}/${STEP}")
  run("${CMAKE_COMMAND}" -S "${app}" -B "${work}/${STEP}" -G "${GENERATOR}"
    "-DCMAKE_CXX_COMPILER=${CXX}" -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG=-O0
    "-DEXPECTED_VERSION=${VERSION}" ${ARGN})
endfunction()

# The same, and builds it and runs it.
function(build_and_run_app)
  configure_app(${ARGN})
  run("${CMAKE_COMMAND}" --build "${work}/${STEP}" --target app)
  run("${work}/${STEP}/app")
endfunction()

if(STEP STREQUAL "install")
  file(REMOVE_RECURSE "${installed}" "${work}/first")
  run("${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${work}/first" --component ashlar_library)
  file(RENAME "${work}/first" "${installed}")

elseif(STEP STREQUAL "install_tool")
  # The command, with the pages that man and the shells find by their places.
  file(REMOVE_RECURSE "${work}/${STEP}")
  run("${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${work}/${STEP}" --component ashlar_tool)
  foreach(page IN ITEMS man/man1/ashlar.1 bash-completion/completions/ashlar zsh/site-functions/_ashlar
      fish/vendor_completions.d/ashlar.fish)
    if(NOT EXISTS "${work}/${STEP}/share/${page}")
      message(FATAL_ERROR "share/${page} was not installed")
    endif()
  endforeach()
  run("${work}/${STEP}/bin/ashlar" --version)

elseif(STEP STREQUAL "find_package_static")
  build_and_run_app(-DHOW=find_package -DCOMPONENT=static "-DCMAKE_PREFIX_PATH=${installed}")

elseif(STEP STREQUAL "find_package_shared")
  build_and_run_app(-DHOW=find_package -DCOMPONENT=shared "-DCMAKE_PREFIX_PATH=${installed}")

elseif(STEP STREQUAL "find_package_version")
  # While the version is 0.x, a package serves only its own minor version: the next must be refused.
  string(REGEX REPLACE "^([0-9]+)\\.([0-9]+).*" "\\1;\\2" parts "${VERSION}")
  list(GET parts 0 major)
  list(GET parts 1 minor)
  math(EXPR other "${minor} + 1")
  file(REMOVE_RECURSE "${work}/${STEP}")
  execute_process(COMMAND "${CMAKE_COMMAND}" -S "${app}" -B "${work}/${STEP}" -G "${GENERATOR}"
    "-DCMAKE_CXX_COMPILER=${CXX}" -DHOW=find_package -DWANTED_VERSION=${major}.${other}
    "-DCMAKE_PREFIX_PATH=${installed}" RESULT_VARIABLE status ERROR_VARIABLE error OUTPUT_QUIET)
  if(status EQUAL 0 OR NOT error MATCHES "requested version")
    message(FATAL_ERROR "version ${major}.${other} was not refused: ${error}")
  endif()

elseif(STEP STREQUAL "subdirectory_without_exceptions")
  # The library and its user, both built as many GPU projects are, and several sources at a time, as users may ask for.
  build_and_run_app(-DHOW=subdirectory "-DFETCHCONTENT_SOURCE_DIR_ASHLAR=${SOURCE}"
    "-DCMAKE_CXX_FLAGS=-fno-exceptions -fno-rtti" -DCMAKE_UNITY_BUILD=ON)

elseif(STEP STREQUAL "subdirectory_shared")
  # With BUILD_SHARED_LIBS the program is linked with the shared library, and not with the other. The library itself is not
  # built once more: find_package_shared runs a program with it.
  configure_app(-DHOW=subdirectory "-DFETCHCONTENT_SOURCE_DIR_ASHLAR=${SOURCE}" -DBUILD_SHARED_LIBS=ON)
  execute_process(COMMAND ninja -C "${work}/${STEP}" -t inputs app
    OUTPUT_VARIABLE inputs COMMAND_ERROR_IS_FATAL ANY)
  if(NOT inputs MATCHES "libashlar[.]so" OR inputs MATCHES "libashlar[.]a")
    message(FATAL_ERROR "the program is not linked with the shared library: ${inputs}")
  endif()

elseif(STEP STREQUAL "examples")
  # The examples as a user builds them, who has their folder and an installed library.
  file(REMOVE_RECURSE "${work}/${STEP}" "${work}/examples here")
  file(COPY "${SOURCE}/examples/" DESTINATION "${work}/examples here")
  run("${CMAKE_COMMAND}" -S "${work}/examples here" -B "${work}/${STEP}" -G "${GENERATOR}"
    "-DCMAKE_CXX_COMPILER=${CXX}" -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG=-O0
    "-DCMAKE_PREFIX_PATH=${installed}")
  run("${CMAKE_COMMAND}" --build "${work}/${STEP}")
  run("${CTEST}" --test-dir "${work}/${STEP}" --output-on-failure --no-tests=error)

elseif(STEP STREQUAL "readme")
  # The README's example must compile and run.
  file(READ "${SOURCE}/README.md" readme)
  string(FIND "${readme}" "```cpp\n" begin)
  string(SUBSTRING "${readme}" ${begin} -1 example)
  string(SUBSTRING "${example}" 7 -1 example)
  string(FIND "${example}" "```" end)
  string(SUBSTRING "${example}" 0 ${end} example)
  file(WRITE "${work}/readme.cc" "${example}")
  build_and_run_app(-DHOW=find_package -DCOMPONENT=static "-DCMAKE_PREFIX_PATH=${installed}"
    "-DMAIN=${work}/readme.cc")

elseif(STEP MATCHES "^pkg_config")
  find_program(pkg_config pkg-config)
  if(NOT pkg_config)
    message("consumer test skipped: no pkg-config here")
    return()
  endif()
  set(ENV{PKG_CONFIG_PATH} "${installed}/${LIBDIR}/pkgconfig")
  if(STEP STREQUAL "pkg_config_static")
    set(static --static)
  endif()
  execute_process(COMMAND "${pkg_config}" ${static} --cflags --libs ashlar
    OUTPUT_VARIABLE flags OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(flags UNIX_COMMAND "${flags}")
  if(static)
    # pkg-config names a library, not its kind; the linker option selects the archive.
    list(TRANSFORM flags REPLACE "^-lashlar$" "-l:libashlar.a")
  endif()
  file(MAKE_DIRECTORY "${work}/${STEP}")
  run("${CXX}" -std=c++20 "-DEXPECTED_VERSION=\"${VERSION}\"" "${app}/app.cc"
    -o "${work}/${STEP}/app" ${flags})
  set(ENV{LD_LIBRARY_PATH} "${installed}/${LIBDIR}")
  run("${work}/${STEP}/app")

elseif(STEP STREQUAL "headers_alone")
  # The installed headers must compile with nothing else, twice each. That each of them compiles by itself is what the test
  # `headers` and the library's own sources show.
  file(GLOB_RECURSE headers RELATIVE "${installed}/include" "${installed}/include/*.h")
  if(NOT headers)
    message(FATAL_ERROR "no header was installed")
  endif()
  list(TRANSFORM headers REPLACE "(.+)" "#include <\\1>\n#include <\\1>\n" OUTPUT_VARIABLE includes)
  string(JOIN "" includes ${includes})
  file(WRITE "${work}/headers.cc" "${includes}")
  run("${CXX}" -std=c++20 -fsyntax-only "-I${installed}/include" "${work}/headers.cc")

elseif(STEP STREQUAL "exported_symbols")
  # The shared library must export the interface, and nothing of block/.
  file(GLOB library "${installed}/${LIBDIR}/libashlar.so")
  execute_process(COMMAND nm -D -C --defined-only "${library}"
    OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
  if(NOT symbols MATCHES "ashlar::v0::code_name")
    message(FATAL_ERROR "code_name is not exported")
  endif()
  if(symbols MATCHES "[^\n]*ashlar::v0::block::[^\n]*")
    message(FATAL_ERROR "an internal of the library is exported: ${CMAKE_MATCH_0}")
  endif()

else()
  message(FATAL_ERROR "no such step: ${STEP}")
endif()
