# Installs the libraries, static and shared. find_package(ashlar) and pkg-config still find them after the installed tree is
# moved, unless install folders are absolute paths.
include(CMakePackageConfigHelpers)
set(ASHLAR_CONFIG_DIR "${CMAKE_INSTALL_LIBDIR}/cmake/ashlar")

install(TARGETS ashlar ashlar_allocator ashlar_plan ashlar_shared ashlar_allocator_shared ashlar_plan_shared
  EXPORT ashlar_targets
  RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT ashlar_library
  LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT ashlar_library
  ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT ashlar_library)
foreach(header IN LISTS ASHLAR_PUBLIC_HEADERS)
  cmake_path(GET header PARENT_PATH room)
  install(FILES "${CMAKE_CURRENT_SOURCE_DIR}/${header}"
    DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/ashlar/${room}" COMPONENT ashlar_library)
endforeach()
install(FILES "${ASHLAR_GENERATED_ROOT}/ashlar/base/version.h" "${ASHLAR_GENERATED_ROOT}/ashlar/base/export.h"
  DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/ashlar/base" COMPONENT ashlar_library)

install(EXPORT ashlar_targets NAMESPACE ashlar:: DESTINATION "${ASHLAR_CONFIG_DIR}" COMPONENT ashlar_library)
if(ASHLAR_ASSERTIONS STREQUAL "")
  set(ASHLAR_ASSERTIONS_CHOSEN "")
else()
  set(ASHLAR_ASSERTIONS_CHOSEN "$<BOOL:${ASHLAR_ASSERTIONS}>")
endif()
configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/ashlar-config.cmake.in"
  "${PROJECT_BINARY_DIR}/ashlar-config.cmake" INSTALL_DESTINATION "${ASHLAR_CONFIG_DIR}")
if(PROJECT_VERSION_MAJOR EQUAL 0)
  set(compatibility SameMinorVersion)
else()
  set(compatibility SameMajorVersion)
endif()
write_basic_package_version_file("${PROJECT_BINARY_DIR}/ashlar-config-version.cmake" COMPATIBILITY ${compatibility})
install(FILES "${PROJECT_BINARY_DIR}/ashlar-config.cmake" "${PROJECT_BINARY_DIR}/ashlar-config-version.cmake"
  DESTINATION "${ASHLAR_CONFIG_DIR}" COMPONENT ashlar_library)

# pkg-config knows the folder of the file. The path from there to the prefix depends on the depth of the library folder
# (lib, or lib/x86_64-linux-gnu); if that folder is an absolute path, the file is not moved with a prefix.
set(pc_dir "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
if(IS_ABSOLUTE "${pc_dir}")
  set(ASHLAR_PC_PREFIX "${CMAKE_INSTALL_PREFIX}")
else()
  file(RELATIVE_PATH up "/prefix/${pc_dir}" "/prefix")
  string(REGEX REPLACE "/$" "" up "${up}")
  set(ASHLAR_PC_PREFIX "\${pcfiledir}/${up}")
endif()
foreach(folder IN ITEMS LIBDIR INCLUDEDIR)
  set(ASHLAR_PC_${folder} "\${prefix}/${CMAKE_INSTALL_${folder}}")
  if(IS_ABSOLUTE "${CMAKE_INSTALL_${folder}}")
    set(ASHLAR_PC_${folder} "${CMAKE_INSTALL_${folder}}")
  endif()
endforeach()
set(ASHLAR_PC_FLAGS "-DASHLAR_ASSERTIONS=${ASHLAR_ASSERTIONS_VALUE} -DASHLAR_VALIDATION=$<BOOL:${ASHLAR_VALIDATION}>")

# ashlar_add_pc(NAME DESCRIPTION LIBS PRIVATE): the file of a component. One for each configuration, which the flags depend on.
function(ashlar_add_pc ASHLAR_PC_NAME ASHLAR_PC_DESCRIPTION ASHLAR_PC_LIBS ASHLAR_PC_LIBS_PRIVATE)
  configure_file("${PROJECT_SOURCE_DIR}/cmake/ashlar.pc.in" "${PROJECT_BINARY_DIR}/${ASHLAR_PC_NAME}.pc.in" @ONLY)
  file(GENERATE OUTPUT "${PROJECT_BINARY_DIR}/pkgconfig$<$<BOOL:$<CONFIG>>:/$<CONFIG>>/${ASHLAR_PC_NAME}.pc"
    INPUT "${PROJECT_BINARY_DIR}/${ASHLAR_PC_NAME}.pc.in")
  install(FILES "${PROJECT_BINARY_DIR}/pkgconfig$<$<BOOL:$<CONFIG>>:/$<CONFIG>>/${ASHLAR_PC_NAME}.pc"
    DESTINATION "${pc_dir}" COMPONENT ashlar_library)
endfunction()
ashlar_add_pc(ashlar-allocator "The caching allocator of Ashlar" "-lashlar" "-pthread -ldl")
ashlar_add_pc(ashlar-plan "The planner of Ashlar, and what replays its plans" "-lashlar_plan" "-lashlar -pthread -ldl")
ashlar_add_pc(ashlar "${PROJECT_DESCRIPTION}" "-lashlar_plan -lashlar" "-pthread -ldl")

install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" "${PROJECT_SOURCE_DIR}/README.md" "${PROJECT_SOURCE_DIR}/CHANGELOG.md"
  DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT ashlar_library)
