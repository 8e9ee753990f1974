# codegen_build_id.cpp, of all that decides what a kernel becomes: machine code that outlives the process is good for this build of
# code generation only. Its inputs are listed in a file, which changes when a file or a flag does: not every generator runs a
# command again because its text has changed.
set(id_globs ${PROJECT_SOURCE_DIR}/runtime/abi.h)
foreach(folder IN ITEMS base codegen ir)
  foreach(ending IN ITEMS cpp h def)
    list(APPEND id_globs ${PROJECT_SOURCE_DIR}/${folder}/*.${ending})
  endforeach()
endforeach()
file(GLOB_RECURSE id_sources CONFIGURE_DEPENDS ${id_globs})
set(id_compiler "${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION} ${CMAKE_BUILD_TYPE} ${CMAKE_CXX_FLAGS}")
if(CMAKE_CONFIGURATION_TYPES)
  set(id_types ${CMAKE_CONFIGURATION_TYPES})
else()
  set(id_types ${CMAKE_BUILD_TYPE})
endif()
foreach(type IN LISTS id_types)
  string(TOUPPER ${type} type)
  string(APPEND id_compiler " ${CMAKE_CXX_FLAGS_${type}}")
endforeach()
foreach(property IN ITEMS COMPILE_OPTIONS COMPILE_DEFINITIONS)
  get_target_property(values burin_codegen ${property})
  string(APPEND id_compiler " ${values}")
endforeach()
string(REGEX REPLACE "[;\r\n]" " " id_compiler "${id_compiler}")
list(JOIN id_sources "\n" id_lines)
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/codegen_build_id.txt CONTENT "${id_compiler}\n${id_lines}\n" @ONLY)
add_custom_command(OUTPUT ${PROJECT_BINARY_DIR}/codegen_build_id.cpp
  DEPENDS ${PROJECT_BINARY_DIR}/codegen_build_id.txt ${PROJECT_SOURCE_DIR}/cmake/write_build_id.cmake ${id_sources}
  COMMAND ${CMAKE_COMMAND} -DINPUTS=${PROJECT_BINARY_DIR}/codegen_build_id.txt -DOUTPUT=${PROJECT_BINARY_DIR}/codegen_build_id.cpp
    -P ${PROJECT_SOURCE_DIR}/cmake/write_build_id.cmake VERBATIM)
