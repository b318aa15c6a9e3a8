#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/row_scan.h"

namespace simile::backend::cuda {

enum class PassStrategy : std::uint8_t {
  kRowScan,  // one fused launch reads the rows, keeps hits and finishes ("fp16-scan-")
  kGemm,     // cuBLAS multiplies tile by tile, topk_fp16 keeps hits ("fp16-gemm-")
};

// One implementation of a pass over the fp16 rows.
struct KernelVariant {
  std::string_view name;  // "row_scan_ring", as tests and benches print it
  PassStrategy strategy;
  int capability_min;    // 80 for sm_80
  unsigned queries_max;  // of a batch
  unsigned stride_max;   // padded dimensions
  unsigned hits_max;     // k
  // Of kRowScan, as kernels/row_scan.h declares them; null for kGemm, whose products are cuBLAS's.
  kernels::RowScanShape (*shape)(unsigned stride, unsigned batch, std::size_t shared_bytes_max);
  cudaError_t (*prepare)(const kernels::RowScanShape& shape, std::size_t shared_bytes_max);
  cudaError_t (*launch)(const kernels::RowScanShape& shape, unsigned blocks,
                        const kernels::Pass& pass, const kernels::RowScanArguments& arguments,
                        cudaStream_t stream);
};

// All variants, preferred first: a pass uses the first one whose limits admit the card, the segment
// and the batch, and for which PlanPass finds a plan. To add one: its .cu file and a row here.
std::span<const KernelVariant> KernelVariants();

// The preferred fused scan of a card.
const KernelVariant& ScanVariantOf(int capability);

}  // namespace simile::backend::cuda
