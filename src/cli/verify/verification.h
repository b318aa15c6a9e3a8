#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <absl/status/statusor.h>

#include "cli/connection.h"
#include "data/load/dataset.h"
#include "simile/v1/lookup.pb.h"

namespace simile::cli {

// Compares a served row with the files, bit for bit. Returns a sentence that names the row, its id
// and the first difference; empty if there is none.
std::string CompareRow(const data::Dataset& dataset, Row row, const v1::Item& served);

struct StoredRows {
  std::uint64_t compared = 0;
  std::uint64_t different = 0;
  std::vector<std::string> findings;  // the first of them
};
// Fetches rows of a served collection, with payload and vector, and compares each with the files.
//   rows_max  the most rows to compare; if there are more, takes this many, evenly spread
//   findings_max  how many differences are described
// Errors: the connection's. A row that the server lacks is a finding, not an error.
absl::StatusOr<StoredRows> CompareStoredRows(const Connection& connection,
                                             const std::string& collection,
                                             const data::Dataset& dataset, std::uint64_t rows_max,
                                             std::size_t findings_max);

struct VerifyOptions {
  std::uint32_t samples = 8;  // of each kind
  std::uint64_t seed = 1;
  std::uint64_t rows_max = 100'000;  // stored rows compared
};

// The result of comparing a server with the files.
struct Verification {
  struct Kind {
    std::string name;
    std::uint32_t asked = 0;  // 0: the collection lacks the data for this kind
    std::uint32_t wrong = 0;
  };
  std::string served_snapshot_id;
  std::string snapshot_id;  // of the files
  StoredRows rows;
  std::vector<Kind> kinds;
  std::vector<std::string> findings;  // the first findings, without those of stored rows
  std::uint64_t different = 0;        // over all comparisons

  bool same() const { return different == 0; }
};

// Compares a served collection with its files: identity and shape, stored rows, and samples of
// every kind of query.
//   progress  called with 0..1
// Errors: the connection's, if the server cannot be asked. A wrong answer is a finding, and so is
// an error of a query.
absl::StatusOr<Verification> Verify(const Connection& connection, const v1::Collection& served,
                                    const data::Dataset& dataset, const VerifyOptions& options,
                                    const std::function<void(double)>& progress);

}  // namespace simile::cli
