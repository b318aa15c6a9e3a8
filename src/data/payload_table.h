#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/field_type.h"
#include "data/payload_encoding.h"
#include "simile/matrix_view.h"
#include "simile/payload.h"

namespace simile::data {

// A payload field after a load.
struct FieldInfo {
  std::string name;        // of a member of an object: `meta.year`
  bool is_nested = false;  // a member of an object, not of rows
  FieldValues values;      // of all rows
  FieldType type = FieldType::kOther;
  // Whether a first load of the same files would choose another type or separator: those of the
  // served generation were kept.
  bool is_kept_otherwise = false;
  // Whether filters on it mean the same whatever values a later load brings: its type is declared,
  // its values have one reading, or had it when the type was chosen that has been kept since.
  bool has_lasting_meaning = false;
  std::string separator;  // separates the keywords of a text; empty: a text is one keyword
};

// The most names in the name of a field: those of the objects that it lies in, and its own.
inline constexpr std::size_t kNamesOfFieldMax = 4;

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
  // Calls visit(field number, value) for every field of the row, those inside objects too. Cost:
  // one decode of the row, and of each object one for each object that it lies in.
  void VisitFields(Row row,
                   const std::function<void(std::uint32_t, const PayloadValue&)>& visit) const;
  // Calls visit(field number, encoded value) for every field of the row, in the order of its line,
  // objects as a whole.
  // Cost: one walk over the fields, nothing decoded or allocated.
  template <class Visit>
  void VisitEncoded(Row row, Visit&& visit) const {
    PayloadCursor cursor(EncodedRow(row));
    while (!cursor.at_end()) {
      const std::uint32_t number = number_of_stored_[cursor.ReadVarint()];
      visit(number, cursor.ReadValueBytes());
    }
  }
  // The same, and behind each object the fields inside it.
  template <class Visit>
  void VisitEncodedFields(Row row, Visit&& visit) const {
    VisitEncoded(row, [&](std::uint32_t number, std::span<const std::uint8_t> value) {
      VisitWithMembers(number, value, visit);
    });
  }

  std::uint64_t bytes() const;
  std::uint64_t packed_bytes() const;  // of the rows themselves
  // bytes() of so many rows and fields.
  static std::uint64_t BytesFor(std::uint64_t row_count, std::uint64_t packed_bytes,
                                std::size_t field_count);

 private:
  friend class PayloadTableBuilder;
  static constexpr std::size_t kFieldBytes =
      sizeof(FieldInfo) + sizeof(std::vector<std::uint32_t>) + sizeof(std::uint32_t);

  // A row is within one chunk, which bounds a packed row; a line of the default 64 KiB packs into
  // less than a third of a chunk.
  static constexpr unsigned kOffsetBits = 20;
  static constexpr std::size_t kChunkBytes = std::size_t{1} << kOffsetBits;
  // As many rows as the bits that an offset leaves free can count chunks: each row begins at most
  // one.
  static constexpr std::size_t kBlockRows = std::size_t{1} << (32 - kOffsetBits);

  std::size_t ChunkIndex(Row row) const {
    return block_chunks_[row / kBlockRows] + (starts_[row] >> kOffsetBits);
  }
  std::size_t ChunkOffset(Row row) const { return starts_[row] & (kChunkBytes - 1); }
  // A member of a field's objects that is a field of its own.
  struct Member {
    std::string name;
    std::uint32_t field_number = 0;
  };
  // Recurses as deep as the names of fields, kNamesOfFieldMax.
  template <class Visit>
  void VisitWithMembers(std::uint32_t number, std::span<const std::uint8_t> value,
                        Visit& visit) const {
    visit(number, value);
    const std::vector<Member>& members = members_[number];
    if (members.empty()) return;
    for (PayloadCursor encoded = ReadMembers(value); !encoded.at_end();) {
      const EncodedMember member = encoded.ReadMember();
      const auto found = std::ranges::lower_bound(
          members, member.name, {}, [](const Member& each) { return std::string_view(each.name); });
      if (found == members.end() || found->name != member.name) continue;
      VisitWithMembers(found->field_number, member.value, visit);
    }
  }
  // The row's fields: each its number, a varint, and its encoded value.
  std::span<const std::uint8_t> EncodedRow(Row row) const;

  std::vector<FieldInfo> fields_;
  std::vector<std::uint32_t>
      row_fields_;  // [field] itself; if nested, the field of rows it lies in
  std::vector<std::vector<Member>> members_;  // [field] by name
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
