#include "backend/cuda/kernel_variants.h"

#include <algorithm>
#include <array>
#include <limits>

#include "backend/accelerator_kinds.h"
#include "kernels/row_scan.h"
#include "simile/limits.h"

namespace simile::backend::cuda {
namespace {

constexpr int kAnyCode = 0;  // any code that the build has (SIMILE_CUDA_ARCHITECTURES)
constexpr unsigned kAnyBatch = std::numeric_limits<unsigned>::max();
constexpr unsigned kStrideMax = Limits{}.dim_max;
constexpr unsigned kScanBatch = kernels::kScanQueriesMax;
// On an H200 the scans that keep scores were the fastest up to these batches, for some segments.
constexpr unsigned kKeptInt8Batch = 8;
constexpr unsigned kKeptRowBatch = 32;
constexpr unsigned kInt8StrideMax = kernels::kInt8StrideMax;
using kernels::ScanForm;

constexpr KernelVariant kInt8Scan{.name = "int8_scan",
                                  .engine = "int8-scan",
                                  .strategy = PassStrategy::kInt8Scan,
                                  .code_min = kInt8ScanMin,
                                  .queries_max = kScanBatch,
                                  .stride_max = kInt8StrideMax,
                                  .shape = &kernels::ShapeInt8Scan,
                                  .prepare = &kernels::PrepareInt8Scan,
                                  .launch = &kernels::LaunchInt8Scan};
constexpr KernelVariant kRowScan{.name = "row_scan_ring",
                                 .engine = "fp16-scan",
                                 .strategy = PassStrategy::kRowScan,
                                 .code_min = kRingScanMin,
                                 .queries_max = kScanBatch,
                                 .stride_max = kStrideMax,
                                 .shape = &kernels::ShapeRingScan,
                                 .prepare = &kernels::PrepareRowScan,
                                 .launch = &kernels::LaunchRowScan};
constexpr KernelVariant kGemm{.name = "gemm_topk_fp16",
                              .engine = "fp16-gemm",
                              .strategy = PassStrategy::kGemm,
                              .code_min = kAnyCode,
                              .queries_max = kAnyBatch,
                              .stride_max = kStrideMax};

// A scan that keeps scores.
constexpr KernelVariant Kept(std::string_view name, std::string_view engine, unsigned queries_max,
                             KernelVariant variant) {
  variant.name = name;
  variant.engine = engine;
  variant.needs_choice = true;
  variant.form = ScanForm::kKept;
  variant.queries_max = queries_max;
  return variant;
}
constexpr KernelVariant Registers() {
  KernelVariant variant = kRowScan;
  variant.name = "row_scan_registers";
  variant.engine = "fp16-scan-registers";
  variant.code_min = kAnyCode;
  variant.shape = &kernels::ShapeRegisterScan;
  return variant;
}

constexpr std::array kVariants{
    kInt8Scan,
    kRowScan,
    Registers(),
    kGemm,
    Kept("int8_scan_kept", "int8-scan-kept", kKeptInt8Batch, kInt8Scan),
    Kept("row_scan_kept", "fp16-scan-kept", kKeptRowBatch, kRowScan),
};

}  // namespace

std::span<const KernelVariant> KernelVariants() { return kVariants; }

const KernelVariant& FindScanVariant(int code_capability) {
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
