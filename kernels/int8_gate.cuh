#pragma once

#include "kernels/device.h"
#include "kernels/int8_rows.h"

// The error bound of the int8 scan for one query, and its gate. All numbers are in units and
// rounded to the safe side (docs/design/gpu-engine.md, "int8").
//
// With y = the rotated row, x' = scale * codes and E = |y - x'|, no row has a canonical score above
//
//   c + kappa E + margin      c = query scale * row scale * sum of products of codes
//
// unless it is below the threshold t that kappa was formed for. Let p be the exact product of the
// query and x'. y - x' is perpendicular to x', so the part of the query along y - x' is at most
// across = sqrt(|q|^2 - (p / |x'|)^2). So the score is at most p + across E + margin. A row that
// reaches t has p >= t - |q| E_max - margin. So p / |x'| is at least `along`, and across is at most
// kappa = sqrt(|q|^2 - along^2).

namespace simile::kernels {

// The least float that is certainly not below a number formed in double.
__device__ __forceinline__ float RoundedUp(double value) {
  return static_cast<float>(value * (1.0 + 0x1p-22));
}

//   residual  |rotated query - scale * codes|
__device__ __forceinline__ float Int8Margin(double residual, float length,
                                            const Int8Limits& limits) {
  return RoundedUp(residual * static_cast<double>(limits.decoded) +
                   static_cast<double>(length) * static_cast<double>(limits.per_length) +
                   static_cast<double>(limits.rest));
}

__device__ __forceinline__ float Int8Kappa(const Int8Query& query, const Int8Limits& limits,
                                           float threshold) {
  constexpr float kRounding = 0x1p-19F;  // of the steps to `along`, whose terms are below 2
  const float along =
      (threshold - query.length * limits.residual - query.margin) / limits.decoded - kRounding;
  if (!(along > 0)) return query.length;
  if (along >= query.length) return 0;  // no row reaches the threshold
  return sqrtf((query.length - along) * (query.length + along)) * (1 + 0x1p-20F);
}

// The gate in the form that the scan uses: a row is a hit if
// sum * (scale * row scale) + (kappa * residual + start) is not negative.
struct Int8Gate {
  float scale;
  float kappa;
  float start;
  float threshold;
};

// The sum of a score's two planes. Each plane's sum is exact; together they may exceed 32 bits.
__device__ __forceinline__ float Int8Sum(int high, int low) {
  return __fmaf_rn(128.0F, __int2float_rn(high), __int2float_rn(low));
}

// How far the upper bound of a row's score is above the gate's threshold. The rounding is part of
// Int8Limits::rest.
__device__ __forceinline__ float Int8Excess(float sum, const Int8Gate& gate, const Int8Row& row) {
  return __fmaf_rn(sum, gate.scale * row.scale, __fmaf_rn(gate.kappa, row.residual, gate.start));
}

// Rows at or above the threshold are hits.
__device__ __forceinline__ Int8Gate Int8GateAt(const Int8Query& query, const Int8Limits& limits,
                                               float threshold) {
  return {query.scale, Int8Kappa(query, limits, threshold), query.margin - threshold, threshold};
}

// The gate for the sample: scores are lowered by a share of their bound.
__device__ __forceinline__ Int8Gate Int8SampleGate(const Int8Query& query, float caution) {
  return {query.scale, -caution * query.length, -caution * query.margin, 0.0F};
}

}  // namespace simile::kernels
