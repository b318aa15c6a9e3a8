#include "backend/registry.h"

#include <limits>
#include <utility>

#include <fmt/format.h>

#include "backend/cpu/int8_kernels.h"
#include "backend/cpu/scan_backend.h"
#include "base/threads.h"

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
  const absl::StatusOr<cpu::Int8Options> chosen = MakeCpuOptions(options);
  if (!chosen.ok()) return chosen.status();
  if (options.cpu_engine == CpuEngine::kScan) {
    return cpu::MakeScanBackend(*chosen->canonical, chosen->threads);
  }
  return cpu::MakeInt8Backend(*chosen);
}

// Opens the first accelerator that can be used.
// Errors: kUnavailable when none is tried after too many faults; kFailedPrecondition with the
// reason
//         of each kind that cannot be used.
absl::StatusOr<OpenedGpu> TryGpu(const RegistryOptions& options) {
  static const RealClock real_clock;
  GpuOptions gpu = options.gpu;
  if (gpu.clock == nullptr) gpu.clock = &real_clock;
  std::string not_tried = WhyNotTried(options.gpu_faults, gpu.clock->WallNow());
  if (!not_tried.empty()) return absl::UnavailableError(not_tried);
  std::string reasons;
  for (const GpuSearch& search :
       options.gpu_searches.empty() ? DefaultGpuSearches() : options.gpu_searches) {
    absl::StatusOr<OpenedGpu> opened = OpenGpu(search, gpu);
    if (opened.ok()) return opened;
    if (!reasons.empty()) reasons += "; ";
    reasons += std::string(opened.status().message());
  }
  return absl::FailedPreconditionError(reasons);
}

}  // namespace

absl::StatusOr<cpu::Int8Options> MakeCpuOptions(const RegistryOptions& options) {
  cpu::Int8Options chosen = cpu::OptionsFor(options.isa);
  if (chosen.large == nullptr) return UnknownIsa(options.isa);
  chosen.threads = options.threads > 0 ? options.threads : base::UsableCpuCount();
  chosen.tuning = options.tuning;
  if (!options.int4) {
    chosen.tuning.int4_from_code_bytes = std::numeric_limits<std::size_t>::max();
  }
  return chosen;
}

absl::StatusOr<Chosen> ChooseBackend(const RegistryOptions& options) {
  auto cpu = MakeCpuBackend(options);
  if (!cpu.ok()) return cpu.status();
  if (options.preference == Preference::kCpu) {
    return Chosen{*std::move(cpu), "the configuration asks for the CPU", "", false};
  }
  auto gpu = TryGpu(options);
  if (gpu.ok()) {
    return Chosen{MakeFailoverBackend(std::move(gpu->backend), *std::move(cpu),
                                      options.gpu_when_full, options.gpu_observer),
                  std::move(gpu->description), std::move(gpu->bus_id), false};
  }
  std::string reason(gpu.status().message());
  if (options.preference == Preference::kGpu) {
    return absl::FailedPreconditionError(
        fmt::format("the configuration asks for the GPU, which cannot be used: {}", reason));
  }
  return Chosen{*std::move(cpu), std::move(reason), "", absl::IsUnavailable(gpu.status())};
}

}  // namespace simile::backend
