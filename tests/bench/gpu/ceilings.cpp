#include "bench/gpu/ceilings.h"

#include <algorithm>
#include <cstdint>

#include "bench/gpu/device_memory_kernels.h"
#include "bench/gpu/event_timer.h"

namespace simile::bench::gpu {
namespace {

using backend::cuda::DeviceArray;
using backend::cuda::MemoryKind;

constexpr std::size_t kBytesMax = std::size_t{1} << 30;

double GbPerSecond(std::size_t bytes, const Spread& time) {
  return static_cast<double>(bytes) / time.median_us / 1e3;
}

// REQUIRES: several times the L2's bytes to measure memory, else runs find part of them in the L2.
double ReadRate(Card& card, const std::byte* from, std::size_t bytes, unsigned* sum) {
  double best = 0;
  for (const unsigned blocks_of_sm : {1U, 2U, 4U}) {
    const unsigned blocks = blocks_of_sm * card.device.traits().multiprocessors;
    const cudaStream_t stream = card.workspace.stream(0);
    const TimedWork read(card.device, stream, [&] {
      card.device.Check(LaunchRead(from, bytes, blocks, sum, stream), "read");
    });
    best = std::max(best, GbPerSecond(bytes, read.Time()));
  }
  return best;
}

// fp16 in, fp32 sums, fp16 out, rows contiguous: the engine's product.
double GemmRate(Card& card, std::byte* memory, std::size_t bytes, unsigned dim, unsigned batch) {
  const float one = 1, zero = 0;
  double best = 0;
  for (const unsigned rows : {8'448U, 33'792U, 67'584U}) {
    auto* fp16_rows = reinterpret_cast<__half*>(memory);
    __half* queries = fp16_rows + std::size_t{rows} * dim;
    __half* scores = queries + std::size_t{batch} * dim;
    const std::size_t values =
        std::size_t{rows} * dim + std::size_t{batch} * dim + std::size_t{rows} * batch;
    if (values * sizeof(__half) > bytes) continue;
    const TimedWork product(card.device, card.workspace.stream(0), [&] {
      card.device.Check(
          card.device.blas().gemm(
              card.workspace.blas(0), CUBLAS_OP_T, CUBLAS_OP_N, static_cast<int>(rows),
              static_cast<int>(batch), static_cast<int>(dim), &one, fp16_rows, CUDA_R_16F,
              static_cast<int>(dim), queries, CUDA_R_16F, static_cast<int>(dim), &zero, scores,
              CUDA_R_16F, static_cast<int>(rows), CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
          "cublasGemmEx");
    });
    const double flops = 2.0 * rows * batch * dim;
    best = std::max(best, flops / product.Time().median_us / 1e6);
  }
  return best;
}

}  // namespace

Ceilings MeasureCeilings(Card& card, unsigned dim, const std::vector<unsigned>& batches) {
  const cudaStream_t stream = card.workspace.stream(0);
  // A share of a small card's memory: the rest of it is in use.
  const std::size_t bytes =
      std::min<std::size_t>(kBytesMax, card.device.free_bytes() / 4 / 1'024 * 1'024);
  const DeviceArray<std::byte> memory(card.device, bytes, MemoryKind::kWorkspace);
  const DeviceArray<unsigned> sum(card.device, 1, MemoryKind::kWorkspace);
  card.device.Check(LaunchRandomFp16(memory.get(), bytes / sizeof(__half), 1, stream),
                    "random_fp16");
  card.device.AwaitOrLose(stream);
  Ceilings ceilings;
  // Products first: they want the random numbers, which the copy doubles.
  for (const unsigned batch : batches) {
    if (!card.device.blas().loaded()) break;
    ceilings.gemm.push_back({batch, GemmRate(card, memory.get(), bytes, dim, batch)});
  }
  const TimedWork copy(card.device, stream, [&] {
    card.device.Check(cudaMemcpyAsync(memory.get() + bytes / 2, memory.get(), bytes / 2,
                                      cudaMemcpyDeviceToDevice, stream),
                      "cudaMemcpyAsync");
  });
  ceilings.copy_gb_s = GbPerSecond(bytes, copy.Time());
  ceilings.read_gb_s = ReadRate(card, memory.get(), bytes, sum.get());
  return ceilings;
}

nlohmann::json ToJson(const Ceilings& ceilings) {
  nlohmann::json json{{"copy_gb_s", ceilings.copy_gb_s},
                      {"read_gb_s", ceilings.read_gb_s},
                      {"gemm", nlohmann::json::array()}};
  for (const GemmCeiling& gemm : ceilings.gemm) {
    json["gemm"].push_back({{"batch", gemm.batch}, {"tflops", gemm.tflops}});
  }
  return json;
}

}  // namespace simile::bench::gpu
