#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
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

struct VerifyOptions {
  std::uint32_t samples = 8;  // of each kind
  std::uint64_t seed = 1;
  std::uint64_t rows_max = 100'000;  // stored rows compared
};

// How a server's answers compare with the files.
struct Verification {
  struct Kind {
    std::string name;
    std::uint32_t asked = 0;  // 0: the collection has nothing to ask with
    std::uint32_t wrong = 0;
  };
  std::string served_snapshot_id;
  std::string snapshot_id;  // of the files
  StoredRows rows;
  std::vector<Kind> kinds;
  std::vector<std::string> findings;  // the first of them, stored rows' aside
  std::uint64_t different = 0;        // of all comparisons

  bool same() const { return different == 0; }
};

// Compares a served collection with its files: identity and shape, stored rows, and samples of
// every kind of query.
//   progress  called with 0..1
// Errors: the connection's, when the server cannot be asked. What a server answers wrongly, an
// error of a query included, is a finding.
absl::StatusOr<Verification> Verify(const Connection& connection, const v1::Collection& served,
                                    const data::Dataset& dataset, const VerifyOptions& options,
                                    const std::function<void(double)>& progress);

}  // namespace simile::cli
