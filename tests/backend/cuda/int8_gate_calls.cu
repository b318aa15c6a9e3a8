#include "backend/cuda/int8_gate_calls.h"

#include "kernels/int8_gate.cuh"

namespace simile::tests {

Int8Bounded Int8BoundedAt(const kernels::Int8Query& query, const kernels::Int8Limits& limits,
                          float threshold, float sum, const kernels::Int8Row& row) {
  const kernels::Int8Gate gate = kernels::Int8GateAt(query, limits, threshold);
  return {kernels::Int8Excess(sum, gate, row), gate.kappa};
}

}  // namespace simile::tests
