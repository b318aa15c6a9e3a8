// Tests the one assumption about the hardware in the GPU engine's bound
// (certificate/device_bounds.h): a sum of fp16 products on tensor cores loses at most 2^-23 of the
// magnitudes added in each of at most 2 dim + 16 steps. Compares 10^9 sums, some of random terms
// and some of those that tensor cores are known to cut most, by mma.sync and by cuBLAS with double.
// Exits with 1 when one is beyond the bound: then the engine's proofs are invalid on this card.
#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "bench/gpu/card.h"
#include "bench/gpu/tensor_sum_kernels.h"

namespace simile::bench::gpu {
namespace {

using backend::cuda::Device;
using backend::cuda::DeviceArray;
using backend::cuda::MemoryKind;

constexpr SumShape kSums{.rows = 8'192, .columns = 4'096, .length = 0};
constexpr std::uint64_t kSumsOfRound = std::uint64_t{kSums.rows} * kSums.columns;
constexpr std::array kLengths{384U, 768U, 4'096U};
constexpr float kStart = -1.125F;  // kernels::kLowestScore

struct NamedTerms {
  const char* name;
  Terms terms;
};
constexpr NamedTerms kTerms[] = {{"same sign", Terms::kSameSign},
                                 {"mixed", Terms::kMixed},
                                 {"wide", Terms::kWide},
                                 {"cut most", Terms::kMostCut}};
constexpr std::array<const char*, kSumMethodCount> kMethodNames{"mma.sync", "mma.sync from -1.125",
                                                                "cuBLAS to fp32", "cuBLAS to fp16"};

struct Options {
  int device = 0;
  double sums = 1e9;
  double seconds = 60;
  std::vector<std::string> blas;
  std::string json_path;
};

struct Buffers {
  explicit Buffers(Device& device)
      : left(device, std::size_t{kSums.rows} * kLengths.back(), MemoryKind::kWorkspace),
        right(device, std::size_t{kSums.columns} * kLengths.back(), MemoryKind::kWorkspace),
        tensor(device, kSumsOfRound, MemoryKind::kWorkspace),
        from_start(device, kSumsOfRound, MemoryKind::kWorkspace),
        blas_floats(device, kSumsOfRound, MemoryKind::kWorkspace),
        blas_fp16(device, kSumsOfRound, MemoryKind::kWorkspace),
        worst(device, kSumMethodCount, MemoryKind::kWorkspace) {}

  DeviceArray<__half> left, right;
  DeviceArray<float> tensor, from_start, blas_floats;
  DeviceArray<__half> blas_fp16;
  DeviceArray<unsigned> worst;
};

// cuBLAS is column-major: with the operands exchanged the result is [rows][columns].
void Multiply(Card& card, const Buffers& buffers, unsigned length, void* to, cudaDataType type) {
  const float one = 1, zero = 0;
  card.device.Check(
      card.device.blas().gemm(
          card.workspace.blas(0), CUBLAS_OP_T, CUBLAS_OP_N, static_cast<int>(kSums.columns),
          static_cast<int>(kSums.rows), static_cast<int>(length), &one, buffers.right.get(),
          CUDA_R_16F, static_cast<int>(length), buffers.left.get(), CUDA_R_16F,
          static_cast<int>(length), &zero, to, type, static_cast<int>(kSums.columns),
          CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
      "cublasGemmEx");
}

void TestRound(Card& card, const Buffers& buffers, Terms terms, unsigned length, unsigned seed) {
  Device& device = card.device;
  const cudaStream_t stream = card.workspace.stream(0);
  SumShape shape = kSums;
  shape.length = length;
  device.Check(LaunchDrawTerms(terms, buffers.left.get(), shape.rows, length, seed * 2, stream),
               "draw_terms");
  device.Check(
      LaunchDrawTerms(terms, buffers.right.get(), shape.columns, length, seed * 2 + 1, stream),
      "draw_terms");
  device.Check(LaunchTensorSums(shape, buffers.left.get(), buffers.right.get(), 0,
                                buffers.tensor.get(), stream),
               "tensor_sums");
  device.Check(LaunchTensorSums(shape, buffers.left.get(), buffers.right.get(), kStart,
                                buffers.from_start.get(), stream),
               "tensor_sums");
  const bool has_blas = device.blas().loaded();
  if (has_blas) {
    Multiply(card, buffers, length, buffers.blas_floats.get(), CUDA_R_32F);
    Multiply(card, buffers, length, buffers.blas_fp16.get(), CUDA_R_16F);
  }
  const double steps = 2.0 * length + 16;
  const double gamma = steps * 0x1p-23 / (1 - steps * 0x1p-23);
  const ComputedSums computed{buffers.tensor.get(), buffers.from_start.get(),
                              has_blas ? buffers.blas_floats.get() : nullptr,
                              has_blas ? buffers.blas_fp16.get() : nullptr, kStart};
  device.Check(LaunchCompareSums(shape, buffers.left.get(), buffers.right.get(), computed, gamma,
                                 buffers.worst.get(), stream),
               "compare_sums");
  device.AwaitOrLose(stream);
}

std::array<float, kSumMethodCount> FetchWorst(Card& card, const Buffers& buffers) {
  std::array<unsigned, kSumMethodCount> bits{};
  const cudaStream_t stream = card.workspace.stream(0);
  card.device.Check(cudaMemcpyAsync(bits.data(), buffers.worst.get(), sizeof(bits),
                                    cudaMemcpyDeviceToHost, stream),
                    "cudaMemcpyAsync");
  card.device.Check(cudaMemsetAsync(buffers.worst.get(), 0, sizeof(bits), stream),
                    "cudaMemsetAsync");
  card.device.AwaitOrLose(stream);
  std::array<float, kSumMethodCount> worst{};
  std::ranges::transform(bits, worst.begin(),
                         [](unsigned value) { return std::bit_cast<float>(value); });
  return worst;
}

absl::Status TestAll(Card& card, const Options& options) {
  using Clock = std::chrono::steady_clock;
  const Buffers buffers(card.device);
  FetchWorst(card, buffers);
  const unsigned method_count = card.blas_missing().empty() ? kSumMethodCount : kBlasFloats;
  constexpr double kCombinations = std::size(kLengths) * std::size(kTerms);
  const auto rounds = static_cast<unsigned>(
      std::max(1.0, std::ceil(options.sums / kCombinations / static_cast<double>(kSumsOfRound))));
  const auto share = std::chrono::duration<double>(options.seconds / kCombinations);
  nlohmann::json lines = nlohmann::json::array();
  std::uint64_t sums = 0;
  // Apart, because a score rounded to fp16 may come close to its bound: half a step is most of it.
  float worst_of_floats = 0, worst_of_fp16 = 0;
  unsigned seed = 1;
  for (const unsigned length : kLengths) {
    for (const NamedTerms& terms : kTerms) {
      const auto began = Clock::now();
      unsigned done = 0;
      while (done < rounds && (done == 0 || Clock::now() - began < share)) {
        TestRound(card, buffers, terms.terms, length, seed++);
        ++done;
      }
      sums += done * kSumsOfRound;
      const auto worst = FetchWorst(card, buffers);
      for (unsigned method = 0; method < method_count; ++method) {
        float& worst_so_far = method == kBlasFp16 ? worst_of_fp16 : worst_of_floats;
        worst_so_far = std::max(worst_so_far, worst[method]);
        fmt::print("{:<22} {:<10} length {:>5}: worst error {:.3f} of the bound\n",
                   kMethodNames[method], terms.name, length, worst[method]);
        lines.push_back({{"method", kMethodNames[method]},
                         {"terms", terms.name},
                         {"length", length},
                         {"sums", done * kSumsOfRound},
                         {"seen_over_bound", worst[method]}});
      }
      // After each case: a run that is stopped loses nothing.
      nlohmann::json json{{"card", Describe(card.device.traits())},
                          {"sums", sums},
                          {"seen_over_bound", worst_of_floats},
                          {"lines", lines}};
      if (card.blas_missing().empty()) {
        json["fp16_seen_over_bound"] = worst_of_fp16;
      } else {
        json["skipped"] = {{"sums by cuBLAS", card.blas_missing()}};
      }
      if (absl::Status written = WriteJsonFile(json, options.json_path); !written.ok()) {
        return written;
      }
    }
  }
  const bool holds = worst_of_floats <= 1 && worst_of_fp16 <= 1;
  fmt::print("{:.3g} sums per method, worst {:.3f} of the bound, {:.3f} once stored as fp16: {}\n",
             static_cast<double>(sums), worst_of_floats, worst_of_fp16,
             holds ? "the assumption holds" : "THE ASSUMPTION IS WRONG");
  if (holds) return absl::OkStatus();
  return absl::InternalError(
      "this card's sums exceed the bound: its answers are not proven "
      "(certificate/device_bounds.h)");
}

}  // namespace
}  // namespace simile::bench::gpu

int main(int argc, char** argv) {
  using namespace simile::bench::gpu;  // NOLINT(google-build-using-namespace)
  Options options;
  CLI::App app{"Tests what the GPU engine assumes of sums on tensor cores"};
  app.add_option("--device", options.device, "As CUDA numbers them");
  app.add_option("--sums", options.sums, "In total, each by four methods; default 1e9");
  app.add_option("--seconds", options.seconds, "At most; default 60");
  app.add_option("--blas", options.blas, "cuBLAS, as for dlopen; default the toolkit's own name");
  app.add_option("--json", options.json_path, "File to write all figures to");
  CLI11_PARSE(app, argc, argv);
  auto gpu = BenchOptions();
  gpu.device = options.device;
  gpu.blas_libraries = options.blas;
  return WithCard(gpu, [&](Card& card) { return TestAll(card, options); });
}
