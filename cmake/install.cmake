# What `cmake --install` puts where. Every path is relative, so the installed tree can be moved.
include(CMakePackageConfigHelpers)

set(RNICSIM_INSTALL_PRESETS ${CMAKE_INSTALL_DATADIR}/rnicsim/configs)
set(RNICSIM_INSTALL_CMAKE ${CMAKE_INSTALL_LIBDIR}/cmake/rnicsim)

install(TARGETS rnicsim)
install(TARGETS rnicsim_model EXPORT rnicsimTargets)
install(DIRECTORY model/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/rnicsim
        FILES_MATCHING PATTERN "*.h")
# The program looks for presets in ../share/rnicsim/configs, seen from its own directory.
install(DIRECTORY configs/ DESTINATION ${RNICSIM_INSTALL_PRESETS})

install(EXPORT rnicsimTargets NAMESPACE rnicsim:: DESTINATION ${RNICSIM_INSTALL_CMAKE})
configure_package_config_file(cmake/rnicsimConfig.cmake.in
  ${PROJECT_BINARY_DIR}/package/rnicsimConfig.cmake
  INSTALL_DESTINATION ${RNICSIM_INSTALL_CMAKE} PATH_VARS RNICSIM_INSTALL_PRESETS)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/package/rnicsimConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/package/rnicsimConfig.cmake
              ${PROJECT_BINARY_DIR}/package/rnicsimConfigVersion.cmake
        DESTINATION ${RNICSIM_INSTALL_CMAKE})

# From the directory of the .pc file back to the prefix.
file(RELATIVE_PATH RNICSIM_PC_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" RNICSIM_PC_PREFIX "${RNICSIM_PC_PREFIX}")
if(RNICSIM_LTO)
  set(RNICSIM_PC_LINK_OPTIONS "-fno-lto ")  # the archive's machine code, whatever compiler links it
endif()
configure_file(cmake/rnicsim.pc.in ${PROJECT_BINARY_DIR}/package/rnicsim.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/package/rnicsim.pc
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
