#include "kernels/row_scan.h"

#include "kernels/scan_frame.cuh"

namespace simile::kernels {
namespace {

__device__ __forceinline__ uint2 PackFp16x4(const float* from, float scale) {
  const float4 values = *reinterpret_cast<const float4*>(from);
  const __half2 low = __floats2half2_rn(values.x * scale, values.y * scale);
  const __half2 high = __floats2half2_rn(values.z * scale, values.w * scale);
  return make_uint2(Bits<unsigned>(low), Bits<unsigned>(high));
}

// Queries as fp16 in the order in which lanes load them: [16 columns][16 queries][lane] 16 bytes,
// an A fragment. A lane takes 8 neighbouring columns, although the MMA defines pairs 8 apart. The
// columns of rows and queries are permuted in the same way, so every product stays the same.
template <unsigned kSixteens>
__device__ __forceinline__ void StageFp16Queries(const Pass& pass, unsigned char* to) {
  const unsigned chunks = (pass.stride + kChunk - 1) / kChunk;
  for (unsigned i = threadIdx.x; i < chunks * (kChunk / 16) * kSixteens * 32; i += blockDim.x) {
    const unsigned fragment = i / 32, group = i % 32 / 4, quad = i % 4;
    const unsigned sixteen = fragment / kSixteens;
    const unsigned query = fragment % kSixteens * 16 + group;
    const unsigned column = sixteen / 2 * 32 + quad * 8 + sixteen % 2 * 4;
    uint2 upper = make_uint2(0, 0), lower = make_uint2(0, 0);
    if (column < pass.stride) {
      const float* from = pass.queries + static_cast<std::size_t>(query) * pass.stride + column;
      if (query < pass.batch) upper = PackFp16x4(from, pass.terms[query].unit_of_query);
      if (query + 8 < pass.batch) {
        lower = PackFp16x4(from + static_cast<std::size_t>(8) * pass.stride,
                           pass.terms[query + 8].unit_of_query);
      }
    }
    reinterpret_cast<uint4*>(to)[i] = make_uint4(upper.x, lower.x, upper.y, lower.y);
  }
}

// The class of scan_frame.cuh: fp16 rows. A gate is a threshold; sums start at minus the threshold.
template <unsigned kSixteensOfScan>
struct Fp16Scan {
  using Gate = float;
  static constexpr unsigned kSixteens = kSixteensOfScan;
  static constexpr unsigned kEights = 2;  // queries g and g + 8 of the products' rows
  static constexpr unsigned kSlots = kSixteens * 8 * kEights;

  __device__ static ScannedRows Scanned(const RowScanArguments& arguments, const Pass& pass) {
    return {arguments.fp16_rows, pass.row_count, pass.stride};
  }
  __device__ static void StageQueries(const Pass& pass, const RowScanArguments& /*arguments*/,
                                      unsigned char* to) {
    StageFp16Queries<kSixteens>(pass, to);
  }
  __device__ static float SampleGate(const Pass& /*pass*/, const RowScanArguments& /*arguments*/,
                                     unsigned /*slot*/) {
    return 0;
  }
  __device__ static float HitMargin(const RowScanArguments& arguments, float /*gate*/,
                                    unsigned /*slot*/) {
    return arguments.margin;
  }
  __device__ static float GateAt(const RowScanArguments& /*arguments*/, unsigned /*slot*/,
                                 float threshold) {
    return threshold;
  }
  __device__ static float ThresholdOf(float gate) { return gate; }

  struct Tile {
    __device__ __forceinline__ void Start(const Pass& /*pass*/,
                                          const RowScanArguments& /*arguments*/,
                                          GatesOf<Fp16Scan>& gates, unsigned /*tile*/,
                                          unsigned lane) {
      float upper[kSixteens], lower[kSixteens];
#pragma unroll
      for (unsigned m = 0; m < kSixteens; ++m) {
        upper[m] = -gates[QueryInTile<Fp16Scan>(m, 0, lane)];
        lower[m] = -gates[QueryInTile<Fp16Scan>(m, 1, lane)];
      }
      sums.Start(upper, lower);
    }
    __device__ __forceinline__ void Finish(GatesOf<Fp16Scan>& /*gates*/, unsigned /*lane*/) {}
    // For sums that started at the sample's gate, 0.
    __device__ __forceinline__ void FinishKept(GatesOf<Fp16Scan>& gates, unsigned lane) {
#pragma unroll
      for (unsigned m = 0; m < kSixteens; ++m) {
#pragma unroll
        for (unsigned h = 0; h < 2; ++h) {
          const float gate = gates[QueryInTile<Fp16Scan>(m, h, lane)];
#pragma unroll
          for (unsigned i = 0; i < 8; ++i) sums.sum[m][i / 2][h * 2 + i % 2] -= gate;
        }
      }
    }
    __device__ __forceinline__ float Above(unsigned m, unsigned h, unsigned n, unsigned c) const {
      return sums.sum[m][n][h * 2 + c];
    }

    TileScores<float, kSixteens> sums;
  };
};

}  // namespace

// A ring needs a card with background copies; its kernel must not run on other cards.
template <unsigned kSixteens, class Rows>
__global__ void __launch_bounds__(kThreadsMax, 1)
    RowScanKernel(const SIMILE_GRID_CONSTANT Pass pass,
                  const SIMILE_GRID_CONSTANT RowScanArguments arguments) {
  if constexpr (Rows::kBytes != 0 && !kHasAsyncCopy) {
    Trap();
  } else {
    __shared__ StagedHits staged;
    __shared__ GatesOf<Fp16Scan<kSixteens>> gates;
    RunScan<Fp16Scan<kSixteens>, Rows>(pass, arguments, staged, gates);
  }
}

template <unsigned kSixteens, class Rows>
__global__ void __launch_bounds__(kThreadsMax, 1)
    KeptRowScanKernel(const SIMILE_GRID_CONSTANT Pass pass,
                      const SIMILE_GRID_CONSTANT RowScanArguments arguments) {
  if constexpr (!kHasAsyncCopy) {
    Trap();
  } else {
    __shared__ StagedHits staged;
    __shared__ GatesOf<Fp16Scan<kSixteens>> gates;
    __shared__ BestOfWarps<Fp16Scan<kSixteens>> of_warps;
    RunKeptScan<Fp16Scan<kSixteens>, Rows>(pass, arguments, staged, gates, of_warps);
  }
}

namespace {

using Kernel = void (*)(Pass, RowScanArguments);

template <unsigned kSixteens>
Kernel PlainKernel(unsigned stages) {
  switch (stages) {
    case 1:
      return RowScanKernel<kSixteens, RowRegisters>;
    case 3:
      return RowScanKernel<kSixteens, RowRing<3>>;
    case 4:
      return RowScanKernel<kSixteens, RowRing<4>>;
    default:
      return RowScanKernel<kSixteens, RowRing<6>>;
  }
}

Kernel KernelFor(const RowScanShape& shape) {
  if (shape.form == ScanForm::kKept) {
    return shape.queries == 16 ? KeptRowScanKernel<1, RowRing<4>>
                               : KeptRowScanKernel<2, RowRing<4>>;
  }
  switch (shape.queries) {
    case 16:
      return PlainKernel<1>(shape.stages);
    case 32:
      return PlainKernel<2>(shape.stages);
    default:
      return PlainKernel<4>(shape.stages);
  }
}

// An upper bound of the shared memory that is not dynamic.
constexpr std::size_t kFixedBytes =
    sizeof(StagedHits) + sizeof(GatesOf<Fp16Scan<4>>) + sizeof(BestOfWarps<Fp16Scan<2>>) + 128;

unsigned SlotsFor(unsigned batch) { return batch <= 16 ? 16 : (batch <= 32 ? 32 : 64); }

}  // namespace

RowScanShape ShapeRingScan(ScanForm form, unsigned stride, unsigned batch,
                           std::size_t shared_bytes_max) {
  const unsigned slots = SlotsFor(batch);
  return RingShape(form, slots, FragmentBytes(slots, stride), shared_bytes_max - kFixedBytes);
}

RowScanShape ShapeRegisterScan(ScanForm /*form*/, unsigned stride, unsigned batch,
                               std::size_t shared_bytes_max) {
  const unsigned slots = SlotsFor(batch);
  const std::size_t bytes = FragmentBytes(slots, stride);
  if (bytes + kFixedBytes > shared_bytes_max) return {};
  return {slots, 1, 8, bytes};
}

cudaError_t ArchitectureOfRowScan(int& architecture) {
  cudaFuncAttributes attributes{};
  const cudaError_t error = cudaFuncGetAttributes(&attributes, PlainKernel<1>(1));
  if (error == cudaSuccess) architecture = attributes.ptxVersion;
  return error;
}

cudaError_t PrepareRowScan(const RowScanShape& shape, std::size_t shared_bytes_max) {
  return cudaFuncSetAttribute(KernelFor(shape), cudaFuncAttributeMaxDynamicSharedMemorySize,
                              static_cast<int>(shared_bytes_max - kFixedBytes));
}

cudaError_t LaunchRowScan(const RowScanShape& shape, unsigned blocks, const Pass& pass,
                          const RowScanArguments& arguments, cudaStream_t stream) {
  return LaunchScan(KernelFor(shape), shape, blocks, pass, arguments, stream);
}

}  // namespace simile::kernels
