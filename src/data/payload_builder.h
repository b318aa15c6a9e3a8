#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <absl/status/status.h>

#include "data/buffered_reader.h"
#include "data/field_rules.h"
#include "data/payload_table.h"
#include "simile/limits.h"
#include "simile/payload.h"

namespace simile::data {

// Packs rows one by one into a PayloadTable.
class PayloadTableBuilder {
 public:
  //   row_count  expected rows, for which offsets are reserved
  //   keep       kNothing: the same checks and fields, but the table has no rows
  PayloadTableBuilder(std::size_t row_count, const Limits& limits, Keep keep = Keep::kRows);

  // Adds the next row. The members of an object are fields, too, unless they are too many: then
  // those of the object with the most are left out. Errors: kInvalidArgument when the row itself
  // brings one field too many, or is too large when packed. The caller adds file and line to the
  // message. REQUIRES: names are distinct, text is valid UTF-8: the reader has checked.
  absl::Status Add(const PayloadObject& row);

  // Decides the types of the fields, when all rows are added. Without this they are guessed from
  // the values. Notes also say which objects' fields are left out. Errors: ChooseFieldTypes'.
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
  // Of fields inside objects that were dropped. A new field takes such a number.
  std::vector<std::uint32_t> free_numbers_;
  std::map<std::string, std::uint32_t, std::less<>> numbers_;  // of fields of rows
  // What is left out, for notes: objects with too many fields, and the first of the others.
  std::vector<std::string> too_many_;
  std::string too_deep_;
  std::string dotted_;
  std::vector<std::uint8_t> packed_;  // the current row
};

}  // namespace simile::data
