# The GPU engine's sources: built by nvcc into the plug-in, and by the tests for an emulated device.
set(SIMILE_KERNEL_SOURCES canonical_scan.cu finish.cu convert_to_fp16.cu convert_to_int8.cu int8_scan.cu pass_inputs.cu row_scan.cu sample_gate.cu
                          topk_fp16.cu)
list(TRANSFORM SIMILE_KERNEL_SOURCES PREPEND ${PROJECT_SOURCE_DIR}/kernels/)
set(SIMILE_GPU_SOURCES batch_search.cpp blas_library.cpp cuda_backend.cpp cuda_engine.cpp device.cpp device_error.cpp
                       kernel_variants.cpp pass_choices.cpp pass_plan.cpp pass_runner.cpp plugin.cpp resident_rows.cpp workspace.cpp)
list(TRANSFORM SIMILE_GPU_SOURCES PREPEND ${PROJECT_SOURCE_DIR}/src/backend/cuda/)

# simile_cuda_architectures(VARIABLE): what the kernels are compiled for, as SIMILE_CUDA_CARDS says.
#   all   machine code for every generation that the toolkit knows, and PTX of the newest for later ones: for packages,
#         and for programs that go to another machine
#   here  machine code for the cards of this machine, a fraction of the time; without a card, for the T4, and PTX that
#         the driver of any later card compiles when the plug-in is loaded
function(simile_cuda_architectures result)
  if(CUDAToolkit_VERSION VERSION_GREATER_EQUAL 13)
    set(all 75-real 80-real 86-real 89-real 90-real 100-real 120)
  elseif(CUDAToolkit_VERSION VERSION_GREATER_EQUAL 12.8)
    set(all 61-real 70-real 75-real 80-real 86-real 89-real 90-real 100-real 120)
  else()
    set(all 61-real 70-real 75-real 80-real 86-real 89-real 90)
  endif()
  if(SIMILE_CUDA_CARDS STREQUAL "here")
    execute_process(COMMAND nvidia-smi --query-gpu=compute_cap --format=csv,noheader TIMEOUT 10
                    OUTPUT_VARIABLE cards ERROR_QUIET RESULT_VARIABLE failed)
    set(architectures 75-real 80-virtual)
    if(NOT failed AND cards MATCHES "[0-9]")
      string(REGEX MATCHALL "[0-9]+\\.[0-9]+" cards "${cards}")
      list(REMOVE_DUPLICATES cards)
      string(REPLACE "." "" architectures "${cards}")
      list(TRANSFORM architectures APPEND -real)
      foreach(architecture IN LISTS architectures)
        # A card that this toolkit has no code for by name: the PTX of `all` may serve it, or the CPU.
        if(NOT architecture IN_LIST all)
          set(architectures ${all})
          break()
        endif()
      endforeach()
    endif()
  elseif(SIMILE_CUDA_CARDS STREQUAL "all")
    set(architectures ${all})
  else()
    message(FATAL_ERROR "SIMILE_CUDA_CARDS is \"${SIMILE_CUDA_CARDS}\"; set here or all")
  endif()
  set(${result} ${architectures} PARENT_SCOPE)
endfunction()

# simile_clang_kernels(VARIABLE): the objects of the kernels where clang compiles them, with the flags of
# cmake/cuda12/flags, which do what those of kernels/CMakeLists.txt do, and CMAKE_CUDA_FLAGS; and PTX of the last architecture, unless it is
# written 90-real. clang calls the ptxas and the fatbinary of the toolkit's folder; a kernel that spills is an error.
function(simile_clang_kernels result)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/cuda12/flags)
  file(READ ${PROJECT_SOURCE_DIR}/cmake/cuda12/flags flags)
  separate_arguments(flags UNIX_COMMAND "${flags} ${CMAKE_CUDA_FLAGS}")
  list(TRANSFORM SIMILE_CUDA_ARCHITECTURES REPLACE "-real$" "" OUTPUT_VARIABLE targets)
  list(TRANSFORM targets PREPEND --offload-arch=sm_)
  set(ptx --no-cuda-include-ptx=all)  # clang 19 keeps that of every architecture otherwise
  list(GET SIMILE_CUDA_ARCHITECTURES -1 newest)
  if(NOT newest MATCHES "-real$")
    list(APPEND ptx --cuda-include-ptx=sm_${newest})
  endif()
  set(objects "")
  foreach(source IN LISTS SIMILE_KERNEL_SOURCES)
    get_filename_component(name ${source} NAME)
    set(object ${CMAKE_CURRENT_BINARY_DIR}/${name}.o)
    add_custom_command(
      OUTPUT ${object} DEPENDS ${source} DEPFILE ${object}.d COMMENT "Building CUDA object ${name}.o by clang" VERBATIM
      COMMAND ${SIMILE_CUDA_CLANG} ${flags} --cuda-path=${SIMILE_CUDA12_TOOLKIT} ${targets} ${ptx} -I${PROJECT_SOURCE_DIR}
              -I${PROJECT_SOURCE_DIR}/cmake/cuda12 -Xcuda-ptxas --warn-on-spills -Xcuda-ptxas --warning-as-error -MD -MF ${object}.d -MT ${object} -c ${source} -o ${object})
    list(APPEND objects ${object})
  endforeach()
  set(${result} ${objects} PARENT_SCOPE)
endfunction()

# simile_report_nvtx(FOLDERS...): a line where the toolkit's include folders lack NVTX (src/backend/cuda/profiler_range.h).
function(simile_report_nvtx)
  foreach(folder IN LISTS ARGN)
    if(EXISTS ${folder}/nvtx3/nvToolsExt.h)
      return()
    endif()
  endforeach()
  message(STATUS "GPU plug-in: without ranges for profilers, because this CUDA toolkit has no nvtx3/nvToolsExt.h")
endfunction()

# Whether the GPU plug-in is built: SIMILE_BUILD_CUDA, for SIMILE_CUDA_VERSION, and one line that says so. With
# SIMILE_CUDA12_TOOLKIT and no CMAKE_CUDA_COMPILER clang builds it (SIMILE_CUDA_CLANG), for every card up to Hopper and, as
# PTX, later ones.
set(SIMILE_BUILD_CUDA OFF)
if(SIMILE_CUDA STREQUAL "OFF")
  message(STATUS "GPU plug-in: not built (SIMILE_CUDA=OFF)")
  return()
endif()
if(SIMILE_CUDA12_TOOLKIT AND NOT CMAKE_CUDA_COMPILER)
  if(NOT EXISTS ${SIMILE_CUDA12_TOOLKIT}/bin/fatbinary)
    message(FATAL_ERROR "${SIMILE_CUDA12_TOOLKIT} is not there: run cmake/cuda12/fetch with it, or set CMAKE_CUDA_COMPILER to nvcc 12")
  endif()
  find_program(SIMILE_CUDA_CLANG NAMES clang++-19 clang++-20 clang++-21 REQUIRED)
  add_library(CUDA::cudart_static INTERFACE IMPORTED)
  target_include_directories(CUDA::cudart_static INTERFACE ${SIMILE_CUDA12_TOOLKIT}/include ${PROJECT_SOURCE_DIR}/cmake/cuda12)
  target_link_libraries(CUDA::cudart_static INTERFACE ${SIMILE_CUDA12_TOOLKIT}/lib/libcudart_static.a Threads::Threads rt
                                                      ${CMAKE_DL_LIBS})
  set(SIMILE_BUILD_CUDA ON)
  set(SIMILE_CUDA_VERSION 12.9)
  set(SIMILE_CUDA_FOLDER ${SIMILE_CUDA12_TOOLKIT})
  if(NOT SIMILE_CUDA_ARCHITECTURES)
    set(SIMILE_CUDA_ARCHITECTURES 61 70 75 80 86 89 90)
  endif()
  message(STATUS "GPU plug-in: built with CUDA ${SIMILE_CUDA_VERSION} by ${SIMILE_CUDA_CLANG} for ${SIMILE_CUDA_ARCHITECTURES}")
  simile_report_nvtx(${SIMILE_CUDA12_TOOLKIT}/include)
  return()
endif()
unset(SIMILE_CUDA_CLANG CACHE)
include(CheckLanguage)
check_language(CUDA)
if(CMAKE_CUDA_COMPILER)
  enable_language(CUDA)
  # CMake 3.25 sets a property of this target even where the toolkit, like CUDA 13, has no such library.
  add_library(CUDA::nvToolsExt INTERFACE IMPORTED)
  find_package(CUDAToolkit REQUIRED)
  set(SIMILE_BUILD_CUDA ON)
  set(SIMILE_CUDA_VERSION ${CUDAToolkit_VERSION})
  list(GET CUDAToolkit_INCLUDE_DIRS 0 SIMILE_CUDA_FOLDER)
  cmake_path(GET SIMILE_CUDA_FOLDER PARENT_PATH SIMILE_CUDA_FOLDER)
  if(SIMILE_CCACHE)
    set(CMAKE_CUDA_COMPILER_LAUNCHER ${SIMILE_CCACHE})
  endif()
  if(SIMILE_CUDA_ARCHITECTURES)  # of the command line, such as 90-real
    set(why SIMILE_CUDA_ARCHITECTURES)
  else()
    simile_cuda_architectures(SIMILE_CUDA_ARCHITECTURES)
    set(why SIMILE_CUDA_CARDS=${SIMILE_CUDA_CARDS})
  endif()
  message(STATUS "GPU plug-in: built with CUDA ${CUDAToolkit_VERSION} for ${SIMILE_CUDA_ARCHITECTURES} (${why})")
  simile_report_nvtx(${CUDAToolkit_INCLUDE_DIRS})
elseif(SIMILE_CUDA STREQUAL "ON")
  message(FATAL_ERROR "SIMILE_CUDA=ON needs nvcc: put it on PATH or set CMAKE_CUDA_COMPILER")
else()
  message(STATUS "GPU plug-in: not built (nvcc not found); the server answers on the CPU")
endif()
