#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include <absl/container/inlined_vector.h>

#include "simile/hits.h"
#include "simile/served_by.h"

namespace simile::observe {

// What served an answer, why, and what it cost. Built by Executor for every answer. Copies no text,
// because an answer may be sent without its receipt.
struct Receipt {
  using Names = absl::InlinedVector<std::string_view, 2>;  // most answers come from one engine

  std::shared_ptr<const ServedBy> served_by;  // never null
  Names engines;                              // at least one; the names live as long as the backend
  std::uint64_t device_bytes = 0;       // on the GPU, whatever backend answered; 0 without one
  std::uint64_t device_bytes_peak = 0;  // each purpose's own peak, summed
  std::uint32_t batch_size = 0;         // queries in its largest pass, other callers' included
  std::uint64_t queue_us = 0;           // arrival to the start of its first pass
  std::uint64_t compute_us = 0;  // all its passes in the engine, other callers' queries included
  // The part of compute_us in which the device worked, by its own clock. Nothing unless the call
  // asked for it and a device answered a part.
  std::optional<std::uint64_t> device_us;
  QueryCost cost;  // summed over this call's queries
};

}  // namespace simile::observe
