#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/field_type.h"
#include "data/field_values.h"
#include "data/payload_encoding.h"
#include "simile/matrix_view.h"
#include "simile/payload.h"

namespace simile::data {

// A payload field after a load.
struct FieldInfo {
  std::string name;
  FieldValues values;  // of all rows
  FieldType type = FieldType::kOther;
  // Whether a first load of the same files would choose another type or separator: those of the
  // served generation were kept.
  bool is_kept_otherwise = false;
  // Whether filters on it mean the same whatever values a later load brings: its type is declared,
  // its values have one reading, or had it when the type was chosen that has been kept since.
  bool has_lasting_meaning = false;
  std::string separator;  // separates the keywords of a text; empty: a text is one keyword
};

// The payload of every row, packed: field names are kept once, values as an answer has them
// (payload_encoding.h), in chunks of an arena, so that an answer copies them and decodes nothing.
// Immutable once built; safe to share.
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
  // One field; monostate when the row lacks it.
  PayloadValue ReadField(Row row, std::uint32_t field_number) const;
  // Calls visit(field number, value) for every field of the row. Cost: one decode of the row.
  void VisitFields(Row row,
                   const std::function<void(std::uint32_t, const PayloadValue&)>& visit) const;
  // Calls visit(field number, encoded value) for every field of the row, in the order of its line.
  // Cost: one walk over the fields, nothing decoded or allocated.
  template <class Visit>
  void VisitEncoded(Row row, Visit&& visit) const {
    PayloadCursor cursor(EncodedRow(row));
    while (!cursor.at_end()) {
      const std::uint32_t number = number_of_stored_[cursor.ReadVarint()];
      visit(number, cursor.ReadValueBytes());
    }
  }

  std::uint64_t bytes() const;
  std::uint64_t packed_bytes() const;  // of the rows themselves
  // bytes() of so many rows and fields.
  static std::uint64_t BytesFor(std::uint64_t row_count, std::uint64_t packed_bytes,
                                std::size_t field_count);

 private:
  friend class PayloadTableBuilder;

  // A row is within one chunk, which bounds a packed row; a line of the default 64 KiB packs into
  // less than a third of a chunk.
  static constexpr unsigned kOffsetBits = 20;
  static constexpr std::size_t kChunkBytes = std::size_t{1} << kOffsetBits;
  // As many rows as the bits that an offset leaves free can count chunks: each row begins at most
  // one.
  static constexpr std::size_t kBlockRows = std::size_t{1} << (32 - kOffsetBits);

  std::size_t ChunkOf(Row row) const {
    return block_chunks_[row / kBlockRows] + (starts_[row] >> kOffsetBits);
  }
  std::size_t OffsetOf(Row row) const { return starts_[row] & (kChunkBytes - 1); }
  // The row's fields: each its number, a varint, and its encoded value.
  std::span<const std::uint8_t> EncodedRow(Row row) const;

  std::vector<FieldInfo> fields_;
  // Packed rows number fields in the order of first mention, because not all names are known before
  // the last line; this maps that order to field numbers.
  std::vector<std::uint32_t> number_of_stored_;
  // starts_[row]: the offset in its chunk, kOffsetBits, and above them which chunk it is, counted
  // from that of its block's first row.
  std::vector<std::uint32_t> starts_;
  std::vector<std::uint32_t>
      block_chunks_;  // [row / kBlockRows] the chunk of the block's first row
  std::vector<std::vector<std::uint8_t>> chunks_;
};

}  // namespace simile::data
