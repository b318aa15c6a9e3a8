#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "cli/terminal.h"
#include "simile/v1/types.pb.h"

namespace simile::cli {

// This is the only file of the program that names the receipt's fields.

// The receipt in one line, without '\n': `exact · cpu · 94 us in the engine · 5,000 rows scanned ·
// snapshot 1 (3f9a12c4)`. Leaves out what is usual: the usual reason for the backend, a batch of
// one, a wait below 1 ms, zero re-scored rows.
//   usual_reason  why the collection has its backend; the line gives a reason only if it differs
//   rows_passing  rows that pass the filter, if the number is the same for all queries
std::string ReceiptLine(const v1::Receipt& receipt, const std::string& usual_reason,
                        std::optional<std::uint64_t> rows_passing = {});

// Every field under its name in simile.v1.Receipt, one per line, with its unit.
std::string ReceiptTable(const v1::Receipt& receipt, const Terminal& terminal);

// Every field under its name in simile.v1.Receipt.
nlohmann::ordered_json ReceiptJson(const v1::Receipt& receipt);

}  // namespace simile::cli
