#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "cli/terminal.h"
#include "simile/v1/types.pb.h"

namespace simile::cli {

// The only file of the program that names the receipt's fields.

// The receipt in one line, without '\n':
// `exact · cpu · 94 us in the engine · 5,000 rows scanned · snapshot 1 (3f9a12c4)`. Leaves out the
// usual: the reason for the backend, a batch of one, a wait below 1 ms, no re-scored rows.
//   usual_reason  why the collection has its backend; another reason is printed
//   rows_passing  rows that pass the filter, when all queries have the same number
std::string ReceiptLine(const v1::Receipt& receipt, const std::string& usual_reason,
                        std::optional<std::uint64_t> rows_passing = {});

// Every field under its name in simile.v1.Receipt, one per line, with its unit.
std::string ReceiptTable(const v1::Receipt& receipt, const Terminal& terminal);

// Every field under its name in simile.v1.Receipt.
nlohmann::ordered_json ReceiptJson(const v1::Receipt& receipt);

}  // namespace simile::cli
