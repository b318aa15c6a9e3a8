#include "cli/payload_text.h"

#include <map>

#include <fmt/format.h>

namespace simile::cli {
namespace {

std::string ListText(const v1::ListValue& list) {
  std::string text;
  for (const v1::Value& value : list.values()) {
    if (!text.empty()) text += ", ";
    text += ValueText(value);
  }
  return text;
}

std::string ObjectText(const v1::ObjectValue& object) {
  const std::map<std::string, v1::Value> by_key(object.fields().begin(), object.fields().end());
  std::string text;
  for (const auto& [key, value] : by_key) {
    text += fmt::format("{}{}: {}", text.empty() ? "{" : ", ", key, ValueText(value));
  }
  return text.empty() ? "{}" : text + "}";
}

}  // namespace

std::string ValueText(const v1::Value& value) {
  switch (value.kind_case()) {
    case v1::Value::kBoolValue:
      return value.bool_value() ? "true" : "false";
    case v1::Value::kIntValue:
      return std::to_string(value.int_value());
    case v1::Value::kDoubleValue:
      return fmt::format("{}", value.double_value());
    case v1::Value::kStringValue:
      return value.string_value();
    case v1::Value::kListValue:
      return ListText(value.list_value());
    case v1::Value::kObjectValue:
      return ObjectText(value.object_value());
    case v1::Value::kNullValue:
    case v1::Value::KIND_NOT_SET:
      return "";
  }
  return "";
}

std::string FieldText(const PayloadMap& payload, const std::string& field) {
  const auto found = payload.find(field);
  return found == payload.end() ? "" : ValueText(found->second);
}

std::string RowLabel(const PayloadMap& payload, const std::string& id) {
  const std::string title = FieldText(payload, "title");
  if (title.empty()) return id;
  const std::string year = FieldText(payload, "year");
  return year.empty() ? title : fmt::format("{} ({})", title, year);
}

}  // namespace simile::cli
