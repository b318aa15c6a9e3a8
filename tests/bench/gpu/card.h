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

// A card, opened as the engine opens it, with its workspace.
struct Card {
  // Throws DeviceError.
  Card(const backend::GpuOptions& options, const backend::cuda::BlasLibrary& blas)
      : device(options, blas), workspace(device, blas.LimitSize(options.workspace), 1) {}

  // Why there are no matrix products; empty where there are.
  const std::string& blas_missing() const { return device.blas().missing; }

  backend::cuda::Device device;
  backend::cuda::Workspace workspace;
};

// Opens the card and runs work on it. Prints any error and returns the exit code.
int WithCard(const backend::GpuOptions& options, const std::function<absl::Status(Card&)>& work);

nlohmann::json Describe(const backend::cuda::CardTraits& traits);

// Prints an error; returns the exit code.
int Explain(const absl::Status& status);

}  // namespace simile::bench::gpu
