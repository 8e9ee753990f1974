# Two components: `runtime` (base and runtime, no LLVM) and `compiler` (everything, the default of find_package).
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/burin)

set(runtime_targets)
set(compiler_targets burin)
foreach(room IN ITEMS base runtime)
  if(TARGET burin_${room})
    list(APPEND runtime_targets burin_${room})
  endif()
endforeach()
foreach(room IN ITEMS ir passes codegen frontend)
  if(TARGET burin_${room})
    list(APPEND compiler_targets burin_${room})
  endif()
endforeach()
foreach(component IN ITEMS runtime compiler)
  if(${component}_targets)
    install(TARGETS ${${component}_targets} EXPORT burin_${component}
      ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT ${component})
    install(EXPORT burin_${component} FILE ${component}.cmake NAMESPACE burin:: DESTINATION ${package_dir}
      COMPONENT ${component})
  endif()
endforeach()

install(DIRECTORY ${PROJECT_SOURCE_DIR}/frontend/burin DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT compiler
  FILES_MATCHING PATTERN "*.h")
foreach(header IN LISTS BURIN_EXTRA_PUBLIC_HEADERS)
  if(EXISTS ${PROJECT_SOURCE_DIR}/${header})
    cmake_path(GET header PARENT_PATH folder)
    install(FILES ${PROJECT_SOURCE_DIR}/${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/burin/${folder}
      COMPONENT runtime)
  endif()
endforeach()

configure_package_config_file(cmake/burin-config.cmake.in ${PROJECT_BINARY_DIR}/burin-config.cmake
  INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/burin-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/burin-config.cmake ${PROJECT_BINARY_DIR}/burin-config-version.cmake
  DESTINATION ${package_dir} COMPONENT runtime)
install(FILES LICENSE THIRD_PARTY.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT runtime)
