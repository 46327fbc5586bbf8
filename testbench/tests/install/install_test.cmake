# Installs the build into a fresh directory, moves that, and uses it as a stranger would.
# Variables: BUILD (directory), SOURCE (this directory), WORK (scratch), CXX, VERSION.
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE out ERROR_VARIABLE err)
  if(NOT status EQUAL 0)
    string(REPLACE ";" " " command "${ARGN}")
    message(FATAL_ERROR "${command}\nfailed (${status}):\n${out}${err}")
  endif()
  set(output "${out}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE ${WORK})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/first)
# Nothing may depend on where it was installed.
file(RENAME ${WORK}/first ${WORK}/moved)
set(prefix ${WORK}/moved)

foreach(file bin/rnicsim share/rnicsim/configs/nic/generic.ini include/rnicsim/base/time.h
             include/rnicsim/nic/nic.h)
  if(NOT EXISTS ${prefix}/${file})
    message(FATAL_ERROR "not installed: ${file}")
  endif()
endforeach()
file(GLOB_RECURSE strays ${prefix}/include/*.cpp ${prefix}/include/*.md ${prefix}/include/*.txt)
if(strays)
  message(FATAL_ERROR "not headers: ${strays}")
endif()

# The program: its own presets, found beside it and not in the source tree.
run(${prefix}/bin/rnicsim --version)
if(NOT output STREQUAL "rnicsim ${VERSION}\n")
  message(FATAL_ERROR "version: ${output}")
endif()
file(WRITE ${prefix}/share/rnicsim/configs/nic/only_installed.ini "[nic]\nclock = 0.25GHz\n")
foreach(preset generic only_installed)
  run(${prefix}/bin/rnicsim run -c ${preset} --workload.iterations=10 --sim.warmup=2)
  if(NOT output MATCHES "CQEs polled +[0-9]+ success")
    message(FATAL_ERROR "rnicsim run -c ${preset}:\n${output}")
  endif()
endforeach()

# The library, with CMake ...
run(${CMAKE_COMMAND} -S ${SOURCE} -B ${WORK}/consumer -DCMAKE_PREFIX_PATH=${prefix}
    -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_BUILD_TYPE=Release)
run(${CMAKE_COMMAND} --build ${WORK}/consumer)
run(${WORK}/consumer/consumer)

# ... and with pkg-config alone.
file(GLOB_RECURSE pc ${prefix}/rnicsim.pc)
get_filename_component(pc_directory "${pc}" DIRECTORY)
set(ENV{PKG_CONFIG_PATH} ${pc_directory})
run(pkg-config --cflags --libs rnicsim)
separate_arguments(flags UNIX_COMMAND "${output}")
run(${CXX} -std=c++17 ${SOURCE}/consumer.cpp -o ${WORK}/plain ${flags})
run(${WORK}/plain)
file(REMOVE_RECURSE ${WORK})
