#include "data/row_reader.h"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstring>

#include "data/vector_layout.h"

namespace simile::data {
namespace {

constexpr std::uint64_t kTileBytesMax = std::uint64_t{16} << 20;

}  // namespace

RowReader::RowReader(BufferedReader& in, const VectorLayout& layout)
    : in_(in), layout_(layout), begin_(in.position()), row_(layout.row_bytes()) {}

absl::Status RowReader::Next(std::span<double> values) {
  assert(values.size() == layout_.dim && next_row_ < layout_.row_count);
  if (!layout_.by_column) {
    ++next_row_;
    if (absl::Status status = in_.ReadExact(row_); !status.ok()) return status;
    DecodeElements(layout_.type, row_, values);
    return absl::OkStatus();
  }
  if (next_row_ == tile_begin_ + tile_rows_) {
    if (absl::Status status = ReadTile(); !status.ok()) return status;
  }
  const std::size_t number_bytes = ElementBytes(layout_.type);
  const char* number = tile_.data() + (next_row_++ - tile_begin_) * number_bytes;
  for (std::size_t at = 0; at < row_.size(); at += number_bytes) {
    std::memcpy(row_.data() + at, number, number_bytes);
    number += tile_rows_ * number_bytes;
  }
  DecodeElements(layout_.type, row_, values);
  return absl::OkStatus();
}

absl::Status RowReader::ReadTile() {
  const std::uint64_t number_bytes = ElementBytes(layout_.type);
  tile_begin_ = next_row_;
  tile_rows_ = std::min(std::max<std::uint64_t>(kTileBytesMax / layout_.row_bytes(), 1),
                        layout_.row_count - tile_begin_);
  const std::uint64_t column_bytes = tile_rows_ * number_bytes;
  tile_.resize(column_bytes * layout_.dim);
  for (std::uint64_t column = 0; column < layout_.dim; ++column) {
    const std::uint64_t from = begin_ + (column * layout_.row_count + tile_begin_) * number_bytes;
    absl::Status status =
        in_.ReadAt(from, std::span(tile_).subspan(column * column_bytes, column_bytes));
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace simile::data
