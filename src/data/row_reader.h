#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <absl/status/status.h>

#include "data/buffered_reader.h"
#include "data/vector_layout.h"

namespace simile::data {

// Reads the rows of a vector file in their order, also from a file that holds column after column.
// Such a file is read by tiles of rows, a part of each column at a time, so that the memory is that
// of a tile and every number is read once. Borrows the reader; one thread at a time.
class RowReader {
 public:
  //   in  at the first number, as ReadVectorLayout leaves it; stays there for
  //   VectorLayout::by_column
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

}  // namespace simile::data
