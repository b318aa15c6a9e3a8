#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <absl/status/status.h>

#include "data/formats/buffered_reader.h"
#include "data/payload/field_rules.h"
#include "data/payload/payload_encoding.h"
#include "simile/limits.h"
#include "simile/matrix_view.h"
#include "simile/payload.h"

namespace simile::data {

// The most names that the name of a field joins: the names of the objects around it, and its own.
inline constexpr std::size_t kNamesOfFieldMax = 4;

// The payload of every row, packed into chunks of an arena. Field names are kept once. Values are
// kept in the form of an answer (payload_encoding.h), so that an answer copies them and decodes
// nothing. Immutable once built; safe to share.
class PayloadTable {
 public:
  PayloadTable() = default;

  std::size_t row_count() const { return starts_.size(); }
  // All fields by name; the number of a field is its index here.
  std::span<const FieldInfo> fields() const { return fields_; }
  // The number of a field, or nothing when no row has it.
  std::optional<std::uint32_t> FieldNumber(std::string_view name) const;

  // The row's payload, all fields, in the order of its line. Cost: one decode of the row.
  PayloadObject Read(Row row) const;
  // One field; monostate when the row lacks it.
  PayloadValue ReadField(Row row, std::uint32_t field_number) const;
  // Calls visit(field number, value) for every field of the row, fields inside objects too. Cost:
  // one decode of the row; an object is decoded once more for each object around it.
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
  // The bytes() of a table of this size.
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
  // The rows of a block. The bits above an offset number the chunks of a block, and each row begins
  // at most one chunk.
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
  // starts_[row]: in the lower kOffsetBits the offset in the row's chunk. The bits above have the
  // number of the chunk, counted from the chunk of the block's first row.
  std::vector<std::uint32_t> starts_;
  std::vector<std::uint32_t>
      block_chunks_;  // [row / kBlockRows] the chunk of the block's first row
  std::vector<std::vector<std::uint8_t>> chunks_;
};

// Packs rows one by one into a PayloadTable.
class PayloadTableBuilder {
 public:
  //   row_count  expected rows, for which offsets are reserved
  //   keep       kNothing: the same checks and fields, but the table has no rows
  PayloadTableBuilder(std::size_t row_count, const Limits& limits, Keep keep = Keep::kRows);

  // Adds the next row. The members of an object are fields, too. When there are too many fields,
  // the members of the object with the most are left out.
  // REQUIRES: names are distinct, text is valid UTF-8: the reader has checked.
  // Errors: kInvalidArgument when the row itself brings one field too many, or is too large when
  //         packed; the caller adds file and line.
  absl::Status Add(const PayloadObject& row);

  // Decides the types of the fields, when all rows are added. Without this call they are guessed
  // from the values. Notes also say which objects' fields are left out.
  // Errors: those of ChooseFieldTypes.
  absl::Status ChooseTypes(const FieldRules& rules, std::string_view file,
                           std::vector<std::string>& notes);
  PayloadTable Build() &&;

 private:
  // A field, by the number that the builder gives it.
  struct Node {
    std::uint32_t row_field = 0;  // itself; of a member of an object, the field of rows it lies in
    std::map<std::string, std::uint32_t, std::less<>> members;  // of its objects
    // Of a field of rows: how many fields lie in it, and whether members are left out.
    std::size_t nested_count = 0;
    bool is_closed = false;
  };

  // The number of a field of rows, which is added unless it is known. Errors: one field too many.
  absl::Status FindOrAddField(std::string_view name, std::uint32_t& number);
  // Adds a value that is not null to its field, and the members of an object to theirs.
  //   names  in the field's name
  void AddValue(std::uint32_t number, const PayloadValue& value, std::size_t names);
  // The field of a member; nothing when it is left out.
  std::optional<std::uint32_t> FindOrAddMember(std::uint32_t number, const std::string& name,
                                               std::size_t names);
  // The number of a field that is new.
  std::uint32_t NewField(std::string name);
  // Makes place for one field more. False when the fields of rows take all.
  bool MakePlace();
  // Leaves out all fields inside the objects of a field.
  void DropMembers(std::uint32_t number);
  // Leaves out what the rules and fields of rows hide, and gives the table its fields by name.
  void Seal(const FieldRules& rules, std::string_view file, std::vector<std::string>& notes);
  void Store(const std::vector<std::uint8_t>& row);

  const std::size_t fields_max_;
  const Keep keep_;
  bool types_chosen_ = false;
  Row next_row_ = 0;
  PayloadTable table_;       // fields in the builder's order until Seal sorts them
  std::vector<Node> nodes_;  // [field]
  // The numbers of dropped fields inside objects. A new field takes one of them.
  std::vector<std::uint32_t> free_numbers_;
  std::map<std::string, std::uint32_t, std::less<>> numbers_;  // of fields of rows
  // What is left out, for notes: objects with too many fields, the first object that is too deep,
  // and the first name with a dot.
  std::vector<std::string> too_many_;
  std::string too_deep_;
  std::string dotted_;
  std::vector<std::uint8_t> packed_;  // the current row
};

}  // namespace simile::data
