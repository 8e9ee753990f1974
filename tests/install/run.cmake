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
