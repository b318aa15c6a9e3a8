#include "app/foreign_variables.h"

#include <algorithm>

namespace simile::app {
namespace {

// Whether a name matches the pattern, in which a star stands for any text.
bool Matches(std::string_view pattern, std::string_view name) {
  const std::size_t star = pattern.find('*');
  if (star == std::string_view::npos) return name == pattern;
  const std::string_view end = pattern.substr(star + 1);
  return name.size() + 1 >= pattern.size() && name.starts_with(pattern.substr(0, star)) &&
         name.ends_with(end);
}

// NVIDIA's and PyTorch's images say in these what they hold; the cluster's are those of services.
bool IsSetByImageOrCluster(std::string_view name) {
  static constexpr std::string_view kPatterns[] = {
      "*_VERSION",       "NVIDIA_REQUIRE_*",        "NVIDIA_PRODUCT_NAME",
      "NVIDIA_BUILD_ID", "NVIDIA_CUDA_END_OF_LIFE", "CUDA_COMPONENT_LIST",
      "*_PORT",
  };
  return IsServiceLink(name) ||
         std::ranges::any_of(kPatterns, [&](auto each) { return Matches(each, name); });
}

}  // namespace

bool IsServiceLink(std::string_view name) {
  constexpr std::string_view kPort = "_PORT_";
  if (name.ends_with("_SERVICE_HOST") || name.ends_with("_SERVICE_PORT") ||
      name.find("_SERVICE_PORT_") != std::string_view::npos) {
    return true;
  }
  const std::size_t port = name.find(kPort);
  if (port == std::string_view::npos || port + kPort.size() == name.size()) return false;
  const char next = name[port + kPort.size()];
  return next >= '0' && next <= '9';
}

std::string_view ReaderName(VariableReader reader) {
  switch (reader) {
    case VariableReader::kGpuDriver:
      return "the GPU's driver";
    case VariableReader::kCublas:
      return "cuBLAS";
    case VariableReader::kContainerRuntime:
      return "the container runtime";
    case VariableReader::kNobody:
      break;
  }
  return "";
}

// Sources of what others read: "CUDA Environment Variables" in the CUDA Programming Guide 13,
// NVIDIA's pages on MPS and on core dumps (cuda-gdb), the cuBLAS reference, and "Specialized
// Configurations with Docker" of the NVIDIA Container Toolkit.
std::span<const ForeignVariable> ForeignVariables() {
  using enum VariableReader;
  static constexpr std::string_view kExact = "Scores are exact on every backend.";
  static constexpr std::string_view kNoModel = "No model runs in this server.";
  static constexpr std::string_view kThreads = "Set backend.threads.";
  static constexpr std::string_view kMemory = "Set gpu.memory_fraction and gpu.reserve_mib.";
  static constexpr std::string_view kCoreDump =
      "Whether and where the driver writes a core dump after a fault of the GPU.";
  static constexpr ForeignVariable kTable[] = {
      {"CUDA_LAUNCH_BLOCKING", kGpuDriver,
       "1 makes the host wait for the end of each kernel, which slows every pass: for debugging "
       "alone.",
       "0"},
      {"CUDA_MODULE_LOADING", kGpuDriver,
       "LAZY (its default) loads the code of a kernel when it first runs, EAGER all of it at the "
       "start; it knows no other values.",
       "LAZY"},
      {"CUDA_VISIBLE_DEVICES", kGpuDriver,
       "The GPUs that the driver shows; gpu.device counts among these."},
      {"CUDA_DEVICE_ORDER", kGpuDriver, "How the driver numbers the GPUs that it shows.",
       "FASTEST_FIRST"},
      {"CUDA_CACHE_*", kGpuDriver,
       "Where, and whether, the driver keeps kernels that it had to compile for a card."},
      {"CUDA_FORCE_*", kGpuDriver,
       "Makes the driver compile kernels, or load its compiler, without need: a start takes "
       "longer."},
      {"CUDA_DISABLE_*", kGpuDriver,
       "Takes from the driver its compiler of kernels, or from the card its full clock."},
      {"CUDA_DEVICE_*", kGpuDriver,
       "How the driver queues work on a GPU, shares its L2 and stops for debuggers; the defaults "
       "are right."},
      {"CUDA_SCALE_LAUNCH_QUEUES", kGpuDriver,
       "How much work the driver queues; its default is right."},
      {"CUDA_GRAPHS_USE_NODE_PRIORITY", kGpuDriver,
       "Priorities within graphs of kernels; the server's graphs have none."},
      {"CUDA_MANAGED_FORCE_DEVICE_ALLOC", kGpuDriver,
       "Where managed memory lies; the server has none."},
      {"CUDA_PREFER_SPINLOCKS_ON_HOST", kGpuDriver, "How the driver's threads wait for locks."},
      {"CUDA_AUTO_BOOST", kGpuDriver,
       "The clock of old cards; `nvidia-smi` sets it on those of today."},
      {"CUDA_MODULE_DATA_LOADING", kGpuDriver,
       "LAZY (its default) loads the data of kernels with the first of them, EAGER at the start.",
       "LAZY"},
      {"CUDA_BINARY_LOADER_THREAD_COUNT", kGpuDriver,
       "How many threads the driver loads kernels with."},
      {"CUDA_LOG_FILE", kGpuDriver, "Where the driver writes what it says about errors."},
      {"CUDA_MPS_*", kGpuDriver, "How processes share the GPU through NVIDIA's MPS."},
      {"CUDA_ENABLE_*", kGpuDriver, kCoreDump},
      {"CUDA_COREDUMP_*", kGpuDriver, kCoreDump},
      {"CUDA_INJECTION64_PATH", kGpuDriver,
       "A library that the driver loads into the server; profilers set it."},
      {"CUBLAS_WORKSPACE_CONFIG", kNobody,
       "The server gives cuBLAS its workspace, and scores are exact on every backend."},
      {"CUBLAS_*", kCublas, "What cuBLAS logs, and which kernels it prefers; scores stay exact."},
      {"CUBLASLT_*", kCublas, "What cuBLAS logs, and which kernels it prefers; scores stay exact."},
      {"NVIDIA_VISIBLE_DEVICES", kContainerRuntime, "The GPUs that a container is given.", "all"},
      {"NVIDIA_DRIVER_CAPABILITIES", kContainerRuntime,
       "The driver's libraries that a container is given; compute and utility are needed.",
       "compute,utility"},
      {"NVIDIA_DISABLE_REQUIRE", kContainerRuntime,
       "Starts a container without a look at the driver that its image asks for."},
      {"NVIDIA_MIG_*", kContainerRuntime,
       "The MIG devices that a container may configure or watch; serving needs neither."},
      {"NVIDIA_IMEX_CHANNELS", kContainerRuntime,
       "The channels to other machines' GPUs that a container is given; serving needs none."},
      {"NVIDIA_TF32_OVERRIDE", kNobody, kExact},
      {"TF32_OVERRIDE", kNobody, kExact},
      {"ENABLE_AMP", kNobody, kExact},
      {"CUDNN_BENCHMARK", kNobody, kNoModel},
      {"CUDNN_DETERMINISTIC", kNobody, kExact},
      {"DOCUMENT_BATCH_SIZE", kNobody, kNoModel},
      {"NER_BATCH_SIZE", kNobody, kNoModel},
      {"PYTORCH_CUDA_ALLOC_CONF", kNobody, kMemory},
      {"PYTORCH_ALLOC_CONF", kNobody, kMemory},
      {"TF_FORCE_GPU_ALLOW_GROWTH", kNobody, kMemory},
      {"TOKENIZERS_PARALLELISM", kNobody, kNoModel},
      {"WORKER_CONCURRENCY", kNobody,
       "Calls share passes that every core works on; backend.threads leaves cores to others."},
      {"WORKER_MAX_TASKS_PER_CHILD", kNobody,
       "One process answers all calls, and nothing grows with their number."},
      {kCipherVariable, kNobody,
       "The server agrees to the ciphers of TLS 1.3 and the authenticated ones of TLS 1.2 alone."},
      {"OMP_NUM_THREADS", kNobody, kThreads},
      {"MKL_NUM_THREADS", kNobody, kThreads},
      {"OPENBLAS_NUM_THREADS", kNobody, kThreads},
      {"BATCH_SIZE", kNobody,
       "Queries that wait share a pass, at most limits.batch_queries_max of them."},
      {"*_BATCH_SIZE", kNobody,
       "Queries that wait share a pass, at most limits.batch_queries_max of them."},
      {"CUDA_*", kNobody, "The driver of CUDA 13 documents no variable of this name."},
      {"CUDNN_*", kNobody, kNoModel},
      {"NVIDIA_*", kNobody, "The container toolkit documents no variable of this name."},
      {"NVTX_INJECTION64_PATH", kGpuDriver,
       "A library that names of work on the GPU go to: it is loaded into the server; profilers set "
       "it."},
      {"TF*", kNobody, "No TensorFlow runs in this server."},
      {"PYTORCH_*", kNobody, "No PyTorch runs in this server."},
      {"WORKER_*", kNobody, "The server has no workers to set up: one process answers all calls."},
      {"ENABLE_*", kNobody, "`simile config --print` shows what can be switched on."},
  };
  return kTable;
}

const ForeignVariable* ForeignVariableOf(std::string_view name) {
  const auto table = ForeignVariables();
  const auto found =
      std::ranges::find_if(table, [&](const auto& row) { return Matches(row.name, name); });
  if (found == table.end()) return nullptr;
  return found->is_family() && IsSetByImageOrCluster(name) ? nullptr : &*found;
}

}  // namespace simile::app
