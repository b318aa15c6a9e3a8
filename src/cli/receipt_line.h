#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "simile/v1/types.pb.h"

namespace simile::cli {

// The receipt in one line, without '\n':
// `exact · cpu: no NVIDIA driver · 94 us in the engine · 5,000 rows scanned · snapshot 1`.
// What is unremarkable is left out: a batch of one, a short wait, no row scored again.
//   rows_passing  the filter, where there is one for all queries
std::string ReceiptLine(const v1::Receipt& receipt, std::optional<std::uint64_t> rows_passing = {});

}  // namespace simile::cli
