# simile_join(TARGET COUNT): compiles so many of the target's files as one, because most of the time goes into the
# headers that they share. Files joined share their anonymous namespace, where names must differ, those of overloads too.
function(simile_join target count)
  if(SIMILE_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${count})
    # GCC takes the class of an included .cpp for one of a header, whose members need types that others know.
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
  endif()
endfunction()

# simile_library(NAME SOURCES ... DEPS ... [SEPARATE]): one static library a folder, simile_<folder>; SEPARATE compiles
# each file by itself.
function(simile_library name)
  cmake_parse_arguments(ARG "SEPARATE" "" "SOURCES;DEPS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(${name} PUBLIC ${ARG_DEPS})
  target_compile_options(${name} PRIVATE ${SIMILE_WARNINGS})
  if(NOT ARG_SEPARATE)
    simile_join(${name} 12)
  endif()
endfunction()

# Seconds after which ctest ends a test. It is for one that hangs: a test that takes up to a minute on a calm machine gets ten
# times as long, one that takes longer three times, also under a sanitizer.
set(SIMILE_TEST_TIMEOUT 900)

# simile_script_test(NAME LABEL COMMAND...): a test that is a command, such as a script, which ends with 77 where it is skipped.
function(simile_script_test name label)
  add_test(NAME ${name} COMMAND ${ARGN})
  set_tests_properties(${name} PROPERTIES LABELS ${label} TIMEOUT ${SIMILE_TEST_TIMEOUT} SKIP_RETURN_CODE 77)
endfunction()

# simile_test_group(VARIABLE): the group of the tests in this folder. The programs of a group need the same libraries, so a
# build of one group compiles little of what the others need.
function(simile_test_group result)
  file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR}/tests ${CMAKE_CURRENT_SOURCE_DIR})
  if(folder MATCHES "^(emulated_cuda|backend/cuda|bench/gpu)$")
    set(group gpu)
  elseif(folder MATCHES "^(cli|doctor)(/|$)")
    set(group cli)
  elseif(folder MATCHES "^(net|service|app|fuzz|integration|request_mutations|faults)(/|$)")
    set(group service)
  else()
    set(group engine)
  endif()
  set(${result} ${group} PARENT_SCOPE)
endfunction()

# simile_test(NAME LABEL ... SOURCES ... DEPS ... [SEPARATE]): a GoogleTest binary whose cases ctest lists one by one.
# LABEL is unit, conformance or integration. ctest labels the tests LABEL_GROUP, as simile_test_group says, so that a run can take
# one group. Tests find the repository through SIMILE_SOURCE_DIR.
function(simile_test name)
  cmake_parse_arguments(ARG "SEPARATE" "LABEL;TIMEOUT" "SOURCES;DEPS" ${ARGN})
  if(NOT SIMILE_TESTS)
    return()
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT ${SIMILE_TEST_TIMEOUT})
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests ${PROJECT_SOURCE_DIR}/src
                                             ${PROJECT_SOURCE_DIR}/include)
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} GTest::gmock GTest::gtest_main)
  target_compile_options(${name} PRIVATE ${SIMILE_WARNINGS} ${SIMILE_TEST_OPTIONS})
  target_compile_definitions(${name} PRIVATE SIMILE_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
                                             SIMILE_BINARY_DIR="${PROJECT_BINARY_DIR}")
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  if(NOT ARG_SEPARATE)
    simile_join(${name} 8)
  endif()
  # LABEL_tests builds every test of a label and no more, LABEL_GROUP_tests those of one group.
  simile_test_group(group)
  foreach(label ${ARG_LABEL} ${ARG_LABEL}_${group})
    if(NOT TARGET ${label}_tests)
      add_custom_target(${label}_tests)
    endif()
    add_dependencies(${label}_tests ${name})
  endforeach()
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST
                       PROPERTIES LABELS ${ARG_LABEL}_${group} TIMEOUT ${ARG_TIMEOUT})
endfunction()
