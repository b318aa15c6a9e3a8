#include "app/config/foreign_variables.h"

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

// Whether the images of NVIDIA and PyTorch set the variable, to say what they hold, or a cluster
// sets it, to describe a service.
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

// Sources of what others read: "CUDA Environment Variables" in the CUDA Programming Guide 13, the
// cuBLAS reference, and "Specialized Configurations with Docker" of the NVIDIA Container Toolkit.
std::span<const ForeignVariable> ForeignVariables() {
  using enum VariableReader;
  static constexpr std::string_view kExact = "Scores are exact on every backend.";
  static constexpr std::string_view kNoModel = "No model runs in this server.";
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
      {"NVIDIA_VISIBLE_DEVICES", kContainerRuntime, "The GPUs that a container is given.", "all"},
      {"NVIDIA_DRIVER_CAPABILITIES", kContainerRuntime,
       "The driver's libraries that a container is given; compute and utility are needed.",
       "compute,utility"},
      {"NVIDIA_TF32_OVERRIDE", kNobody, kExact},
      {"TF32_OVERRIDE", kNobody, kExact},
      {"ENABLE_AMP", kNobody, kExact},
      {"CUDNN_BENCHMARK", kNobody, kNoModel},
      {"DOCUMENT_BATCH_SIZE", kNobody, kNoModel},
      {"NER_BATCH_SIZE", kNobody, kNoModel},
      {"PYTORCH_CUDA_ALLOC_CONF", kNobody, "Set gpu.memory_fraction and gpu.reserve_mib."},
      {"WORKER_CONCURRENCY", kNobody,
       "Calls share passes that every core works on; backend.threads leaves cores to other "
       "programs."},
      {"WORKER_MAX_TASKS_PER_CHILD", kNobody,
       "One process answers all calls, and nothing grows with their number."},
      {"*_NUM_THREADS", kNobody, "Set backend.threads."},
      {"*_BATCH_SIZE", kNobody,
       "Queries that wait share a pass, at most limits.batch_queries_max of them."},
      {"CUDA_*", kGpuDriver, "The driver reads the names that it knows."},
      {"CUBLAS*", kCublas, "What cuBLAS logs and how it computes; scores stay exact."},
      {"CUDNN_*", kNobody, kNoModel},
      {"NVIDIA_*", kNobody, "The container runtime may have read it before the start."},
      {"TF*", kNobody, "No TensorFlow runs in this server."},
      {"PYTORCH_*", kNobody, "No PyTorch runs in this server."},
      {"WORKER_*", kNobody, "The server has no workers to set up: one process answers all calls."},
      {"ENABLE_*", kNobody, "`simile config --print` shows what can be switched on."},
  };
  return kTable;
}

const ForeignVariable* FindForeignVariable(std::string_view name) {
  const auto table = ForeignVariables();
  const auto found =
      std::ranges::find_if(table, [&](const auto& row) { return Matches(row.name, name); });
  if (found == table.end()) return nullptr;
  return found->is_family() && IsSetByImageOrCluster(name) ? nullptr : &*found;
}

}  // namespace simile::app
