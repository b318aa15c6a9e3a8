#pragma once

#include <cstddef>
#include <vector>

#include <nlohmann/json.hpp>

#include "bench/gpu/card.h"

namespace simile::bench::gpu {

// The highest rates of the card, measured in the same run: times are reported as shares of them.
struct GemmCeiling {
  unsigned batch = 0;
  double tflops = 0;  // the best of several tile sizes
};
struct Ceilings {
  double copy_gb_s = 0;  // device to device, bytes read plus bytes written
  double read_gb_s = 0;  // read only, from memory
  std::vector<GemmCeiling> gemm;
};

// Throws DeviceError. Allocates up to 1 GiB meanwhile. Without cuBLAS there are no products.
//   dim      the inner dimension of products, a multiple of 32
//   batches  queries of a product
Ceilings MeasureCeilings(Card& card, unsigned dim, const std::vector<unsigned>& batches);

nlohmann::json ToJson(const Ceilings& ceilings);

}  // namespace simile::bench::gpu
