#include "service/replies/hit_columns.h"

#include <algorithm>
#include <variant>

#include "data/payload/payload_encoding.h"
#include "service/replies/replies.h"
#include "simile/v1/search.pb.h"

namespace simile::service {
namespace {

using data::EncodedValue;
using data::FieldType;

template <class Number>
std::string_view AsBytes(const std::vector<Number>& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(Number)};
}

// The value as an integer: 12.0 is 12. Nothing for other values.
std::optional<std::int64_t> ToInteger(const EncodedValue& value) {
  if (const auto* const integer = std::get_if<std::int64_t>(&value)) return *integer;
  if (const auto* const number = std::get_if<double>(&value)) {
    return data::ToWhole(PayloadValue{*number});
  }
  return std::nullopt;
}

// The value as a double; an integer only up to 2^53, where a double holds it exactly.
std::optional<double> ToNumber(const EncodedValue& value) {
  constexpr std::int64_t kExactMax = std::int64_t{1} << 53;
  if (const auto* const number = std::get_if<double>(&value)) return *number;
  const auto* const integer = std::get_if<std::int64_t>(&value);
  if (integer == nullptr || *integer > kExactMax || *integer < -kExactMax) return std::nullopt;
  return static_cast<double>(*integer);
}

}  // namespace

void TextColumn::AddShared(std::string_view text) {
  const auto place = static_cast<std::uint32_t>(offsets_.size() - 1);
  const auto [known, is_new] = shared_.try_emplace(text, place);
  if (is_new) Add(text);
  places_.push_back(known->second);
}

template <class Sink>
void TextColumn::Encode(Sink& out) const {
  out.Text(v1::TextColumn::kOffsetsFieldNumber, AsBytes(offsets_));
  out.Text(v1::TextColumn::kUtf8FieldNumber, utf8_);
  out.Text(v1::TextColumn::kPlacesFieldNumber, AsBytes(places_));
}

// A field with a separator has texts that filters read as lists; an answer has the texts.
PayloadColumn::PayloadColumn(const data::FieldInfo& field)
    : field_(field),
      element_type_(data::TypeOfElements(field.type)),
      is_list_(data::IsList(field.type) && field.separator.empty()) {}

void PayloadColumn::Add(std::size_t item, std::span<const std::uint8_t> encoded) {
  FillTo(item);
  const EncodedValue value = data::ReadValue(encoded);
  if (std::holds_alternative<std::monostate>(value)) {
    AddNothing();
    EndItem(kNull);
  } else if (IsOfType(value)) {
    AddValue(value);
    EndItem(kInValues);
  } else {
    others_.push_back(encoded);
    other_bytes_ += encoded.size();
    AddNothing();
    EndItem(kInOthers);
  }
}

void PayloadColumn::FillTo(std::size_t item_count) {
  while (states_.size() < item_count) {
    AddNothing();
    EndItem(kAbsent);
  }
}

std::uint64_t PayloadColumn::bytes() const {
  return states_.size() + other_bytes_ + booleans_.size() + texts_.bytes() +
         integers_.size() * sizeof(std::int64_t) + numbers_.size() * sizeof(double) +
         (is_list_ ? list_offsets_.size() * sizeof(std::uint32_t) : 0);
}

bool PayloadColumn::IsElement(const EncodedValue& value) const {
  switch (element_type_) {
    case FieldType::kInteger:
      return ToInteger(value).has_value();
    case FieldType::kNumber:
      return ToNumber(value).has_value();
    case FieldType::kBoolean:
      return std::holds_alternative<bool>(value);
    case FieldType::kKeyword:
    case FieldType::kTime:
      return std::holds_alternative<std::string_view>(value);
    default:
      return false;
  }
}

bool PayloadColumn::IsOfType(const EncodedValue& value) const {
  if (!is_list_) return IsElement(value);
  const auto* const list = std::get_if<data::EncodedList>(&value);
  if (list == nullptr) return false;
  for (data::PayloadCursor elements = list->elements; !elements.at_end();) {
    if (!IsElement(data::ReadValue(elements.ReadElement()))) return false;
  }
  return true;
}

void PayloadColumn::AddValue(const EncodedValue& value) {
  if (const auto* const list = std::get_if<data::EncodedList>(&value)) {
    for (data::PayloadCursor elements = list->elements; !elements.at_end();) {
      AddValue(data::ReadValue(elements.ReadElement()));
    }
    return;
  }
  ++value_count_;
  switch (element_type_) {
    case FieldType::kInteger:
      return integers_.push_back(ToInteger(value).value_or(0));
    case FieldType::kNumber:
      return numbers_.push_back(ToNumber(value).value_or(0));
    case FieldType::kBoolean:
      return booleans_.push_back(static_cast<std::uint8_t>(std::get<bool>(value)));
    default:
      return texts_.AddShared(std::get<std::string_view>(value));
  }
}

// Keeps the columns of single values as long as the items.
void PayloadColumn::AddNothing() {
  if (is_list_) return;
  switch (element_type_) {
    case FieldType::kInteger:
      return integers_.push_back(0);
    case FieldType::kNumber:
      return numbers_.push_back(0);
    case FieldType::kBoolean:
      return booleans_.push_back(0);
    case FieldType::kKeyword:
    case FieldType::kTime:
      return texts_.AddShared("");
    default:
      return;
  }
}

void PayloadColumn::EndItem(State state) {
  states_.push_back(state);
  all_in_values_ = all_in_values_ && state == kInValues;
  if (is_list_) list_offsets_.push_back(value_count_);
}

template <class Sink>
void PayloadColumn::Encode(Sink& out) const {
  using Column = v1::PayloadColumn;
  out.Text(Column::kFieldFieldNumber, field_.name);
  if (!all_in_values_) out.Text(Column::kStatesFieldNumber, AsBytes(states_));
  switch (element_type_) {
    case FieldType::kInteger:
      out.Element(Column::kIntegersFieldNumber, AsBytes(integers_));
      break;
    case FieldType::kNumber:
      out.Element(Column::kNumbersFieldNumber, AsBytes(numbers_));
      break;
    case FieldType::kBoolean:
      out.Element(Column::kBooleansFieldNumber, AsBytes(booleans_));
      break;
    case FieldType::kKeyword:
    case FieldType::kTime:
      out.Message(Column::kTextsFieldNumber, [&] { texts_.Encode(out); });
      break;
    default:
      break;
  }
  if (is_list_) out.Text(Column::kListOffsetsFieldNumber, AsBytes(list_offsets_));
  for (const std::span<const std::uint8_t> other : others_) {
    out.Element(Column::kOthersFieldNumber,
                {reinterpret_cast<const char*>(other.data()), other.size()});
  }
}

std::unique_ptr<const HitColumns> HitColumns::Create(const engine::Snapshot& snapshot,
                                                     const RowShape& shape, bool sees_all_rows,
                                                     std::span<const ResultPage> pages,
                                                     std::uint64_t bytes_max) {
  std::uint64_t hit_count = 0;
  for (const ResultPage& page : pages) {
    hit_count += page.hits.size();
    for (const engine::HitGroup& group : page.groups) hit_count += group.hits.size();
  }
  constexpr std::uint64_t kHitBytes = sizeof(float) + sizeof(std::uint32_t);
  if (hit_count * kHitBytes > bytes_max) return nullptr;
  std::unique_ptr<HitColumns> columns(new HitColumns(snapshot, shape, sees_all_rows, bytes_max));
  columns->bytes_ = hit_count * kHitBytes;
  columns->Reserve(hit_count);
  for (const ResultPage& page : pages) {
    columns->AddPage(page);
    if (columns->is_full()) return nullptr;
  }
  return columns;
}

HitColumns::HitColumns(const engine::Snapshot& snapshot, const RowShape& shape, bool sees_all_rows,
                       std::uint64_t bytes_max)
    : snapshot_(snapshot),
      shape_(shape),
      bytes_max_(bytes_max),
      integer_ids_(sees_all_rows && snapshot.dataset->ids.are_integers()) {
  if (shape.payload.none) return;
  payload_.resize(snapshot.dataset->payload.fields().size());
  if (shape.payload.all) return;
  for (const std::uint32_t number : shape.payload.field_numbers) FindOrAddColumn(number);
}

void HitColumns::Reserve(std::size_t hit_count) {
  scores_.reserve(hit_count);
  items_.reserve(hit_count);
  item_of_row_.reserve(std::min(hit_count, snapshot_.row_count()));
}

void HitColumns::AddPage(const ResultPage& page) {
  if (page.error.empty()) {
    AddHits(page.hits);
    for (const engine::HitGroup& group : page.groups) {
      if (is_full()) return;
      has_groups_ = true;
      AddHits(group.hits);
      bytes_ += group.keyword.size() + 2 * sizeof(std::uint32_t);
      group_sizes_.push_back(static_cast<std::uint32_t>(group.hits.size()));
      group_keywords_.Add(group.keyword);
    }
  }
  offsets_.push_back(static_cast<std::uint32_t>(items_.size()));
  group_offsets_.push_back(static_cast<std::uint32_t>(group_sizes_.size()));
  first_ranks_.push_back(page.offset + 1);
}

void HitColumns::AddHits(std::span<const Hit> hits) {
  for (const Hit& hit : hits) {
    if (is_full()) return;
    scores_.push_back(hit.score);
    items_.push_back(FindOrAddItem(hit.row));
  }
}

std::uint32_t HitColumns::FindOrAddItem(Row row) {
  const auto item = static_cast<std::uint32_t>(rows_.size());
  const auto [known, is_new] = item_of_row_.try_emplace(row, item);
  if (is_new) AddItem(row);
  return known->second;
}

void HitColumns::AddItem(Row row) {
  const data::Dataset& dataset = *snapshot_.dataset;
  const std::size_t item = rows_.size();
  rows_.push_back(row);
  if (integer_ids_) {
    ids_.push_back(dataset.ids.Integer(row));
    bytes_ += sizeof(std::int64_t);
  } else {
    data::IdIndex::Digits digits;
    const std::string_view id = dataset.ids.Id(row, digits);
    text_ids_.Add(id);
    bytes_ += sizeof(std::uint32_t) + id.size();
  }
  if (shape_.with_rows) bytes_ += sizeof(Row);
  if (shape_.with_vectors) bytes_ += snapshot_.dim() * sizeof(float);
  if (!shape_.payload.none) AddPayload(item, row);
}

// Fills up every column after each item, so that bytes_ also counts the items without a field.
void HitColumns::AddPayload(std::size_t item, Row row) {
  const data::PayloadTable& payload = snapshot_.dataset->payload;
  const auto change = [this](PayloadColumn& column, auto change_column) {
    const std::uint64_t before = column.bytes();
    change_column();
    bytes_ += column.bytes() - before;
  };
  const auto add = [&](std::uint32_t number, std::span<const std::uint8_t> value) {
    if (!shape_.payload.Has(number) || is_full()) return;
    PayloadColumn& column = FindOrAddColumn(number);
    change(column, [&] { column.Add(item, value); });
  };
  if (shape_.payload.all) {
    payload.VisitEncoded(row, add);
  } else {
    payload.VisitEncodedFields(row, add);
  }
  for (const std::uint32_t number : payload_fields_) {
    PayloadColumn& column = *payload_[number];
    change(column, [&] { column.FillTo(item + 1); });
  }
}

PayloadColumn& HitColumns::FindOrAddColumn(std::uint32_t field_number) {
  std::optional<PayloadColumn>& column = payload_[field_number];
  if (!column) {
    column.emplace(snapshot_.dataset->payload.fields()[field_number]);
    payload_fields_.push_back(field_number);
  }
  return *column;
}

void HitColumns::Encode(ByteCounter& out) const { EncodeTo(out); }
void HitColumns::Encode(WireWriter& out) const { EncodeTo(out); }

template <class Sink>
void HitColumns::EncodeTo(Sink& out) const {
  using Columns = v1::HitColumns;
  out.Text(Columns::kOffsetsFieldNumber, AsBytes(offsets_));
  out.Text(Columns::kFirstRanksFieldNumber, AsBytes(first_ranks_));
  out.Text(Columns::kScoresFieldNumber, AsBytes(scores_));
  out.Text(Columns::kItemsFieldNumber, AsBytes(items_));
  if (has_groups_) {
    out.Message(Columns::kGroupsFieldNumber, [&] {
      out.Text(v1::GroupColumns::kOffsetsFieldNumber, AsBytes(group_offsets_));
      out.Text(v1::GroupColumns::kSizesFieldNumber, AsBytes(group_sizes_));
      out.Message(v1::GroupColumns::kKeywordsFieldNumber, [&] { group_keywords_.Encode(out); });
    });
  }
  out.Message(Columns::kIdsFieldNumber, [&] {
    if (integer_ids_) {
      out.Element(v1::IdColumn::kIntegersFieldNumber, AsBytes(ids_));
    } else {
      out.Message(v1::IdColumn::kTextsFieldNumber, [&] { text_ids_.Encode(out); });
    }
  });
  if (shape_.with_rows) out.Text(Columns::kRowsFieldNumber, AsBytes(rows_));
  if (shape_.with_vectors) {
    const MatrixView vectors = snapshot_.dataset->vectors.view();
    out.Pieces(Columns::kVectorsFieldNumber, rows_.size() * vectors.dim() * sizeof(float),
               [&](const auto& add) {
                 for (const Row row : rows_) add(vectors[row].data(), vectors[row].size_bytes());
               });
  }
  for (const std::optional<PayloadColumn>& column : payload_) {
    if (!column) continue;
    out.Message(Columns::kPayloadFieldNumber, [&] { column->Encode(out); });
  }
}

}  // namespace simile::service
