#pragma once

#include "kernels/int8_rows.h"

// The arithmetic of int8_gate.cuh as the emulated kernels' library has it: mutate.py changes that
// library, and tests call what it changes.

namespace simile::tests {

// How far the upper bound of a row's score lies above the threshold, and what the row's residual
// counts in it.
struct Int8Bounded {
  float excess;
  float kappa;
};
Int8Bounded Int8BoundedAt(const kernels::Int8Query& query, const kernels::Int8Limits& limits,
                          float threshold, float sum, const kernels::Int8Row& row);

}  // namespace simile::tests
