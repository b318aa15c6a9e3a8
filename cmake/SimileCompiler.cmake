# How everything is compiled. The rank key needs the same bits from every build, so no option here may
# let the compiler contract, reassociate or flush: -ffp-contract=off is part of the product.
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
  # The vptr check opens a pipe to probe memory, and reports a bug that is none when a test has taken the last
  # file descriptor.
  add_compile_options(-fsanitize=${SIMILE_SANITIZE} -fno-sanitize=vptr -fno-sanitize-recover=all
                      -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${SIMILE_SANITIZE})
endif()

# Our own code only; generated code and other people's headers are not ours to warn about.
set(SIMILE_WARNINGS -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wnon-virtual-dtor
                    -Woverloaded-virtual -Wold-style-cast -Wcast-qual -Werror)

find_program(SIMILE_CCACHE ccache)
if(SIMILE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_C_COMPILER_LAUNCHER ${SIMILE_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${SIMILE_CCACHE})
endif()
