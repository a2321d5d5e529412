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

# The README's first example, as a file of its own.
function(write_readme_example file)
  file(READ "${SOURCE}/README.md" readme)
  string(FIND "${readme}" "```cpp\n" begin)
  string(SUBSTRING "${readme}" ${begin} -1 example)
  string(SUBSTRING "${example}" 7 -1 example)
  string(FIND "${example}" "```" end)
  string(SUBSTRING "${example}" 0 ${end} example)
  file(WRITE "${file}" "${example}")
endfunction()

# The names of the shared libraries that a program or library is linked with.
function(needed_libraries file out)
  execute_process(COMMAND readelf -d "${file}" OUTPUT_VARIABLE dynamic COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL "libashlar[a-z_]*[.]so" needed "${dynamic}")
  set(${out} "${needed}" PARENT_SCOPE)
endfunction()

# Configures app/ from scratch with the given options.
function(configure_app)
  file(REMOVE_RECURSE "${work}/${STEP}")
  run("${CMAKE_COMMAND}" -S "${app}" -B "${work}/${STEP}" -G "${GENERATOR}"
    "-DCMAKE_CXX_COMPILER=${CXX}" -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG=-O0
    "-DEXPECTED_VERSION=${VERSION}" ${ARGN})
endfunction()
# What an installed library's users get, however they are built. The library itself is built as ${CONFIG}.
set(as_installed "-DEXPECTED_ASSERTIONS=${ASSERTIONS}" "-DCMAKE_PREFIX_PATH=${installed}")

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
  foreach(file IN ITEMS LICENSE README.md CHANGELOG.md)
    if(NOT EXISTS "${installed}/share/doc/ashlar/${file}")
      message(FATAL_ERROR "${file} is not installed")
    endif()
  endforeach()
  if(CONFIG MATCHES "^Release$|^RelWithDebInfo$|^MinSizeRel$" AND NOT CHOSEN AND ASSERTIONS)
    message(FATAL_ERROR "a build called ${CONFIG} checks its own assumptions")
  endif()
  # What is installed does what it says: an assertion's text is in the library exactly if assertions are on.
  file(STRINGS "${installed}/${LIBDIR}/libashlar.a" texts REGEX "base.1.: Bytes wrapped" LIMIT_COUNT 1)
  if((texts AND NOT ASSERTIONS) OR (ASSERTIONS AND NOT texts))
    message(FATAL_ERROR "assertions are said to be ${ASSERTIONS}; the library has: ${texts}")
  endif()

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
  build_and_run_app(-DHOW=find_package -DCOMPONENT=static ${as_installed})

elseif(STEP STREQUAL "find_package_shared")
  build_and_run_app(-DHOW=find_package -DCOMPONENT=shared ${as_installed})

elseif(STEP STREQUAL "find_package_allocator")
  # A program that only allocates needs the allocator's library alone.
  build_and_run_app(-DHOW=find_package -DCOMPONENT=shared,allocator -DPART=allocator ${as_installed})
  needed_libraries("${work}/${STEP}/app" needed)
  if(NOT needed STREQUAL "libashlar.so")
    message(FATAL_ERROR "a program that only allocates needs: ${needed}")
  endif()

elseif(STEP STREQUAL "find_package_plan")
  # One that only plans needs the planner's library alone, which needs no other either.
  build_and_run_app(-DHOW=find_package -DCOMPONENT=shared,plan -DPART=plan -DMAIN=plan_app.cc ${as_installed})
  needed_libraries("${work}/${STEP}/app" needed)
  needed_libraries("${installed}/${LIBDIR}/libashlar_plan.so" further)
  list(REMOVE_ITEM further libashlar_plan.so)  # its own name
  if(NOT needed STREQUAL "libashlar_plan.so" OR further)
    message(FATAL_ERROR "a program that only plans needs: ${needed}; its library: ${further}")
  endif()
  build_and_run_app(-DHOW=find_package -DCOMPONENT=static,plan -DPART=plan -DMAIN=plan_app.cc ${as_installed})

elseif(STEP STREQUAL "plain_configure")
  # `cmake -S . -B build` asks for no generator, and so for the program of CMake's default one: ci/packages must list it.
  find_program(dpkg_query dpkg-query)
  if(NOT dpkg_query)
    message("consumer test skipped: no dpkg-query here")
    return()
  endif()
  file(REMOVE_RECURSE "${work}/${STEP}")
  file(MAKE_DIRECTORY "${work}/${STEP}/bin")
  file(STRINGS "${SOURCE}/ci/packages" packages REGEX "^build ")
  foreach(package IN LISTS packages)
    string(REGEX REPLACE "^build +" "" package "${package}")
    execute_process(COMMAND "${dpkg_query}" -L "${package}" OUTPUT_VARIABLE files ERROR_QUIET)
    string(REGEX MATCHALL "/usr/bin/[^\n]+" programs "${files}")
    foreach(program IN LISTS programs)
      cmake_path(GET program FILENAME name)
      file(CREATE_LINK "${program}" "${work}/${STEP}/bin/${name}" SYMBOLIC)
    endforeach()
  endforeach()
  file(WRITE "${work}/${STEP}/CMakeLists.txt" "cmake_minimum_required(VERSION 3.25)\nproject(plain LANGUAGES NONE)\n")
  run("${CMAKE_COMMAND}" -E env --unset=CMAKE_GENERATOR "PATH=${work}/${STEP}/bin"
    "${CMAKE_COMMAND}" -S "${work}/${STEP}" -B "${work}/${STEP}/build")

elseif(STEP STREQUAL "find_package_version")
  # While the version is 0.x, a package serves only its own minor version: the next must be refused.
  string(REGEX REPLACE "^([0-9]+)\\.([0-9]+).*" "\\1;\\2" parts "${VERSION}")
  list(GET parts 0 major)
  list(GET parts 1 minor)
  math(EXPR other "${minor} + 1")
  file(REMOVE_RECURSE "${work}/${STEP}")
  execute_process(COMMAND "${CMAKE_COMMAND}" -S "${app}" -B "${work}/${STEP}" -G "${GENERATOR}"
    "-DCMAKE_CXX_COMPILER=${CXX}" -DHOW=find_package -DWANTED_VERSION=${major}.${other}
    ${as_installed} RESULT_VARIABLE status ERROR_VARIABLE error OUTPUT_QUIET)
  if(status EQUAL 0 OR NOT error MATCHES "requested version")
    message(FATAL_ERROR "version ${major}.${other} was not refused: ${error}")
  endif()

elseif(STEP STREQUAL "subdirectory_without_exceptions")
  # The library and its user, both built as many GPU projects are, and several sources at a time, as users may ask for.
  # The README's example too. Built for debugging, it checks its own assumptions.
  write_readme_example("${work}/readme_here.cc")
  build_and_run_app(-DHOW=subdirectory "-DFETCHCONTENT_SOURCE_DIR_ASHLAR=${SOURCE}" -DEXPECTED_ASSERTIONS=1
    "-DCMAKE_CXX_FLAGS=-fno-exceptions -fno-rtti" -DCMAKE_UNITY_BUILD=ON "-DSECOND=${work}/readme_here.cc")
  run("${CMAKE_COMMAND}" --build "${work}/${STEP}" --target second)
  run("${work}/${STEP}/second")

elseif(STEP STREQUAL "subdirectory_shared")
  # With BUILD_SHARED_LIBS the program is linked with the shared library, and not with the other. The library itself is not
  # built once more: find_package_shared runs a program with it.
  configure_app(-DHOW=subdirectory "-DFETCHCONTENT_SOURCE_DIR_ASHLAR=${SOURCE}" -DBUILD_SHARED_LIBS=ON
    -DEXPECTED_ASSERTIONS=1)
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
  write_readme_example("${work}/readme.cc")
  build_and_run_app(-DHOW=find_package -DCOMPONENT=static ${as_installed} "-DMAIN=${work}/readme.cc")

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
  # No -std of our own: the compiler's default is C++17.
  write_readme_example("${work}/readme_${STEP}.cc")
  set(ENV{LD_LIBRARY_PATH} "${installed}/${LIBDIR}")
  set(packages ashlar ashlar-allocator ashlar-plan ashlar)
  set(sources "${app}/app.cc" "${app}/app.cc" "${app}/plan_app.cc" "${work}/readme_${STEP}.cc")
  if(NOT static)  # what the examples use the shared library has to export
    file(GLOB examples "${SOURCE}/examples/*.cc")
    foreach(example IN LISTS examples)
      list(APPEND packages ashlar)
      list(APPEND sources "${example}")
    endforeach()
  endif()
  foreach(package source IN ZIP_LISTS packages sources)
    execute_process(COMMAND "${pkg_config}" ${static} --cflags --libs ${package}
      OUTPUT_VARIABLE flags OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
    separate_arguments(flags UNIX_COMMAND "${flags}")
    if(static)
      # pkg-config names a library, not its kind; the linker option selects the archive.
      list(TRANSFORM flags REPLACE "^-l(ashlar[a-z_]*)$" "-l:lib\\1.a")
    endif()
    file(MAKE_DIRECTORY "${work}/${STEP}")
    run("${CXX}" "-DEXPECTED_VERSION=\"${VERSION}\"" "-DEXPECTED_ASSERTIONS=${ASSERTIONS}" "${source}"
      -o "${work}/${STEP}/app" ${flags})
    if(NOT "${source}" MATCHES "/examples/")  # an example may want a GPU; those of the step `examples` run
      run("${work}/${STEP}/app")
    endif()
  endforeach()

elseif(STEP STREQUAL "cxx17")
  # A compiler that is not told to take C++20 says so, and not a page of what follows from it.
  foreach(entry IN ITEMS ashlar plan graph sched)
    file(WRITE "${work}/cxx17.cc" "#include <ashlar/${entry}.h>\nashlar::Bytes size;\n")
    execute_process(COMMAND "${CXX}" -std=c++17 -fsyntax-only "-I${installed}/include" "${work}/cxx17.cc"
      RESULT_VARIABLE status ERROR_VARIABLE error)
    string(REGEX MATCHALL "error: " errors "${error}")
    list(LENGTH errors count)
    if(status EQUAL 0 OR NOT error MATCHES "Ashlar needs C[+][+]20: compile with -std=c[+][+]20" OR count GREATER 2)
      message(FATAL_ERROR "${entry}.h with -std=c++17: exit ${status}, ${count} errors: ${error}")
    endif()
  endforeach()

elseif(STEP STREQUAL "absolute_folders")
  # Install folders that are absolute paths, as distributions that keep each package in a folder of its own set them. What is
  # installed is what is built already: only the description of the package is made anew.
  # Not in the build tree: CMake takes no install folder inside the sources.
  execute_process(COMMAND mktemp -d OUTPUT_VARIABLE folders OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  set(build "${work}/absolute_build")
  file(REMOVE_RECURSE "${build}")
  run("${CMAKE_COMMAND}" -S "${SOURCE}" -B "${build}" -G "${GENERATOR}" "-DCMAKE_CXX_COMPILER=${CXX}" -DASHLAR_BUILD_TOOL=OFF
    "-DCMAKE_BUILD_TYPE=${CONFIG}" "-DASHLAR_ASSERTIONS=${ASSERTIONS}" "-DCMAKE_INSTALL_PREFIX=${folders}/prefix"
    "-DCMAKE_INSTALL_LIBDIR=${folders}/libraries" "-DCMAKE_INSTALL_INCLUDEDIR=${folders}/headers"
    "-DCMAKE_INSTALL_BINDIR=${folders}/programs")
  file(GLOB libraries "${BUILD}/src/ashlar/libashlar*")
  file(COPY ${libraries} DESTINATION "${build}/src/ashlar")
  run("${CMAKE_COMMAND}" --install "${build}" --component ashlar_library)
  build_and_run_app(-DHOW=find_package -DCOMPONENT=shared "-DEXPECTED_ASSERTIONS=${ASSERTIONS}"
    "-DCMAKE_PREFIX_PATH=${folders}/libraries/cmake")
  find_program(pkg_config pkg-config)
  if(pkg_config)
    set(ENV{PKG_CONFIG_PATH} "${folders}/libraries/pkgconfig")
    execute_process(COMMAND "${pkg_config}" --cflags --libs ashlar
      OUTPUT_VARIABLE flags OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
    separate_arguments(flags UNIX_COMMAND "${flags}")
    run("${CXX}" "-DEXPECTED_VERSION=\"${VERSION}\"" "-DEXPECTED_ASSERTIONS=${ASSERTIONS}" "${app}/app.cc"
      -o "${folders}/app" ${flags})
    set(ENV{LD_LIBRARY_PATH} "${folders}/libraries")
    run("${folders}/app")
  endif()
  file(REMOVE_RECURSE "${folders}")

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
  foreach(library name IN ZIP_LISTS "libashlar.so;libashlar_plan.so" "CachingAllocator::create;plan::make_plan")
    execute_process(COMMAND nm -D -C --defined-only "${installed}/${LIBDIR}/${library}"
      OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
    foreach(wanted IN ITEMS "code_name" "${name}")
      if(NOT symbols MATCHES "${wanted}[(]")
        message(FATAL_ERROR "${library} does not export ${wanted}")
      endif()
    endforeach()
    if(symbols MATCHES "[^\n]*ashlar::v0::block::[^\n]*")
      message(FATAL_ERROR "an internal of the library is exported: ${CMAKE_MATCH_0}")
    endif()
    if(symbols MATCHES "[^\n]* [A-Za-z] (std|__gnu_cxx)::[^\n]*")
      message(FATAL_ERROR "a name of the standard library is exported: ${CMAKE_MATCH_0}")
    endif()
  endforeach()

else()
  message(FATAL_ERROR "no such step: ${STEP}")
endif()
