#include "cli/payload_text.h"

#include <algorithm>
#include <map>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/output_text.h"

namespace simile::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kTableFieldsMax = 3;
// The widest list in a cell, in columns.
constexpr std::size_t kCellWidthMax = 60;

std::string ListText(const v1::PayloadList& list) {
  std::string text;
  for (const v1::PayloadValue& value : list.values()) {
    if (!text.empty()) text += ", ";
    text += ValueText(value);
  }
  return text;
}

std::string ObjectText(const v1::PayloadObject& object) {
  const std::map<std::string, v1::PayloadValue> by_key(object.fields().begin(),
                                                       object.fields().end());
  std::string text;
  for (const auto& [key, value] : by_key) {
    text += fmt::format("{}{}: {}", text.empty() ? "{" : ", ", key, ValueText(value));
  }
  return text.empty() ? "{}" : text + "}";
}

}  // namespace

std::string ValueText(const v1::PayloadValue& value) {
  switch (value.kind_case()) {
    case v1::PayloadValue::kBoolValue:
      return value.bool_value() ? "true" : "false";
    case v1::PayloadValue::kIntValue:
      return std::to_string(value.int_value());
    case v1::PayloadValue::kDoubleValue:
      return fmt::format("{}", value.double_value());
    case v1::PayloadValue::kStringValue:
      return value.string_value();
    case v1::PayloadValue::kListValue:
      return ListText(value.list_value());
    case v1::PayloadValue::kObjectValue:
      return ObjectText(value.object_value());
    case v1::PayloadValue::kNullValue:
    case v1::PayloadValue::KIND_NOT_SET:
      return "";
  }
  return "";
}

std::string FieldText(const PayloadMap& payload, const std::string& field) {
  const auto found = payload.find(field);
  return found == payload.end() ? "" : ValueText(found->second);
}

std::string CellText(const PayloadMap& payload, const std::string& field) {
  const auto found = payload.find(field);
  if (found == payload.end() || !found->second.has_list_value()) return FieldText(payload, field);
  const v1::PayloadList& list = found->second.list_value();
  std::string text;
  for (int i = 0; i < list.values_size(); ++i) {
    const std::string next =
        fmt::format("{}{}", text.empty() ? "" : ", ", ValueText(list.values(i)));
    const bool fits = DisplayWidth(text) + DisplayWidth(next) <= kCellWidthMax;
    if (i > 0 && !fits) return fmt::format("{}, and {} more", text, list.values_size() - i);
    text += next;
  }
  return text;
}

std::vector<std::string> TableFields(const std::set<std::string>& present,
                                     const std::set<std::string>& lists) {
  std::vector<std::string> fields;
  const bool has_title = present.contains("title");
  const std::string list = present.contains("genres") || lists.empty() ? "genres" : *lists.begin();
  for (const std::string& field :
       {std::string(has_title ? "title" : "name"), std::string("year"), list}) {
    if (present.contains(field)) fields.push_back(field);
  }
  if (has_title) return fields;
  for (const std::string& field : present) {
    const bool chosen = std::ranges::find(fields, field) != fields.end();
    if (fields.size() < kTableFieldsMax && !chosen) fields.push_back(field);
  }
  return fields;
}

std::string RowLabel(const PayloadMap& payload, const std::string& id) {
  std::string title = FieldText(payload, "title");
  if (title.empty()) title = FieldText(payload, "name");
  if (title.empty()) return id;
  const std::string year = FieldText(payload, "year");
  return year.empty() ? title : fmt::format("{} ({})", title, year);
}

Json PayloadValueJson(const v1::PayloadValue& value) {
  switch (value.kind_case()) {
    case v1::PayloadValue::kBoolValue:
      return value.bool_value();
    case v1::PayloadValue::kIntValue:
      return value.int_value();
    case v1::PayloadValue::kDoubleValue:
      return value.double_value();
    case v1::PayloadValue::kStringValue:
      return value.string_value();
    case v1::PayloadValue::kListValue: {
      Json list = Json::array();
      for (const v1::PayloadValue& entry : value.list_value().values()) {
        list.push_back(PayloadValueJson(entry));
      }
      return list;
    }
    case v1::PayloadValue::kObjectValue:
      return PayloadJson(value.object_value().fields());
    case v1::PayloadValue::kNullValue:
    case v1::PayloadValue::KIND_NOT_SET:
      return nullptr;
  }
  return nullptr;
}

Json PayloadJson(const PayloadMap& payload) {
  std::map<std::string, Json> by_name;
  for (const auto& [name, value] : payload) by_name[name] = PayloadValueJson(value);
  return by_name.empty() ? Json::object() : Json(by_name);
}

}  // namespace simile::cli
