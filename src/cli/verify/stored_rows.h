#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <absl/status/statusor.h>

#include "cli/connection.h"
#include "data/dataset.h"
#include "simile/v1/lookup.pb.h"

namespace simile::cli {

// What is wrong with one served row, compared bit for bit with the files: nothing, or a sentence
// that names the row, its id, and the first difference.
std::string CompareRow(const data::Dataset& dataset, Row row, const v1::Item& served);

struct StoredRows {
  std::uint64_t compared = 0;
  std::uint64_t different = 0;
  std::vector<std::string> findings;  // the first of them
};
// Fetches rows of a served collection, payload and vector, and compares each with the files.
//   rows_max  all rows when there are no more, else as many, evenly spread
//   findings_max  how many differences are described
// Errors: the connection's; a row that the server does not have is a finding and no error.
absl::StatusOr<StoredRows> CompareStoredRows(const Connection& connection,
                                             const std::string& collection,
                                             const data::Dataset& dataset, std::uint64_t rows_max,
                                             std::size_t findings_max);

}  // namespace simile::cli
