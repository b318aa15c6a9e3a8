#pragma once

#include <functional>
#include <memory>
#include <string>

#include <absl/status/status.h>
#include <nlohmann/json.hpp>

#include "backend/cuda/device.h"
#include "backend/cuda/workspace.h"
#include "backend/gpu_options.h"

namespace simile::bench::gpu {

// The exit codes of every program here: run.py tells a machine without a card from a failure.
inline constexpr int kExitFailed = 1;
inline constexpr int kExitNoCard = 2;

// Options to measure with: all of the card but the reserve, and time for the longest pass.
backend::GpuOptions BenchOptions();

// Errors: kFailedPrecondition in one sentence: there is no card, or what CUDA says of it.
absl::Status FindCard(int ordinal);

// A card, opened as the engine opens it, with its workspace.
struct Card {
  // Throws DeviceError.
  Card(const backend::GpuOptions& options, const backend::cuda::BlasLibrary& blas)
      : device(options, blas), workspace(device, options.workspace, 1) {}

  backend::cuda::Device device;
  backend::cuda::Workspace workspace;
};

// Opens the card and runs work on it. Returns the exit code, having said what went wrong.
int WithCard(const backend::GpuOptions& options, const std::function<absl::Status(Card&)>& work);

nlohmann::json Describe(const backend::cuda::CardTraits& traits);

// Says an error to the person at the terminal; the exit code.
int Explain(const absl::Status& status);

// Errors: kUnavailable.
absl::Status WriteJsonFile(const nlohmann::json& json, const std::string& path);

}  // namespace simile::bench::gpu
