# simile_emulated_library(NAME SOURCES ... DEPS ...): the project's own CUDA sources as a shared library for
# tests, compiled as C++ with the headers of tests/emulated_cuda. Kernels (.cu) become a library of their own,
# NAME_kernels where there are .cpp files too: its thread-local memory then holds only __shared__ variables, which
# the emulated device poisons for every block.
function(simile_emulated_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  set(kernels "")
  set(hosts "")
  foreach(source ${ARG_SOURCES})
    get_filename_component(path ${source} ABSOLUTE)
    if(path MATCHES "\\.cu$")
      # Included from a .cpp, because CMake gives a .cu to nvcc where the CUDA toolkit is in use.
      file(RELATIVE_PATH wrapper ${PROJECT_SOURCE_DIR} ${path})
      set(wrapper ${CMAKE_CURRENT_BINARY_DIR}/${name}/${wrapper}.cpp)
      file(CONFIGURE OUTPUT ${wrapper} CONTENT "#include \"${path}\"\n" @ONLY)
      list(APPEND kernels ${wrapper})
    else()
      list(APPEND hosts ${path})
    endif()
  endforeach()
  if(kernels AND hosts)
    simile_emulated_target(${name}_kernels "${kernels}" "${ARG_DEPS}")
    simile_emulated_target(${name} "${hosts}" "${name}_kernels;${ARG_DEPS}")
  else()
    simile_emulated_target(${name} "${kernels};${hosts}" "${ARG_DEPS}")
  endif()
endfunction()

function(simile_emulated_target name sources deps)
  add_library(${name} SHARED ${sources})
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/src
                                            ${PROJECT_SOURCE_DIR}/include)
  target_link_libraries(${name} PUBLIC emulated_cuda ${deps})
  # -fno-extern-tls-init: dynamic shared memory has no constructor, so its address needs no check.
  target_compile_options(${name} PRIVATE -Wall -Wextra -Wno-unknown-pragmas -Werror -fno-extern-tls-init
                                 INTERFACE -Wno-unknown-pragmas)  # "unroll" in kernels/device.h
  set_target_properties(${name} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
endfunction()
