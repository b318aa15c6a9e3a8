#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace simile::app {

// Who reads a variable that is no setting.
enum class VariableReader : std::uint8_t { kGpuDriver, kCublas, kContainerRuntime, kNobody };
// "the GPU's driver"; empty for nobody.
std::string_view ReaderName(VariableReader reader);

// A variable, or a family of variables, that is often set for servers of this kind and that this
// program does not read.
struct ForeignVariable {
  std::string_view name;       // "CUDNN_BENCHMARK"; a family has one star: "*_BATCH_SIZE"
  VariableReader reader;       // kNobody: it has no effect here
  std::string_view effect;     // one sentence: what it does, or what to set instead
  std::string_view neutral{};  // the value that has no effect; empty: none

  bool is_family() const { return name.find('*') != std::string_view::npos; }
};

// All rows. The first row that matches a name applies.
std::span<const ForeignVariable> ForeignVariables();

// Finds the row that matches a name. Null when no row matches, and for names that container images
// and Kubernetes set by themselves (CUDA_VERSION, NVIDIA_REQUIRE_CUDA, WORKER_SERVICE_HOST).
const ForeignVariable* FindForeignVariable(std::string_view name);

// Whether Kubernetes or Docker generate variables of this name. They describe each service of a
// namespace to every container: a service "worker" makes WORKER_SERVICE_HOST, WORKER_SERVICE_PORT,
// WORKER_SERVICE_PORT_GRPC and WORKER_PORT_6379_TCP_ADDR. WORKER_PORT, which they generate too, is
// known by its value alone.
bool IsServiceLink(std::string_view name);

// A variable of the environment that this program does not read, and its row.
struct ForeignValue {
  std::string name;
  std::string value;
  const ForeignVariable* row = nullptr;

  // The value, or `(set)` where only a family is known: WORKER_API_KEY may hold a secret.
  std::string_view display_value() const {
    return row->is_family() ? "(set)" : std::string_view(value);
  }
};

}  // namespace simile::app
