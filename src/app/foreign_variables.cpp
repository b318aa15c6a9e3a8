#include "app/foreign_variables.h"

namespace simile::app {

std::span<const ForeignVariable> ForeignVariables() {
  using enum VariableReader;
  static constexpr std::string_view kExact = "Scores are exact on every backend.";
  static constexpr std::string_view kNoModel = "No model runs in this server.";
  static constexpr std::string_view kThreads = "Set backend.threads.";
  static constexpr std::string_view kMemory = "Set gpu.memory_fraction and gpu.reserve_mib.";
  static constexpr ForeignVariable kTable[] = {
      {"CUDA_MODULE_LOADING", kGpuDriver,
       "LAZY (its default) loads the code of a kernel when it first runs, EAGER all of it at the "
       "start; it knows no other values."},
      {"CUDA_VISIBLE_DEVICES", kGpuDriver,
       "The GPUs that the driver shows; gpu.device counts among these."},
      {"CUDA_DEVICE_ORDER", kGpuDriver, "How the driver numbers the GPUs that it shows."},
      {"NVIDIA_VISIBLE_DEVICES", kContainerRuntime, "The GPUs that a container is given."},
      {"NVIDIA_DRIVER_CAPABILITIES", kContainerRuntime,
       "The driver's libraries that a container is given; compute and utility are needed."},
      {"NVIDIA_TF32_OVERRIDE", kNobody, kExact},
      {"TF32_OVERRIDE", kNobody, kExact},
      {"CUDNN_BENCHMARK", kNobody, kNoModel},
      {"CUDNN_DETERMINISTIC", kNobody, kExact},
      {"PYTORCH_CUDA_ALLOC_CONF", kNobody, kMemory},
      {"TF_FORCE_GPU_ALLOW_GROWTH", kNobody, kMemory},
      {"TOKENIZERS_PARALLELISM", kNobody, kNoModel},
      {kCipherVariable, kNobody,
       "The server agrees to the ciphers of TLS 1.3 and the authenticated ones of TLS 1.2 alone."},
      {"OMP_NUM_THREADS", kNobody, kThreads},
      {"MKL_NUM_THREADS", kNobody, kThreads},
      {"OPENBLAS_NUM_THREADS", kNobody, kThreads},
  };
  return kTable;
}

}  // namespace simile::app
