#include "service/hits_of_columns.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include <google/protobuf/util/message_differencer.h>

namespace simile::service {
namespace {

using ResultMessages = google::protobuf::RepeatedPtrField<v1::SearchResult>;

void Require(bool fits, const char* what) {
  if (!fits) throw std::logic_error(what);
}

template <class Number>
std::vector<Number> ReadNumbers(const std::string& bytes) {
  Require(bytes.size() % sizeof(Number) == 0, "a part of a number");
  std::vector<Number> numbers(bytes.size() / sizeof(Number));
  if (!numbers.empty()) std::memcpy(numbers.data(), bytes.data(), bytes.size());
  return numbers;
}

std::vector<std::string> ReadTexts(const v1::TextColumn& column) {
  const auto offsets = ReadNumbers<std::uint32_t>(column.offsets());
  std::vector<std::string> texts;
  for (std::size_t i = 0; i + 1 < offsets.size(); ++i) {
    texts.push_back(column.utf8().substr(offsets[i], offsets[i + 1] - offsets[i]));
  }
  Require(offsets.back() == column.utf8().size(), "the end of the texts");
  if (column.places().empty()) return texts;
  std::vector<std::string> values;
  for (const std::uint32_t place : ReadNumbers<std::uint32_t>(column.places())) {
    values.push_back(texts.at(place));
  }
  return values;
}

std::vector<std::string> ReadIds(const v1::IdColumn& ids) {
  if (ids.has_texts()) return ReadTexts(ids.texts());
  std::vector<std::string> texts;
  for (const std::int64_t id : ReadNumbers<std::int64_t>(ids.integers())) {
    texts.push_back(std::to_string(id));
  }
  return texts;
}

// The values of the column, without regard to its items.
std::vector<v1::PayloadValue> ReadValues(const v1::PayloadColumn& column) {
  std::vector<v1::PayloadValue> values;
  switch (column.values_case()) {
    case v1::PayloadColumn::kIntegers:
      for (const std::int64_t value : ReadNumbers<std::int64_t>(column.integers())) {
        values.emplace_back().set_int_value(value);
      }
      break;
    case v1::PayloadColumn::kNumbers:
      for (const double value : ReadNumbers<double>(column.numbers())) {
        values.emplace_back().set_double_value(value);
      }
      break;
    case v1::PayloadColumn::kBooleans:
      for (const std::uint8_t value : ReadNumbers<std::uint8_t>(column.booleans())) {
        values.emplace_back().set_bool_value(value != 0);
      }
      break;
    case v1::PayloadColumn::kTexts:
      for (const std::string& text : ReadTexts(column.texts())) {
        values.emplace_back().set_string_value(text);
      }
      break;
    case v1::PayloadColumn::VALUES_NOT_SET:
      break;
  }
  return values;
}

// Calls set(item, value) for each item that has the field.
void VisitValues(const v1::PayloadColumn& column, std::size_t item_count,
                 const std::function<void(std::size_t, const v1::PayloadValue&)>& set) {
  auto states = ReadNumbers<std::uint8_t>(column.states());
  if (states.empty()) states.assign(item_count, 1);
  Require(states.size() == item_count, "the states of a field");
  const std::vector<v1::PayloadValue> values = ReadValues(column);
  const auto list_offsets = ReadNumbers<std::uint32_t>(column.list_offsets());
  int other = 0;
  for (std::size_t item = 0; item < item_count; ++item) {
    v1::PayloadValue value;
    switch (states[item]) {
      case 0:
        continue;
      case 1:
        if (list_offsets.empty()) {
          value = values.at(item);
        } else {
          v1::PayloadList& list = *value.mutable_list_value();
          for (std::size_t i = list_offsets.at(item); i < list_offsets.at(item + 1); ++i) {
            *list.add_values() = values.at(i);
          }
        }
        break;
      case 2:
        value.set_null_value(true);
        break;
      default:
        value = column.others(other++);
    }
    set(item, value);
  }
  Require(other == column.others_size(), "the other values");
}

// A hit for each item, without rank and score.
std::vector<v1::Hit> ReadItems(const v1::HitColumns& columns) {
  std::vector<v1::Hit> items;
  for (const std::string& id : ReadIds(columns.ids())) items.emplace_back().set_id(id);
  const auto rows = ReadNumbers<std::uint32_t>(columns.rows());
  for (std::size_t i = 0; i < rows.size(); ++i) items.at(i).set_row(rows[i]);
  const auto vectors = ReadNumbers<float>(columns.vectors());
  for (std::size_t i = 0; !vectors.empty() && i < items.size(); ++i) {
    const std::size_t dim = vectors.size() / items.size();
    v1::FloatVector& vector = *items[i].mutable_vector();
    vector.mutable_values()->Add(vectors.data() + i * dim, vectors.data() + (i + 1) * dim);
    vector.set_as_stored(true);
  }
  for (const v1::PayloadColumn& column : columns.payload()) {
    VisitValues(column, items.size(), [&](std::size_t item, const v1::PayloadValue& value) {
      (*items[item].mutable_payload())[column.field()] = value;
    });
  }
  return items;
}

constexpr double kExactMax = 0x1p53;

// Converts a value to the type of a column; returns whether the column can hold the value.
bool ConvertElement(v1::PayloadColumn::ValuesCase type, v1::PayloadValue& value) {
  switch (type) {
    case v1::PayloadColumn::kNumbers:
      if (value.has_int_value() && std::abs(static_cast<double>(value.int_value())) <= kExactMax) {
        value.set_double_value(static_cast<double>(value.int_value()));
      }
      return value.has_double_value();
    case v1::PayloadColumn::kIntegers:
      if (value.has_double_value() && std::abs(value.double_value()) < kExactMax &&
          std::trunc(value.double_value()) == value.double_value()) {
        value.set_int_value(static_cast<std::int64_t>(value.double_value()));
      }
      return value.has_int_value();
    default:
      return true;  // needs no conversion
  }
}

void ConvertValue(const v1::PayloadColumn& column, v1::PayloadValue& value) {
  if (column.list_offsets().empty()) {
    ConvertElement(column.values_case(), value);
    return;
  }
  if (!value.has_list_value()) return;
  v1::PayloadValue given = value;
  bool all = true;
  for (v1::PayloadValue& element : *given.mutable_list_value()->mutable_values()) {
    all = ConvertElement(column.values_case(), element) && all;
  }
  if (all) value = given;
}

// Adds to the results the hits and groups that the columns have, as the other layout has them.
void AddHits(const v1::HitColumns& columns, ResultMessages& results) {
  const auto offsets = ReadNumbers<std::uint32_t>(columns.offsets());
  const auto first_ranks = ReadNumbers<std::uint32_t>(columns.first_ranks());
  const auto scores = ReadNumbers<float>(columns.scores());
  const auto places = ReadNumbers<std::uint32_t>(columns.items());
  const auto group_offsets = ReadNumbers<std::uint32_t>(columns.groups().offsets());
  const auto sizes = ReadNumbers<std::uint32_t>(columns.groups().sizes());
  const std::vector<std::string> keywords =
      columns.has_groups() ? ReadTexts(columns.groups().keywords()) : std::vector<std::string>();
  const std::vector<v1::Hit> items = ReadItems(columns);
  Require(static_cast<int>(offsets.size()) == results.size() + 1, "offsets");
  Require(static_cast<int>(first_ranks.size()) == results.size(), "first ranks");
  Require(scores.size() == offsets.back() && places.size() == scores.size(), "hits");
  const auto add = [&](std::size_t begin, std::size_t end, std::uint32_t rank,
                       google::protobuf::RepeatedPtrField<v1::Hit>& hits) {
    for (std::size_t i = begin; i < end; ++i) {
      v1::Hit& hit = *hits.Add();
      hit = items.at(places[i]);
      hit.set_score(scores[i]);
      hit.set_rank(rank++);
    }
  };
  for (std::size_t result = 0; result < first_ranks.size(); ++result) {
    v1::SearchResult& message = results[static_cast<int>(result)];
    const std::size_t first_group = columns.has_groups() ? group_offsets.at(result) : 0;
    const std::size_t end_group = columns.has_groups() ? group_offsets.at(result + 1) : 0;
    std::size_t grouped = 0;
    for (std::size_t i = first_group; i < end_group; ++i) grouped += sizes.at(i);
    std::size_t hit = offsets[result + 1] - grouped;
    std::uint32_t rank = first_ranks[result];
    add(offsets[result], hit, rank, *message.mutable_hits());
    for (std::size_t i = first_group; i < end_group; ++i) {
      v1::HitGroup& group = *message.add_groups();
      group.set_rank(rank++);
      group.set_keyword(keywords.at(i));
      add(hit, hit + sizes[i], 1, *group.mutable_hits());
      hit += sizes[i];
    }
  }
}

// Gives the payload of hits the types that columns have: an integer of a field of numbers becomes a
// number, 12.0 of a field of integers becomes 12.
void ConvertPayload(const v1::HitColumns& columns, ResultMessages& results) {
  std::map<std::string, const v1::PayloadColumn*> by_field;
  for (const v1::PayloadColumn& column : columns.payload()) by_field[column.field()] = &column;
  const auto give = [&](google::protobuf::RepeatedPtrField<v1::Hit>& hits) {
    for (v1::Hit& hit : hits) {
      for (auto& [field, value] : *hit.mutable_payload()) ConvertValue(*by_field.at(field), value);
    }
  };
  for (v1::SearchResult& result : results) {
    give(*result.mutable_hits());
    for (v1::HitGroup& group : *result.mutable_groups()) give(*group.mutable_hits());
  }
}

v1::SearchResponse Written(const SearchReply& reply) {
  std::string bytes(reply.bytes(), '\0');
  auto* const begin = reinterpret_cast<std::uint8_t*>(bytes.data());
  Require(reply.Write(begin) == begin + bytes.size(), "another size");
  v1::SearchResponse response;
  Require(response.ParseFromString(bytes), "no message");
  return response;
}

}  // namespace

std::string CompareLayouts(v1::SearchResponse with_columns, v1::SearchResponse with_hits) {
  for (const v1::SearchResult& result : with_columns.results()) {
    if (result.hits_size() + result.groups_size() > 0) return "hits beside columns";
  }
  AddHits(with_columns.columns(), *with_columns.mutable_results());
  ConvertPayload(with_columns.columns(), *with_hits.mutable_results());
  with_columns.clear_columns();
  std::string difference;
  google::protobuf::util::MessageDifferencer differencer;
  differencer.ReportDifferencesToString(&difference);
  return differencer.Compare(with_hits, with_columns) ? "" : difference;
}

namespace {

v1::PayloadColumn::ValuesCase ToValuesCase(data::FieldType type) {
  switch (data::TypeOfElements(type)) {
    case data::FieldType::kInteger:
      return v1::PayloadColumn::kIntegers;
    case data::FieldType::kNumber:
      return v1::PayloadColumn::kNumbers;
    case data::FieldType::kBoolean:
      return v1::PayloadColumn::kBooleans;
    case data::FieldType::kKeyword:
    case data::FieldType::kTime:
      return v1::PayloadColumn::kTexts;
    default:
      return v1::PayloadColumn::VALUES_NOT_SET;
  }
}

void RequireTypes(const v1::HitColumns& columns, const data::PayloadTable& payload) {
  for (const v1::PayloadColumn& column : columns.payload()) {
    const data::FieldInfo& field = payload.fields()[payload.FieldNumber(column.field()).value()];
    Require(column.values_case() == ToValuesCase(field.type), "the type of a column");
    Require(column.list_offsets().empty() != data::IsList(field.type), "lists");
  }
}

}  // namespace

std::string CompareLayouts(SearchReply::Parts parts) {
  constexpr std::uint64_t kBytesMax = std::uint64_t{64} << 20;
  parts.columns = nullptr;
  const v1::SearchResponse with_hits = Written(SearchReply(parts, kBytesMax));
  const auto columns = HitColumns::Create(parts.receipt.snapshot, parts.shape,
                                          parts.receipt.sees_all_rows, parts.pages, kBytesMax);
  Require(columns != nullptr, "columns larger than hits");
  parts.columns = columns.get();
  const v1::SearchResponse with_columns = Written(SearchReply(parts, kBytesMax));
  RequireTypes(with_columns.columns(), parts.receipt.snapshot.dataset->payload);
  return CompareLayouts(with_columns, with_hits);
}

}  // namespace simile::service
