# The GPU engine's sources: built by nvcc into the plug-in, and by the tests for an emulated device.
set(SIMILE_KERNEL_SOURCES canonical_scan.cu finish.cu convert_to_fp16.cu order_mask.cu row_scan.cu sample_gate.cu topk_fp16.cu)
list(TRANSFORM SIMILE_KERNEL_SOURCES PREPEND ${PROJECT_SOURCE_DIR}/kernels/)
set(SIMILE_GPU_SOURCES batch_search.cpp blas_library.cpp cuda_backend.cpp cuda_engine.cpp device.cpp device_error.cpp device_probe.cpp
                       filter_cache.cpp kernel_variants.cpp pass_plan.cpp pass_runner.cpp plugin.cpp resident_rows.cpp workspace.cpp)
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
  # CMake 3.25 sets a property of this target even where the toolkit, like CUDA 13, has no such library.
  add_library(CUDA::nvToolsExt INTERFACE IMPORTED)
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
