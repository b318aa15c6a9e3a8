#include "kernels/row_scan.h"

#include "kernels/convert.h"
#include "kernels/int8_gate.cuh"
#include "kernels/scan_frame.cuh"

namespace simile::kernels {
namespace {

// The planes in the order in which lanes load them: [32 columns][8 queries][lane] 16 bytes, an A
// fragment. Columns are permuted as in row_scan: a lane takes 8 neighbouring columns.
template <unsigned kSixteens>
__device__ __forceinline__ void StagePlanes(const Pass& pass, const Int8Rows& int8,
                                            unsigned char* to) {
  const unsigned fragments =
      static_cast<unsigned>(FragmentBytes(kSixteens * 16, int8.stride / 2)) / 16;
  for (unsigned i = threadIdx.x; i < fragments; i += blockDim.x) {
    const unsigned fragment = i / 32, group = i % 32 / 4, quad = i % 4;
    const unsigned step = fragment / kSixteens;
    const unsigned query = fragment % kSixteens * 8 + group;
    const unsigned column = step / 2 * 64 + quad * 16 + step % 2 * 8;
    uint2 high = make_uint2(0, 0), low = make_uint2(0, 0);
    if (column < int8.stride && query < pass.batch) {
      const signed char* from =
          int8.planes + static_cast<std::size_t>(query) * 2 * int8.stride + column;
      high = *reinterpret_cast<const uint2*>(from);
      low = *reinterpret_cast<const uint2*>(from + int8.stride);
    }
    reinterpret_cast<uint4*>(to)[i] = make_uint4(high.x, low.x, high.y, low.y);
  }
}

// The class of scan_frame.cuh: int8 rows. A score is an upper bound of the canonical score.
template <unsigned kSixteensOfScan>
struct Int8Scan {
  using Gate = Int8Gate;
  static constexpr unsigned kSixteens = kSixteensOfScan;
  static constexpr unsigned kEights = 1;  // the planes of query g are in the products' g and g + 8
  static constexpr unsigned kSlots = kSixteens * 8 * kEights;

  __device__ static ScannedRows Scanned(const RowScanArguments& arguments, const Pass& pass) {
    return {reinterpret_cast<const __half*>(arguments.int8.codes), pass.row_count,
            arguments.int8.stride / 2};
  }
  __device__ static void StageQueries(const Pass& pass, const RowScanArguments& arguments,
                                      unsigned char* to) {
    StagePlanes<kSixteens>(pass, arguments.int8, to);
  }
  __device__ static Gate SampleGate(const Pass& pass, const RowScanArguments& arguments,
                                    unsigned slot) {
    if (!HasQuery(pass, slot)) return ClosedGate();
    return Int8SampleGate(arguments.int8.queries[slot], arguments.int8.caution);
  }
  // Hits' scores are upper bounds, but thresholds come from scores lowered like the sample's.
  // Returns the distance between the two for the greatest residual; the distance grows with the
  // residual.
  __device__ static float HitMargin(const RowScanArguments& arguments, const Gate& gate,
                                    unsigned slot) {
    const Int8Query& query = arguments.int8.queries[slot];
    const float caution = arguments.int8.caution;
    return (gate.kappa + caution * query.length) * arguments.int8.limits.residual +
           (1 + caution) * query.margin;
  }
  __device__ static Gate GateAt(const RowScanArguments& arguments, unsigned slot, float threshold) {
    if (threshold == kNoQuery) return ClosedGate();
    return Int8GateAt(arguments.int8.queries[slot], arguments.int8.limits, threshold);
  }
  __device__ static float ThresholdOf(const Gate& gate) { return gate.threshold; }

  // The sums of a tile with the scale and residual of one of its rows in each lane.
  struct Tile {
    __device__ __forceinline__ void Start(const Pass& pass, const RowScanArguments& arguments,
                                          GatesOf<Int8Scan>& /*gates*/, unsigned tile,
                                          unsigned lane) {
      const int zeros[kSixteens] = {};
      sums.Start(zeros, zeros);
      const unsigned position = tile * kScanTileRows + lane;
      const uint2 loaded =
          position < pass.row_count
              ? LoadFromL2(reinterpret_cast<const uint2*>(arguments.int8.rows + position))
              : make_uint2(0, 0);
      row = Bits<Int8Row>(loaded);
    }

    // Replaces the sums of the high planes by the distance of the rows' upper bounds above the
    // gate, as bits. Whole warp.
    __device__ __forceinline__ void Finish(GatesOf<Int8Scan>& gates, unsigned lane) {
      Int8Row rows[8];
#pragma unroll
      for (unsigned i = 0; i < 8; ++i) {
        const int from = static_cast<int>(RowInTile(i / 2, i % 2, lane));
        rows[i] = {__shfl_sync(~0U, row.scale, from), __shfl_sync(~0U, row.residual, from)};
      }
#pragma unroll
      for (unsigned m = 0; m < kSixteens; ++m) {
        const Int8Gate gate = gates[QueryInTile<Int8Scan>(m, 0, lane)];
#pragma unroll
        for (unsigned i = 0; i < 8; ++i) {
          int(&sum)[4] = sums.sum[m][i / 2];
          const float above = Int8Excess(Int8Sum(sum[i % 2], sum[2 + i % 2]), gate, rows[i]);
          sum[i % 2] = __float_as_int(above);
        }
      }
    }
    __device__ __forceinline__ void FinishKept(GatesOf<Int8Scan>& gates, unsigned lane) {
      Finish(gates, lane);
    }
    __device__ __forceinline__ float Above(unsigned m, unsigned /*h*/, unsigned n,
                                           unsigned c) const {
      return __int_as_float(sums.sum[m][n][c]);
    }

    TileScores<int, kSixteens> sums;
    Int8Row row;
  };

 private:
  // The gate of a slot without a query: no row is a hit.
  __device__ static Gate ClosedGate() { return {0, 0, -kNoQuery, kNoQuery}; }
};

}  // namespace

template <unsigned kSixteens, unsigned kStages>
__global__ void __launch_bounds__(kThreadsMax, 1)
    Int8ScanKernel(const SIMILE_GRID_CONSTANT Pass pass,
                   const SIMILE_GRID_CONSTANT RowScanArguments arguments) {
  if constexpr (!kHasAsyncCopy) {
    Trap();
  } else {
    __shared__ StagedHits staged;
    __shared__ GatesOf<Int8Scan<kSixteens>> gates;
    RunScan<Int8Scan<kSixteens>, RowRing<kStages>>(pass, arguments, staged, gates);
  }
}

template <unsigned kSixteens, unsigned kStages>
__global__ void __launch_bounds__(kThreadsMax, 1)
    KeptInt8ScanKernel(const SIMILE_GRID_CONSTANT Pass pass,
                       const SIMILE_GRID_CONSTANT RowScanArguments arguments) {
  if constexpr (!kHasAsyncCopy) {
    Trap();
  } else {
    __shared__ StagedHits staged;
    __shared__ GatesOf<Int8Scan<kSixteens>> gates;
    __shared__ BestOfWarps<Int8Scan<kSixteens>> of_warps;
    RunKeptScan<Int8Scan<kSixteens>, RowRing<kStages>>(pass, arguments, staged, gates, of_warps);
  }
}

namespace {

using Kernel = void (*)(Pass, RowScanArguments);

template <unsigned kSixteens>
Kernel PlainKernel(unsigned stages) {
  switch (stages) {
    case 3:
      return Int8ScanKernel<kSixteens, 3>;
    case 4:
      return Int8ScanKernel<kSixteens, 4>;
    default:
      return Int8ScanKernel<kSixteens, 6>;
  }
}

Kernel KernelFor(const RowScanShape& shape) {
  if (shape.form == ScanForm::kKept) {
    switch (shape.queries) {
      case 8:
        return KeptInt8ScanKernel<1, 4>;
      case 16:
        return KeptInt8ScanKernel<2, 4>;
      default:
        return KeptInt8ScanKernel<4, 4>;
    }
  }
  switch (shape.queries) {
    case 8:
      return PlainKernel<1>(shape.stages);
    case 16:
      return PlainKernel<2>(shape.stages);
    case 32:
      return PlainKernel<4>(shape.stages);
    default:
      return PlainKernel<8>(shape.stages);
  }
}

// An upper bound of the shared memory that is not dynamic.
constexpr std::size_t kFixedBytes =
    sizeof(StagedHits) + sizeof(GatesOf<Int8Scan<8>>) + sizeof(BestOfWarps<Int8Scan<4>>) + 128;

unsigned SlotsFor(unsigned batch) {
  return batch <= 8 ? 8 : (batch <= 16 ? 16 : (batch <= 32 ? 32 : 64));
}

}  // namespace

RowScanShape ShapeInt8Scan(ScanForm form, unsigned stride, unsigned batch,
                           std::size_t shared_bytes_max) {
  const unsigned slots = SlotsFor(batch);
  return RingShape(form, slots, FragmentBytes(slots * 2, (stride + 63) / 64 * 32),
                   shared_bytes_max - kFixedBytes);
}

cudaError_t PrepareInt8Scan(const RowScanShape& shape, std::size_t shared_bytes_max) {
  return cudaFuncSetAttribute(KernelFor(shape), cudaFuncAttributeMaxDynamicSharedMemorySize,
                              static_cast<int>(shared_bytes_max - kFixedBytes));
}

cudaError_t LaunchInt8Scan(const RowScanShape& shape, unsigned blocks, const Pass& pass,
                           const RowScanArguments& arguments, cudaStream_t stream) {
  if (const cudaError_t error = LaunchConvertQueriesToInt8(pass, arguments.int8, stream);
      error != cudaSuccess) {
    return error;
  }
  return LaunchScan(KernelFor(shape), shape, blocks, pass, arguments, stream);
}

}  // namespace simile::kernels
