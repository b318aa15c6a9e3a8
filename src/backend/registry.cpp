#include "backend/registry.h"

#include <limits>
#include <utility>

#include <fmt/format.h>

#include "backend/cpu/cpu_count.h"
#include "backend/cpu/int8_kernels.h"
#include "backend/cpu/scan_backend.h"
#include "backend/gpu_search.h"

namespace simile::backend {
namespace {

absl::Status UnknownIsa(const std::string& isa) {
  std::string supported;
  for (const auto* kernel : cpu::SupportedInt8Kernels()) {
    fmt::format_to(std::back_inserter(supported), "{}{}", supported.empty() ? "" : ", ",
                   kernel->isa);
  }
  const std::string_view why = isa == "amx" ? cpu::WhyNoAmx() : "";
  return absl::InvalidArgumentError(
      fmt::format("instruction set \"{}\" cannot be used on this processor{}{}; it has {}", isa,
                  why.empty() ? "" : ": ", why, supported));
}

absl::StatusOr<std::unique_ptr<Backend>> MakeCpuBackend(const RegistryOptions& options) {
  const absl::StatusOr<cpu::Int8Options> chosen = CpuOptionsOf(options);
  if (!chosen.ok()) return chosen.status();
  if (options.cpu_engine == CpuEngine::kScan) {
    return cpu::MakeScanBackend(*chosen->canonical, chosen->threads);
  }
  return cpu::MakeInt8Backend(*chosen);
}

}  // namespace

absl::StatusOr<cpu::Int8Options> CpuOptionsOf(const RegistryOptions& options) {
  cpu::Int8Options chosen = cpu::OptionsFor(options.isa);
  if (chosen.large == nullptr) return UnknownIsa(options.isa);
  chosen.threads = options.threads > 0 ? options.threads : cpu::UsableCpuCount();
  chosen.tuning = options.tuning;
  if (!options.nibbles) chosen.nibbles_from_code_bytes = std::numeric_limits<std::size_t>::max();
  return chosen;
}

absl::StatusOr<Chosen> ChooseBackend(const RegistryOptions& options) {
  auto cpu = MakeCpuBackend(options);
  if (!cpu.ok()) return cpu.status();

  std::string reason = "the configuration asks for the CPU";
  if (options.preference != Preference::kCpu) reason = WhyNoGpu(DefaultGpuSearch());
  if (options.preference == Preference::kGpu) {
    return absl::FailedPreconditionError(
        fmt::format("the configuration asks for the GPU, which cannot be used: {}", reason));
  }
  return Chosen{*std::move(cpu), std::move(reason)};
}

}  // namespace simile::backend
