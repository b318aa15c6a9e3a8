#include "cli/payload_json.h"

#include <map>
#include <string>

#include <nlohmann/json.hpp>

namespace simile::cli {
namespace {

using Json = nlohmann::ordered_json;

}  // namespace

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
