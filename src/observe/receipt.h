#pragma once

#include <cstdint>
#include <string>

#include "simile/hits.h"

namespace simile::observe {

// What served an answer, why, and what it cost. Built by Executor, sent with every answer.
struct Receipt {
  std::string backend;  // "cpu", "gpu"
  std::string device;
  std::string engine;
  std::string reason;                   // why this backend
  std::uint64_t device_bytes = 0;       // on the GPU, whatever backend answered; 0 without one
  std::uint64_t device_bytes_peak = 0;  // each purpose's own peak, summed
  std::uint64_t snapshot_version = 0;
  std::uint32_t batch_size = 0;  // queries in the pass, other callers' included
  std::uint64_t queue_us = 0;    // arrival to start of the pass
  std::uint64_t compute_us = 0;  // the whole batch in the engine
  QueryCost cost;                // summed over this call's queries
};

}  // namespace simile::observe
