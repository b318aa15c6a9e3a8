#include "backend/cuda/kernel_variants.h"

#include <algorithm>
#include <array>
#include <limits>

#include "backend/gpu_capabilities.h"
#include "kernels/int8_scan.h"
#include "simile/limits.h"

namespace simile::backend::cuda {
namespace {

constexpr int kAnyCode = 0;  // that the build has: SIMILE_CUDA_ARCHITECTURES
constexpr unsigned kAnyBatch = std::numeric_limits<unsigned>::max();
constexpr unsigned kStrideMax = Limits{}.dim_max;
constexpr unsigned kScanBatch = kernels::kScanQueriesMax;
constexpr unsigned kKeptBatch = 32;
constexpr unsigned kInt8StrideMax = kernels::kInt8StrideMax;
using kernels::ScanForm;

constexpr KernelVariant kInt8Scan{.name = "int8_scan",
                                  .strategy = PassStrategy::kInt8Scan,
                                  .code_min = kInt8ScanMin,
                                  .queries_max = kScanBatch,
                                  .stride_max = kInt8StrideMax,
                                  .shape = &kernels::ShapeInt8Scan,
                                  .prepare = &kernels::PrepareInt8Scan,
                                  .launch = &kernels::LaunchInt8Scan};
constexpr KernelVariant kRowScan{.name = "row_scan_ring",
                                 .strategy = PassStrategy::kRowScan,
                                 .code_min = kRingScanMin,
                                 .queries_max = kScanBatch,
                                 .stride_max = kStrideMax,
                                 .shape = &kernels::ShapeRingScan,
                                 .prepare = &kernels::PrepareRowScan,
                                 .launch = &kernels::LaunchRowScan};
constexpr KernelVariant kGemm{.name = "gemm_topk_fp16",
                              .strategy = PassStrategy::kGemm,
                              .code_min = kAnyCode,
                              .queries_max = kAnyBatch,
                              .stride_max = kStrideMax};

// A scan that keeps scores, which only benches run.
constexpr KernelVariant Kept(std::string_view name, KernelVariant variant) {
  variant.name = name;
  variant.use = VariantUse::kMeasured;
  variant.form = ScanForm::kKept;
  variant.queries_max = kKeptBatch;
  return variant;
}
constexpr KernelVariant Registers() {
  KernelVariant variant = kRowScan;
  variant.name = "row_scan_registers";
  variant.code_min = kAnyCode;
  variant.shape = &kernels::ShapeRegisterScan;
  return variant;
}

constexpr std::array kVariants{
    kInt8Scan,
    kRowScan,
    Registers(),
    kGemm,
    Kept("int8_scan_kept", kInt8Scan),
    Kept("row_scan_kept", kRowScan),
};

}  // namespace

std::span<const KernelVariant> KernelVariants() { return kVariants; }

const KernelVariant& ScanVariantOf(int code_capability) {
  return *std::ranges::find_if(kVariants, [&](const KernelVariant& variant) {
    return variant.strategy == PassStrategy::kRowScan && variant.code_min <= code_capability;
  });
}

bool HasInt8Scan(int code_capability) {
  return std::ranges::any_of(kVariants, [&](const KernelVariant& variant) {
    return variant.strategy == PassStrategy::kInt8Scan && variant.code_min <= code_capability;
  });
}

}  // namespace simile::backend::cuda
