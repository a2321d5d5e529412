# Installs the static and the shared library. find_package(ashlar) and pkg-config still find them after the installed tree is
# moved.
include(CMakePackageConfigHelpers)
set(ASHLAR_CONFIG_DIR "${CMAKE_INSTALL_LIBDIR}/cmake/ashlar")

install(TARGETS ashlar ashlar_shared EXPORT ashlar_targets
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
# (lib, or lib/x86_64-linux-gnu).
set(pc_dir "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
file(RELATIVE_PATH ASHLAR_PC_PREFIX "/prefix/${pc_dir}" "/prefix")
string(REGEX REPLACE "/$" "" ASHLAR_PC_PREFIX "${ASHLAR_PC_PREFIX}")
set(ASHLAR_PC_FLAGS "")
foreach(option IN ITEMS ASSERTIONS VALIDATION)
  if(ASHLAR_${option})
    string(APPEND ASHLAR_PC_FLAGS " -DASHLAR_${option}=1")
  else()
    string(APPEND ASHLAR_PC_FLAGS " -DASHLAR_${option}=0")
  endif()
endforeach()
configure_file("${PROJECT_SOURCE_DIR}/cmake/ashlar.pc.in" "${PROJECT_BINARY_DIR}/ashlar.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/ashlar.pc" DESTINATION "${pc_dir}" COMPONENT ashlar_library)
