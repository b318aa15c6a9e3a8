#pragma once

#include <functional>
#include <memory>
#include <string>

#include <absl/status/status.h>
#include <nlohmann/json.hpp>

#include "backend/cuda/device.h"
#include "backend/cuda/workspace.h"
#include "backend/gpu_options.h"
#include "bench/gpu/json_file.h"

namespace simile::bench::gpu {

// Exit codes of all programs here: run.py distinguishes a machine without a card from a failure.
inline constexpr int kExitFailed = 1;
inline constexpr int kExitNoCard = 2;

// Options for measuring: the whole card except the reserve (bench_options.cpp). In dry runs it also
// makes the small emulated card (emulated_bench_options.cpp): call it once, before a card is
// opened.
backend::GpuOptions BenchOptions();

// Errors: kFailedPrecondition, in one sentence: there is no card, or CUDA's error.
absl::Status FindCard(int ordinal);

// cuBLAS as the engine takes it: where none can be used, passes go without matrix products.
struct FoundBlas {
  backend::cuda::BlasLibrary library;
  std::string missing;  // "no cuBLAS: why"; empty where there is one

  backend::WorkspaceSize SizeOf(backend::WorkspaceSize workspace) const;
};
FoundBlas FindBlas(const backend::GpuOptions& options);

// A card, opened as the engine opens it, with its workspace.
struct Card {
  // Throws DeviceError.
  Card(const backend::GpuOptions& options, const FoundBlas& blas)
      : device(options, blas.library),
        workspace(device, blas.SizeOf(options.workspace), 1),
        blas_missing(blas.missing) {}

  backend::cuda::Device device;
  backend::cuda::Workspace workspace;
  const std::string blas_missing;  // as in FoundBlas
};

// Opens the card and runs work on it. Prints any error and returns the exit code.
int WithCard(const backend::GpuOptions& options, const std::function<absl::Status(Card&)>& work);

nlohmann::json Describe(const backend::cuda::CardTraits& traits);

// Prints an error; returns the exit code.
int Explain(const absl::Status& status);

}  // namespace simile::bench::gpu
