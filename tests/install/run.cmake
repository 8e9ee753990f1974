# Installs a build tree into a temporary prefix, then configures, builds and runs the programs of this folder against
# nothing but that prefix.
set(work ${BUILD}/install-test)
file(REMOVE_RECURSE ${work})

function(step)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "${command}\nstatus ${status}\n${output}")
  endif()
endfunction()

step(${CMAKE_COMMAND} --install ${BUILD} --prefix ${work}/prefix)
foreach(program IN ITEMS whole runtime_only)
  step(${CMAKE_COMMAND} -S ${SOURCE}/${program} -B ${work}/${program} -G ${GENERATOR}
    -DCMAKE_MAKE_PROGRAM=${MAKE_PROGRAM} -DCMAKE_PREFIX_PATH=${work}/prefix -DCMAKE_CXX_COMPILER=${COMPILER}
    -DCMAKE_BUILD_TYPE=${BUILD_TYPE} -DCMAKE_CXX_FLAGS=${FLAGS})
  step(${CMAKE_COMMAND} --build ${work}/${program})
  step(${work}/${program}/program)
endforeach()

# Of a partial installation, the missing component is named by find_package, not by the linker.
step(${CMAKE_COMMAND} --install ${BUILD} --prefix ${work}/partial --component runtime)
execute_process(
  COMMAND ${CMAKE_COMMAND} -S ${SOURCE}/whole -B ${work}/partial_whole -G ${GENERATOR} -DCMAKE_MAKE_PROGRAM=${MAKE_PROGRAM}
    -DCMAKE_PREFIX_PATH=${work}/partial -DCMAKE_CXX_COMPILER=${COMPILER}
  RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
string(REGEX REPLACE "[ \n]+" " " output "${output}")
if(status EQUAL 0 OR NOT output MATCHES "the component compiler of burin is not installed here: build burin whole, then run cmake --install")
  message(FATAL_ERROR "find_package of a runtime-only installation: status ${status}\n${output}")
endif()

# A tool that was not built stays out, and the rest is installed.
file(READ ${BUILD}/cmake_install.cmake script)
string(REPLACE "${BUILD}/bin/burin-" "${BUILD}/absent/burin-" script "${script}")
file(WRITE ${work}/without_tools.cmake "${script}")
step(${CMAKE_COMMAND} -DCMAKE_INSTALL_PREFIX=${work}/without_tools -DCMAKE_INSTALL_LOCAL_ONLY=1 -P ${work}/without_tools.cmake)
file(GLOB_RECURSE config ${work}/without_tools/*/burin-config.cmake)
if(NOT config OR EXISTS ${work}/without_tools/bin/burin-opt)
  message(FATAL_ERROR "an installation without tools: found `${config}`")
endif()
