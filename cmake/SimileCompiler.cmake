# Compiler options. Every build must compute the same bits of a score, so no option may let the compiler contract or
# reassociate floating-point arithmetic or flush subnormal numbers; -ffp-contract=off is required for that.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

add_compile_options($<$<COMPILE_LANGUAGE:C,CXX>:-ffp-contract=off> $<$<COMPILE_LANGUAGE:C,CXX>:-fno-math-errno>
                    $<$<COMPILE_LANGUAGE:C,CXX>:-fstack-protector-strong>)
if(SIMILE_SANITIZE)
  # Without the vptr check: it opens a pipe to probe memory, and reports a false bug when a test has used up the file
  # descriptors.
  add_compile_options(-fsanitize=${SIMILE_SANITIZE} -fno-sanitize=vptr -fno-sanitize-recover=all
                      -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${SIMILE_SANITIZE})
  if(SIMILE_SANITIZE STREQUAL thread)
    # protobuf's headers give maps another layout under this macro than the installed library has.
    add_compile_options(-U__SANITIZE_THREAD__)
  endif()
endif()

# For the project's own code, not for generated code.
set(SIMILE_WARNINGS -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wnon-virtual-dtor
                    -Woverloaded-virtual -Wold-style-cast -Wcast-qual -Werror)

# Tests spend their time in the libraries, not in their own code: it is compiled for a quick build.
set(SIMILE_TEST_OPTIONS $<$<CONFIG:Release>:-O1>)

find_program(SIMILE_CCACHE ccache)
if(SIMILE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_C_COMPILER_LAUNCHER ${SIMILE_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${SIMILE_CCACHE})
endif()
