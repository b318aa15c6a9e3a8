#include "backend/registry.h"

#include <utility>

#include <fmt/format.h>

#include "backend/cpu/cpu_count.h"
#include "backend/cpu/scan_backend.h"
#include "backend/gpu_search.h"
#include "certificate/canonical_score.h"

namespace simile::backend {
namespace {

absl::StatusOr<const certificate::CanonicalKernel*> ChooseKernel(const std::string& isa) {
  if (isa.empty()) return certificate::SupportedCanonicalKernels().front();
  if (const auto* kernel = certificate::FindCanonicalKernel(isa)) return kernel;
  std::string supported;
  for (const auto* kernel : certificate::SupportedCanonicalKernels()) {
    fmt::format_to(std::back_inserter(supported), "{}{}", supported.empty() ? "" : ", ",
                   kernel->isa);
  }
  return absl::InvalidArgumentError(fmt::format(
      "instruction set \"{}\" cannot be used on this processor; it has {}", isa, supported));
}

}  // namespace

absl::StatusOr<Chosen> ChooseBackend(const RegistryOptions& options) {
  const auto kernel = ChooseKernel(options.isa);
  if (!kernel.ok()) return kernel.status();

  std::string reason = "the configuration asks for the CPU";
  if (options.preference != Preference::kCpu) reason = WhyNoGpu(DefaultGpuSearch());
  if (options.preference == Preference::kGpu) {
    return absl::FailedPreconditionError(
        fmt::format("the configuration asks for the GPU, which cannot be used: {}", reason));
  }
  const unsigned threads = options.threads > 0 ? options.threads : cpu::UsableCpuCount();
  return Chosen{cpu::MakeScanBackend(**kernel, threads), std::move(reason)};
}

}  // namespace simile::backend
