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

# Executables that the loader may place anywhere.
include(CheckPIESupported)
check_pie_supported()

# simile_harden(): what makes a bug in what ships harder to exploit, for the targets of this folder and those below it;
# SECURITY.md says what each is for, tests/supply_chain that the files have it. Sanitizers replace these checks by their own.
function(simile_harden)
  if(SIMILE_SANITIZE)
    return()
  endif()
  set(flags -fstack-protector-strong -fstack-clash-protection)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|amd64|AMD64)$")
    list(APPEND flags -fcf-protection)
  endif()
  list(JOIN flags "," host_flags)
  # _FORTIFY_SOURCE does nothing, and warns, without optimisation.
  set(optimised $<NOT:$<CONFIG:Debug>>)
  add_compile_options("$<$<COMPILE_LANGUAGE:C,CXX>:${flags}>"
                      "$<$<AND:$<COMPILE_LANGUAGE:C,CXX>,${optimised}>:-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=2>"
                      "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=${host_flags}>"
                      "$<$<AND:$<COMPILE_LANGUAGE:CUDA>,${optimised}>:-Xcompiler=-U_FORTIFY_SOURCE,-D_FORTIFY_SOURCE=2>")
  add_link_options(LINKER:-z,relro LINKER:-z,now LINKER:-z,noexecstack)
endfunction()
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
if(SIMILE_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  # With a sanitizer GCC 12 warns falsely, for instance of <regex> (GCC bug 105562). Builds without a sanitizer keep the warning.
  list(APPEND SIMILE_WARNINGS -Wno-maybe-uninitialized)
endif()

# Tests spend their time in the libraries, not in their own code: it is compiled for a quick build.
set(SIMILE_TEST_OPTIONS $<$<CONFIG:Release>:-O1>)

find_program(SIMILE_CCACHE ccache)
if(SIMILE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_C_COMPILER_LAUNCHER ${SIMILE_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${SIMILE_CCACHE})
endif()
