#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "kernels/row_scan.h"

namespace simile::backend::cuda {

// The properties of a card that kernels and plans depend on.
struct CardTraits {
  std::string name;  // "NVIDIA H200"
  unsigned multiprocessors = 0;
  std::size_t shared_bytes_max = 0;  // per block, with opt-in
  std::size_t l2_bytes = 0;
  std::uint64_t memory_bytes = 0;
  int capability = 0;  // 90 for sm_90
  // The capability of the code: 80 when code for sm_80 runs on a later card. Decides which kernels
  // exist.
  int code_capability = 0;
};

enum class PassStrategy : std::uint8_t {
  kRowScan,   // one launch reads the rows and keeps hits
  kInt8Scan,  // as kRowScan, over int8 rows
  kGemm,      // cuBLAS multiplies tile by tile, topk_fp16 keeps hits
};

// Whether one launch of our own reads the rows (kernels/row_scan.h).
constexpr bool IsScan(PassStrategy strategy) { return strategy != PassStrategy::kGemm; }

// One implementation of a pass over the fp16 or int8 rows.
struct KernelVariant {
  std::string_view name;    // "row_scan_ring", as tests and benches print it
  std::string_view engine;  // "fp16-scan", as receipts print it before the architecture
  PassStrategy strategy;
  int code_min;               // 80 for sm_80: the least architecture of the card's code
  unsigned queries_max;       // of a batch
  unsigned stride_max;        // padded dimensions
  bool needs_choice = false;  // only a PassChoice selects it, never the rules
  // The functions of scans, as kernels/row_scan.h declares them; null for kGemm, which uses cuBLAS.
  kernels::ScanForm form = kernels::ScanForm::kPlain;
  kernels::RowScanShape (*shape)(kernels::ScanForm form, unsigned stride, unsigned batch,
                                 std::size_t shared_bytes_max) = nullptr;
  cudaError_t (*prepare)(const kernels::RowScanShape& shape,
                         std::size_t shared_bytes_max) = nullptr;
  cudaError_t (*launch)(const kernels::RowScanShape& shape, unsigned blocks,
                        const kernels::Pass& pass, const kernels::RowScanArguments& arguments,
                        cudaStream_t stream) = nullptr;

  kernels::RowScanShape ShapeFor(unsigned stride, unsigned batch,
                                 std::size_t shared_bytes_max) const {
    return shape(form, stride, batch, shared_bytes_max);
  }
};

// All variants, preferred first. By the rules, a pass uses the first variant without needs_choice
// whose limits admit the card, the segment and the batch, and for which PlanPass finds a plan. To
// add one: its .cu file and a row here.
std::span<const KernelVariant> KernelVariants();

// The preferred fused scan over fp16 rows for code of this architecture. The next function: whether
// there is a scan over int8 rows.
const KernelVariant& FindScanVariant(int code_capability);
bool HasInt8Scan(int code_capability);

}  // namespace simile::backend::cuda
