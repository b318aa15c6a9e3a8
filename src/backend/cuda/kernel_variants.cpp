#include "backend/cuda/kernel_variants.h"

#include <algorithm>
#include <array>
#include <limits>

#include "simile/limits.h"

namespace simile::backend::cuda {
namespace {

constexpr int kAnyCard = 0;  // that the build has code for: SIMILE_CUDA_ARCHITECTURES
constexpr unsigned kAnyBatch = std::numeric_limits<unsigned>::max();
constexpr unsigned kStrideMax = Limits{}.dim_max;
constexpr unsigned kScanBatch = kernels::kScanQueriesMax;

constexpr std::array kVariants{
    KernelVariant{"row_scan_ring", PassStrategy::kRowScan, 80, kScanBatch, kStrideMax, kHitsMax,
                  &kernels::ShapeRingScan, &kernels::PrepareRowScan, &kernels::LaunchRowScan},
    KernelVariant{"row_scan_registers", PassStrategy::kRowScan, kAnyCard, kScanBatch, kStrideMax,
                  kHitsMax, &kernels::ShapeRegisterScan, &kernels::PrepareRowScan,
                  &kernels::LaunchRowScan},
    KernelVariant{"gemm_topk_fp16", PassStrategy::kGemm, kAnyCard, kAnyBatch, kStrideMax, kHitsMax,
                  nullptr, nullptr, nullptr},
};

}  // namespace

std::span<const KernelVariant> KernelVariants() { return kVariants; }

const KernelVariant& ScanVariantOf(int capability) {
  return *std::ranges::find_if(kVariants, [&](const KernelVariant& variant) {
    return variant.strategy == PassStrategy::kRowScan && variant.capability_min <= capability;
  });
}

}  // namespace simile::backend::cuda
