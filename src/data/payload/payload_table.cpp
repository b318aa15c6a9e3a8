#include "data/payload/payload_table.h"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <utility>
#include <variant>

#include <absl/strings/string_view.h>
#include <fmt/format.h>

#include "base/message_text.h"
#include "data/payload/payload_encoding.h"

namespace simile::data {
namespace {

// The member of an object, `address.city`; monostate where an object lacks it.
PayloadValue ReadMember(std::span<const std::uint8_t> value, std::string_view path) {
  while (true) {
    const std::size_t end = path.find('.');
    const std::string_view name = path.substr(0, end);
    PayloadCursor members = ReadMembers(value);
    EncodedMember member;
    do {
      if (members.at_end()) return {};
      member = members.ReadMember();
    } while (member.name != name);
    value = member.value;
    if (end == std::string_view::npos) return DecodeValue(value);
    path.remove_prefix(end + 1);
  }
}

}  // namespace

std::optional<std::uint32_t> PayloadTable::FieldNumber(std::string_view name) const {
  const auto found = std::lower_bound(
      fields_.begin(), fields_.end(), name,
      [](const FieldInfo& field, std::string_view wanted) { return field.name < wanted; });
  if (found == fields_.end() || found->name != name) return std::nullopt;
  return static_cast<std::uint32_t>(found - fields_.begin());
}

std::span<const std::uint8_t> PayloadTable::EncodedRow(Row row) const {
  assert(row < starts_.size());
  const std::size_t chunk_index = ChunkIndex(row);
  const std::vector<std::uint8_t>& chunk = chunks_[chunk_index];
  const std::size_t begin = ChunkOffset(row);
  const Row next = row + 1;
  const bool last_of_chunk = next == starts_.size() || ChunkIndex(next) != chunk_index;
  return std::span(chunk).subspan(begin,
                                  (last_of_chunk ? chunk.size() : ChunkOffset(next)) - begin);
}

PayloadObject PayloadTable::Read(Row row) const {
  PayloadObject object;
  VisitEncoded(row, [&](std::uint32_t number, std::span<const std::uint8_t> value) {
    object.emplace_back(fields_[number].name, DecodeValue(value));
  });
  return object;
}

PayloadValue PayloadTable::ReadField(Row row, std::uint32_t field_number) const {
  const std::uint32_t row_field = row_fields_[field_number];
  PayloadCursor cursor(EncodedRow(row));
  while (!cursor.at_end()) {
    const std::uint32_t number = number_of_stored_[cursor.ReadVarint()];
    const std::span<const std::uint8_t> value = cursor.ReadValueBytes();
    if (number != row_field) continue;
    if (number == field_number) return DecodeValue(value);
    const std::string_view name = fields_[field_number].name;
    return ReadMember(value, name.substr(fields_[row_field].name.size() + 1));
  }
  return {};
}

void PayloadTable::VisitFields(
    Row row, const std::function<void(std::uint32_t, const PayloadValue&)>& visit) const {
  VisitEncodedFields(row, [&](std::uint32_t number, std::span<const std::uint8_t> value) {
    visit(number, DecodeValue(value));
  });
}

std::uint64_t PayloadTable::bytes() const {
  std::uint64_t bytes = (starts_.capacity() + block_chunks_.capacity()) * sizeof(std::uint32_t) +
                        number_of_stored_.capacity() * sizeof(std::uint32_t) +
                        fields_.capacity() * kFieldBytes +
                        chunks_.capacity() * sizeof(std::vector<std::uint8_t>);
  for (const auto& chunk : chunks_) bytes += chunk.capacity();
  return bytes;
}

std::uint64_t PayloadTable::packed_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& chunk : chunks_) bytes += chunk.size();
  return bytes;
}

std::uint64_t PayloadTable::BytesFor(std::uint64_t row_count, std::uint64_t packed_bytes,
                                     std::size_t field_count) {
  // A row that does not fit into the rest of a chunk begins the next: on average half a row is
  // lost.
  const std::uint64_t chunk_count = packed_bytes / kChunkBytes;
  const std::uint64_t row_bytes = row_count == 0 ? 0 : packed_bytes / row_count;
  const std::uint64_t block_count = (row_count + kBlockRows - 1) / kBlockRows;
  return (row_count + block_count) * sizeof(std::uint32_t) + packed_bytes +
         chunk_count * row_bytes / 2 + (chunk_count + 1) * sizeof(std::vector<std::uint8_t>) +
         field_count * (kFieldBytes + sizeof(std::uint32_t));
}

PayloadTableBuilder::PayloadTableBuilder(std::size_t row_count, const Limits& limits, Keep keep)
    : fields_max_(limits.payload_fields_per_collection_max), keep_(keep) {
  if (keep_ == Keep::kRows) table_.starts_.reserve(row_count);
}

absl::Status PayloadTableBuilder::Add(const PayloadObject& row) {
  packed_.clear();
  for (const auto& [name, value] : row) {
    std::uint32_t number = 0;
    if (absl::Status status = FindOrAddField(name, number); !status.ok()) return status;
    AddValue(number, value, 1);
    AppendVarint(packed_, number);
    AppendValue(packed_, value);
  }
  if (packed_.size() > PayloadTable::kChunkBytes) {
    return absl::InvalidArgumentError(fmt::format("the object takes {} bytes packed; at most {}",
                                                  base::Grouped(packed_.size()),
                                                  base::Grouped(PayloadTable::kChunkBytes)));
  }
  if (keep_ == Keep::kRows) Store(packed_);
  ++next_row_;
  return absl::OkStatus();
}

absl::Status PayloadTableBuilder::FindOrAddField(std::string_view name, std::uint32_t& number) {
  const auto found = numbers_.find(name);
  if (found != numbers_.end()) {
    number = found->second;
    return absl::OkStatus();
  }
  if (!MakePlace()) {
    return absl::InvalidArgumentError(fmt::format(
        "field {} is one too many; a collection may have {} different fields: keep rare ones "
        "in one object, or in one list of texts as in \"attributes\": [\"color=red\"]",
        base::Quoted(name), base::Grouped(fields_max_)));
  }
  number = NewField(std::string(name));
  numbers_.emplace(std::string(name), number);
  nodes_[number].row_field = number;
  return absl::OkStatus();
}

std::uint32_t PayloadTableBuilder::NewField(std::string name) {
  auto number = static_cast<std::uint32_t>(nodes_.size());
  if (free_numbers_.empty()) {
    nodes_.emplace_back();
    table_.fields_.emplace_back();
  } else {
    number = free_numbers_.back();
    free_numbers_.pop_back();
  }
  table_.fields_[number].name = std::move(name);
  return number;
}

bool PayloadTableBuilder::MakePlace() {
  if (nodes_.size() - free_numbers_.size() < fields_max_) return true;
  const auto largest = std::ranges::max_element(nodes_, {}, &Node::nested_count);
  if (largest == nodes_.end() || largest->nested_count == 0) return false;
  largest->is_closed = true;
  too_many_.push_back(table_.fields_[largest->row_field].name);
  DropMembers(largest->row_field);
  return true;
}

void PayloadTableBuilder::DropMembers(std::uint32_t number) {
  const auto members = std::exchange(nodes_[number].members, {});
  for (const auto& [name, member] : members) {
    DropMembers(member);
    --nodes_[nodes_[number].row_field].nested_count;
    nodes_[member] = {};
    table_.fields_[member] = {};
    free_numbers_.push_back(member);
  }
}

void PayloadTableBuilder::AddValue(std::uint32_t number, const PayloadValue& value,
                                   std::size_t names) {
  if (std::holds_alternative<std::monostate>(value.value)) return;
  table_.fields_[number].values.Add(next_row_, value);
  const auto* const object = std::get_if<PayloadObject>(&value.value);
  if (object == nullptr) return;
  const std::uint32_t row_field = nodes_[number].row_field;
  for (const PayloadMember& member : *object) {
    // Adding the last member may have closed the object.
    if (nodes_[row_field].is_closed) return;
    const std::optional<std::uint32_t> field = FindOrAddMember(number, member.first, names);
    if (field) AddValue(*field, member.second, names + 1);
  }
}

std::optional<std::uint32_t> PayloadTableBuilder::FindOrAddMember(std::uint32_t number,
                                                                  const std::string& name,
                                                                  std::size_t names) {
  const auto found = nodes_[number].members.find(name);
  if (found != nodes_[number].members.end()) return found->second;
  const std::string& object = table_.fields_[number].name;
  // One name would mean two fields.
  const bool is_dotted = name.find('.') != std::string::npos;
  if (is_dotted || (names == 1 && object.find('.') != std::string::npos)) {
    if (dotted_.empty()) dotted_ = is_dotted ? name : object;
    return std::nullopt;
  }
  if (names == kNamesOfFieldMax) {
    if (too_deep_.empty()) too_deep_ = object;
    return std::nullopt;
  }
  const std::uint32_t row_field = nodes_[number].row_field;
  if (!MakePlace() && !std::exchange(nodes_[row_field].is_closed, true)) {
    too_many_.push_back(table_.fields_[row_field].name);
  }
  if (nodes_[row_field].is_closed) return std::nullopt;
  const std::uint32_t member = NewField(fmt::format("{}.{}", table_.fields_[number].name, name));
  table_.fields_[member].is_nested = true;
  nodes_[member].row_field = row_field;
  nodes_[number].members.emplace(name, member);
  ++nodes_[row_field].nested_count;
  return member;
}

void PayloadTableBuilder::Store(const std::vector<std::uint8_t>& row) {
  auto& chunks = table_.chunks_;
  // No row begins at the end of a full chunk, not even an empty one: an offset is below
  // kChunkBytes.
  if (chunks.empty() || chunks.back().size() + row.size() >= PayloadTable::kChunkBytes) {
    chunks.emplace_back().reserve(PayloadTable::kChunkBytes);
  }
  const auto chunk = static_cast<std::uint32_t>(chunks.size() - 1);
  if (table_.starts_.size() % PayloadTable::kBlockRows == 0) table_.block_chunks_.push_back(chunk);
  const auto offset = static_cast<std::uint32_t>(chunks.back().size());
  table_.starts_.push_back((chunk - table_.block_chunks_.back()) << PayloadTable::kOffsetBits |
                           offset);
  chunks.back().insert(chunks.back().end(), row.begin(), row.end());
}

void PayloadTableBuilder::Seal(const FieldRules& rules, std::string_view file,
                               std::vector<std::string>& notes) {
  const auto note = [&](std::string_view field, std::string_view what) {
    notes.push_back(fmt::format("{}: {} {}", file, base::Quoted(field), what));
  };
  auto& fields = table_.fields_;
  std::string hidden;
  for (std::uint32_t number = 0; number < fields.size(); ++number) {
    const std::string name = fields[number].name;
    const auto declared = std::ranges::find(rules.declared, name, &NamedFieldType::field);
    const bool is_left_out =
        declared != rules.declared.end() && declared->type == FieldType::kOther;
    if (is_left_out) DropMembers(number);
    std::erase_if(nodes_[number].members, [&](const auto& member) {
      if (!numbers_.contains(fields[member.second].name)) return false;
      if (hidden.empty()) hidden = fields[member.second].name;
      DropMembers(member.second);
      fields[member.second] = {};
      free_numbers_.push_back(member.second);
      return true;
    });
  }
  if (!hidden.empty()) {
    note(hidden, "is a field of rows, and one inside an object, which filters do not read");
  }
  constexpr std::size_t kListedMax = 4;
  for (std::size_t i = 0; i < std::min(too_many_.size(), kListedMax); ++i) {
    note(too_many_[i], fmt::format("holds objects with too many different fields (a collection may "
                                   "have {}), so filters can only ask whether a row has it",
                                   base::Grouped(fields_max_)));
  }
  if (!too_deep_.empty()) {
    note(too_deep_, fmt::format("holds objects whose fields filters do not read: a name of a field "
                                "has at most {} parts",
                                kNamesOfFieldMax));
  }
  if (!dotted_.empty()) {
    note(dotted_,
         "has a dot in its name, so filters do not read it inside an object, and no fields "
         "inside it");
  }

  std::vector<std::uint32_t> by_name(fields.size());
  std::iota(by_name.begin(), by_name.end(), 0U);
  std::ranges::sort(free_numbers_);
  std::erase_if(by_name, [&](std::uint32_t number) {
    return std::ranges::binary_search(free_numbers_, number);
  });
  std::ranges::sort(by_name, {}, [&fields](std::uint32_t number) { return fields[number].name; });
  std::vector<std::uint32_t>& place_of = table_.number_of_stored_;
  place_of.resize(fields.size());
  for (std::size_t i = 0; i < by_name.size(); ++i) {
    place_of[by_name[i]] = static_cast<std::uint32_t>(i);
  }
  std::vector<FieldInfo> sorted;
  sorted.reserve(by_name.size());
  for (const std::uint32_t number : by_name) {
    sorted.push_back(std::move(fields[number]));
    table_.row_fields_.push_back(place_of[nodes_[number].row_field]);
    auto& members = table_.members_.emplace_back();
    for (const auto& [name, member] : nodes_[number].members) {
      members.push_back({name, place_of[member]});
    }
  }
  fields = std::move(sorted);
}

absl::Status PayloadTableBuilder::ChooseTypes(const FieldRules& rules, std::string_view file,
                                              std::vector<std::string>& notes) {
  types_chosen_ = true;
  Seal(rules, file, notes);
  return ChooseFieldTypes(rules, file, table_.fields_, notes);
}

PayloadTable PayloadTableBuilder::Build() && {
  if (!types_chosen_) {
    std::vector<std::string> notes;
    // ChooseTypes without rules refuses nothing.
    static_cast<void>(ChooseTypes({}, {}, notes));
  }
  if (!table_.chunks_.empty()) table_.chunks_.back().shrink_to_fit();
  return std::move(table_);
}

}  // namespace simile::data
