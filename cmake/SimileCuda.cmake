# The GPU engine's sources: built by nvcc into the plug-in, and by the tests for an emulated device.
set(SIMILE_KERNEL_SOURCES canonical_scan.cu finish.cu convert_to_fp16.cu order_mask.cu row_scan.cu sample_gate.cu topk_fp16.cu)
list(TRANSFORM SIMILE_KERNEL_SOURCES PREPEND ${PROJECT_SOURCE_DIR}/kernels/)
set(SIMILE_GPU_SOURCES batch_search.cpp blas_library.cpp cuda_backend.cpp cuda_engine.cpp device.cpp device_error.cpp device_probe.cpp
                       filter_cache.cpp kernel_variants.cpp pass_plan.cpp pass_runner.cpp plugin.cpp resident_rows.cpp workspace.cpp)
list(TRANSFORM SIMILE_GPU_SOURCES PREPEND ${PROJECT_SOURCE_DIR}/src/backend/cuda/)

# simile_cuda_architectures(VARIABLE): what the kernels are compiled for, as SIMILE_CUDA_CARDS says.
#   all   machine code for every generation that the toolkit knows, and PTX of the newest for later ones: for packages
#   here  machine code for the cards of this machine; without one, PTX that the driver of any card since the A100
#         compiles when the plug-in is loaded: a seventh of the time
function(simile_cuda_architectures result)
  if(SIMILE_CUDA_CARDS STREQUAL "here")
    execute_process(COMMAND nvidia-smi --query-gpu=compute_cap --format=csv,noheader
                    OUTPUT_VARIABLE cards OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
    set(architectures 80-virtual)
    if(NOT failed AND cards MATCHES "[0-9]")
      string(REGEX MATCHALL "[0-9]+\\.[0-9]+" cards "${cards}")
      list(REMOVE_DUPLICATES cards)
      string(REPLACE "." "" architectures "${cards}")
      list(TRANSFORM architectures APPEND -real)
    endif()
  elseif(CUDAToolkit_VERSION VERSION_GREATER_EQUAL 13)
    set(architectures 75-real 80-real 86-real 89-real 90-real 100-real 120)
  elseif(CUDAToolkit_VERSION VERSION_GREATER_EQUAL 12.8)
    set(architectures 61-real 70-real 75-real 80-real 86-real 89-real 90-real 100-real 120)
  else()
    set(architectures 61-real 70-real 75-real 80-real 86-real 89-real 90)
  endif()
  set(${result} ${architectures} PARENT_SCOPE)
endfunction()

# Whether the GPU plug-in is built: SIMILE_BUILD_CUDA, and one line that says so.
set(SIMILE_BUILD_CUDA OFF)
if(SIMILE_CUDA STREQUAL "OFF")
  message(STATUS "GPU plug-in: not built (SIMILE_CUDA=OFF)")
  return()
endif()
include(CheckLanguage)
check_language(CUDA)
if(CMAKE_CUDA_COMPILER)
  enable_language(CUDA)
  find_package(CUDAToolkit REQUIRED)
  set(SIMILE_BUILD_CUDA ON)
  if(SIMILE_CCACHE)
    set(CMAKE_CUDA_COMPILER_LAUNCHER ${SIMILE_CCACHE})
  endif()
  simile_cuda_architectures(SIMILE_CUDA_ARCHITECTURES)
  message(STATUS "GPU plug-in: built with CUDA ${CUDAToolkit_VERSION} for ${SIMILE_CUDA_ARCHITECTURES} (SIMILE_CUDA_CARDS=${SIMILE_CUDA_CARDS})")
elseif(SIMILE_CUDA STREQUAL "ON")
  message(FATAL_ERROR "SIMILE_CUDA=ON needs nvcc: put it on PATH or set CMAKE_CUDA_COMPILER")
else()
  message(STATUS "GPU plug-in: not built (nvcc not found); the server answers on the CPU")
endif()
