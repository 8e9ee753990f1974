# How a top-level folder becomes a library (a room) or a set of executables. Sources are globbed, so a new file joins at
# the next build; a folder without sources makes no target.

function(burin_compile_options target)
  # Numerics rest on -ffp-contract=off: no multiply and add that a user wrote is ever fused by the host compiler.
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -ffp-contract=off $<$<BOOL:${BURIN_WERROR}>:-Werror>)
  target_compile_definitions(${target} PRIVATE BURIN_WITH_LLVM=$<BOOL:${BURIN_WITH_LLVM}>
                                               BURIN_ASSERTS=$<BOOL:${BURIN_ASSERTS}>)
endfunction()

# Include directories of header-only packages, without making them a link dependency of whoever links the target.
function(burin_use_headers target)
  foreach(package IN LISTS ARGN)
    target_include_directories(${target} SYSTEM PRIVATE
      $<BUILD_INTERFACE:$<TARGET_PROPERTY:${package},INTERFACE_INCLUDE_DIRECTORIES>>)
  endforeach()
endfunction()

# burin_room(<name> DEPENDS <rooms> PRIVATE <libraries> HEADERS_OF <header-only packages>)
function(burin_room name)
  cmake_parse_arguments(arg "" "" "DEPENDS;PRIVATE;HEADERS_OF" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${name}/*.cpp)
  if(NOT sources)
    return()
  endif()
  add_library(burin_${name} STATIC ${sources})
  add_library(burin::${name} ALIAS burin_${name})
  set_target_properties(burin_${name} PROPERTIES EXPORT_NAME ${name})
  target_compile_features(burin_${name} PUBLIC cxx_std_20)
  target_include_directories(burin_${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
                                                  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  burin_compile_options(burin_${name})
  burin_use_headers(burin_${name} ${arg_HEADERS_OF})
  foreach(room IN LISTS arg_DEPENDS)
    if(TARGET burin_${room})
      target_link_libraries(burin_${name} PUBLIC burin_${room})
    endif()
  endforeach()
  target_link_libraries(burin_${name} PRIVATE ${arg_PRIVATE} Threads::Threads)
endfunction()

# burin_mains(<folder> PREFIX <p> LINK <libraries> HEADERS_OF <packages> [INSTALL]): each <folder>/x.cpp is the executable
# <p>x (an underscore in x becomes '-' when the prefix ends in one); sources in <folder>/x/ belong to it.
function(burin_mains folder)
  cmake_parse_arguments(arg "INSTALL" "PREFIX" "LINK;HEADERS_OF" ${ARGN})
  file(GLOB mains CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.cpp)
  file(GLOB_RECURSE parts CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.cpp)
  foreach(main IN LISTS mains)
    cmake_path(GET main STEM stem)
    set(own ${parts})
    list(FILTER own INCLUDE REGEX "^${PROJECT_SOURCE_DIR}/${folder}/${stem}/")
    set(target ${arg_PREFIX}${stem})
    if(arg_PREFIX MATCHES "-$")
      string(REPLACE "_" "-" target ${target})
    endif()
    add_executable(${target} ${main} ${own})
    burin_compile_options(${target})
    burin_use_headers(${target} ${arg_HEADERS_OF})
    target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR})
    target_link_libraries(${target} PRIVATE ${arg_LINK})
    if(arg_INSTALL)
      install(TARGETS ${target} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT compiler)
    endif()
  endforeach()
endfunction()
