#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "simile/matrix_view.h"
#include "simile/payload.h"

namespace simile::data {

// A payload field after a load.
struct FieldInfo {
  std::string name;
  std::string type;        // "string", "integer", "number", "boolean", "list", "object", "mixed"
  std::uint64_t rows = 0;  // rows that have it, null not counted
};

// The payload of every row, packed: field names are stored once, values in a compact binary form
// (payload_encoding.h) in chunks of an arena, so that a row's fields are decoded only when an
// answer needs them. Immutable once built; safe to share.
class PayloadTable {
 public:
  PayloadTable() = default;

  std::size_t row_count() const { return starts_.size(); }
  // By name; a field's number is its place here.
  std::span<const FieldInfo> fields() const { return fields_; }
  // The number of a field, or nothing when no row has it.
  std::optional<std::uint32_t> FieldNumber(std::string_view name) const;

  // The row's payload, all fields, in the order of its line. Cost: one decode of the row.
  PayloadObject Read(Row row) const;
  // Only these fields (numbers from FieldNumber, ascending), in the order of the row's line.
  PayloadObject Read(Row row, std::span<const std::uint32_t> field_numbers) const;
  // One field; monostate when the row lacks it.
  PayloadValue ReadField(Row row, std::uint32_t field_number) const;
  // Calls visit(field number, value) for every field of the row. Cost: one decode of the row.
  void VisitFields(Row row,
                   const std::function<void(std::uint32_t, const PayloadValue&)>& visit) const;
  // Upper bound on the row's size as a protobuf map of field names to values, bytes: for checking a
  // reply before it is built. Cost: one walk over the row, nothing allocated.
  std::uint64_t RowBytes(Row row) const;

  std::uint64_t bytes() const;
  std::uint64_t packed_bytes() const;  // of the rows themselves
  // bytes() of so many rows and fields.
  static std::uint64_t BytesFor(std::uint64_t row_count, std::uint64_t packed_bytes,
                                std::size_t field_count);

 private:
  friend class PayloadTableBuilder;

  // A row is within one chunk, which bounds a packed row; a line of the default 64 KiB packs into
  // less than a fifth of a chunk.
  static constexpr std::size_t kChunkBytes = std::size_t{1} << 20;

  std::span<const std::uint8_t> EncodedRow(Row row) const;

  std::vector<FieldInfo> fields_;
  // Packed rows number fields in the order of first mention, because not all names are known before
  // the last line; this maps that order to field numbers.
  std::vector<std::uint32_t> number_of_stored_;
  std::vector<std::uint64_t> starts_;  // starts_[row]: chunk << 32 | offset in the chunk
  std::vector<std::vector<std::uint8_t>> chunks_;
};

}  // namespace simile::data
