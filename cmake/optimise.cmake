# How the program of a release is made fast. Results do not depend on it.

# Link-time optimisation: calls between realms are inlined, in one part, so that functions of one path
# come to lie together. It takes about a minute of a link, and 5 to 10 % off a packet's time. The
# archives' objects hold machine code, too: whoever else links them takes that.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_BUILD_TYPE STREQUAL "Release" AND RNICSIM_UNITY
   AND NOT RNICSIM_SANITIZE AND NOT RNICSIM_COVERAGE)
  set(RNICSIM_LTO_DEFAULT ON)
else()
  set(RNICSIM_LTO_DEFAULT OFF)
endif()
option(RNICSIM_LTO "Link-time optimisation of the program (GCC)" ${RNICSIM_LTO_DEFAULT})

# Profile: which way branches went in the runs of `scripts/profile`. What a packet needs then lies
# together and fits into the first-level instruction cache, which takes another 20 to 30 % off. A
# function that was changed since is compiled as if there were no profile; one profile holds for one
# version of the compiler. use, generate (for scripts/profile) or off.
file(STRINGS ${PROJECT_SOURCE_DIR}/profile/compiler.txt profile_compiler LIMIT_COUNT 1)
if(RNICSIM_LTO AND profile_compiler STREQUAL "GNU ${CMAKE_CXX_COMPILER_VERSION}")
  set(RNICSIM_PROFILE_DEFAULT use)
else()
  set(RNICSIM_PROFILE_DEFAULT off)
endif()
set(RNICSIM_PROFILE ${RNICSIM_PROFILE_DEFAULT} CACHE STRING "Branch profile: use, generate or off")
set_property(CACHE RNICSIM_PROFILE PROPERTY STRINGS use generate off)

# The compiler looks for an object's profile beside the object.
function(rnicsim_place_profiles)
  file(STRINGS ${PROJECT_SOURCE_DIR}/profile/objects.txt lines REGEX "^[^#]")
  foreach(line ${lines})
    separate_arguments(pair UNIX_COMMAND "${line}")
    list(GET pair 0 file)
    list(GET pair 1 object)
    configure_file(${PROJECT_SOURCE_DIR}/profile/${file} ${PROJECT_BINARY_DIR}/${object} COPYONLY)
  endforeach()
endfunction()

if(RNICSIM_PROFILE STREQUAL "use")
  rnicsim_place_profiles()
  # What was not trained is compiled as usual, not for size. Another order of inlining makes the
  # compiler see uninitialised values where there are none.
  set(RNICSIM_PROFILE_OPTIONS -fprofile-use -fprofile-partial-training -Wno-missing-profile
      -Wno-coverage-mismatch -Wno-maybe-uninitialized)
elseif(RNICSIM_PROFILE STREQUAL "generate")
  set(RNICSIM_PROFILE_OPTIONS -fprofile-generate -fprofile-update=single)
endif()

# For a library that the program consists of.
function(rnicsim_optimise library)
  target_compile_options(${library} PRIVATE ${RNICSIM_PROFILE_OPTIONS})
  if(RNICSIM_LTO)
    target_compile_options(${library} PRIVATE -flto=auto -ffat-lto-objects)
    target_link_options(${library} INTERFACE $<INSTALL_INTERFACE:-fno-lto>)
  endif()
endfunction()

function(rnicsim_optimise_program program)
  if(RNICSIM_LTO)
    target_link_options(${program} PRIVATE -flto=auto -flto-partition=one)
  endif()
  if(RNICSIM_PROFILE STREQUAL "generate")
    target_link_options(${program} PRIVATE -fprofile-generate)
  endif()
endfunction()
