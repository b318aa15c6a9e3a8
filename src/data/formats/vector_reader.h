#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include "data/formats/buffered_reader.h"
#include "data/formats/equal_rows.h"
#include "data/formats/vector_layout.h"
#include "data/matrix.h"
#include "simile/query.h"

namespace simile::data {

// Reads the rows of a vector file in their order, also from a file that holds column after column.
// It reads such a file by tiles of rows, a part of each column at a time: it reads every number
// once, and its memory is that of a tile. Borrows the reader; one thread at a time.
class RowReader {
 public:
  //   in  at the first number, as ReadVectorLayout leaves it; stays there for a file by columns
  RowReader(BufferedReader& in, const VectorLayout& layout);

  // Widens the next row to double. REQUIRES: values.size() == layout.dim, and a row is left.
  // Errors: ByteSource's.
  absl::Status Next(std::span<double> values);

 private:
  absl::Status ReadTile();

  BufferedReader& in_;
  const VectorLayout layout_;
  const std::uint64_t begin_;  // of the numbers in the file
  std::uint64_t next_row_ = 0;
  std::uint64_t tile_begin_ = 0;  // first row of the tile
  std::uint64_t tile_rows_ = 0;
  std::vector<char> row_;   // the next row as stored
  std::vector<char> tile_;  // [dim, tile_rows_]
};

// What rows are checked for.
struct VectorRules {
  Metric metric = Metric::kCosine;
  OnZeroRow on_zero_row = OnZeroRow::kRefuse;  // for cosine
  std::string_view zero_row_advice = kZeroRowAdvice;
};

// What is known of a file's valid rows when all are read.
struct VectorFacts {
  // The Euclidean lengths as stored, without skipped rows.
  double shortest = 0;
  double longest = 0;
  std::vector<Row> skipped_rows;  // ascending; for OnZeroRow::kSkip
  EqualGroup equal;               // the most rows that share one vector, without rows of zeros
};

// Reads all rows through one small buffer. Checks that each row is finite and of a length within
// 2^-60..2^60, or zero where the rules take zero. For cosine scales rows to unit length, in double,
// rounded to fp32 once. For dot keeps rows as given, rounded to fp32. A skipped row is kept as
// zeros. A file of zeros alone is refused.
// REQUIRES: the reader is at the first row, as ReadVectorLayout leaves it.
// Errors: kInvalidArgument `FILE: row R holds NaN at column C; ... (N of M rows are affected)`: the
//         first invalid row, and how many have the same fault; kResourceExhausted without memory.
absl::StatusOr<Matrix> ReadMatrix(BufferedReader& in, const VectorLayout& layout,
                                  const VectorRules& rules, VectorFacts& facts);

// The same checks without keeping rows.
absl::Status CheckRows(BufferedReader& in, const VectorLayout& layout, const VectorRules& rules,
                       VectorFacts& facts);

}  // namespace simile::data
