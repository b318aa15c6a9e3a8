#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include <nlohmann/json.hpp>

#include "bench/gpu/card.h"

namespace simile::bench::gpu {

// The highest rates of the card, measured in the same run: times are reported as shares of them.
struct GemmCeiling {
  unsigned dim = 0;
  unsigned batch = 0;
  double tflops = 0;  // the best of several tile sizes
};
struct Ceilings {
  double copy_gb_s = 0;     // device to device, bytes read plus bytes written
  double read_gb_s = 0;     // read only, from memory
  double read_l2_gb_s = 0;  // read only, a third of the L2 repeatedly
  std::vector<GemmCeiling> gemm;
};

// Throws DeviceError. Allocates up to 1 GiB meanwhile. Without cuBLAS there are no products.
//   dims     inner dimensions of products, multiples of 32
//   batches  queries of a product
//   measured  called after each rate, with all so far
Ceilings MeasureCeilings(Card& card, const std::vector<unsigned>& dims,
                         const std::vector<unsigned>& batches,
                         const std::function<void(const Ceilings&)>& measured);

// Without the rates that are not measured yet.
nlohmann::json ToJson(const Ceilings& ceilings);

}  // namespace simile::bench::gpu
