#include "cli/answer_json.h"

#include <array>
#include <charconv>
#include <map>

#include <nlohmann/json.hpp>

#include "cli/json_line.h"
#include "cli/payload_text.h"
#include "cli/receipt_text.h"

namespace simile::cli {
namespace {

using Json = nlohmann::ordered_json;

// JSON numbers are doubles, and a float needs fewer digits than the double it widens to: 0.7029,
// not 0.7028999924659729. Both read back as the same float.
Json ScoreJson(float score) {
  std::array<char, 32> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), score).ptr;
  double shortest = score;
  std::from_chars(digits.data(), end, shortest);
  return shortest;
}

Json ValueJson(const v1::Value& value) {
  switch (value.kind_case()) {
    case v1::Value::kBoolValue:
      return value.bool_value();
    case v1::Value::kIntValue:
      return value.int_value();
    case v1::Value::kDoubleValue:
      return value.double_value();
    case v1::Value::kStringValue:
      return value.string_value();
    case v1::Value::kListValue: {
      Json list = Json::array();
      for (const v1::Value& entry : value.list_value().values()) list.push_back(ValueJson(entry));
      return list;
    }
    case v1::Value::kObjectValue: {
      std::map<std::string, Json> by_key;
      for (const auto& [key, entry] : value.object_value().fields()) by_key[key] = ValueJson(entry);
      return by_key;
    }
    case v1::Value::kNullValue:
    case v1::Value::KIND_NOT_SET:
      return nullptr;
  }
  return nullptr;
}

Json PayloadJson(const PayloadMap& payload) {
  std::map<std::string, Json> by_name;
  for (const auto& [field, value] : payload) by_name[field] = ValueJson(value);
  return by_name.empty() ? Json::object() : Json(by_name);
}

Json QueryJson(const AnsweredQuery& query) {
  Json json = Json::object();
  if (query.id) json["id"] = *query.id;
  if (query.user_id) json["user_id"] = *query.user_id;
  if (query.seen_count) json["seen_count"] = *query.seen_count;
  if (query.vector_source) {
    json["vector"] = *query.vector_source;
    json["row"] = query.vector_row;
  }
  if (!query.like.empty()) json["like"] = query.like;
  if (!query.unlike.empty()) json["unlike"] = query.unlike;
  return json;
}

Json HitsJson(const google::protobuf::RepeatedPtrField<v1::Hit>& hits) {
  Json list = Json::array();
  for (const v1::Hit& hit : hits) {
    list.push_back({{"rank", hit.rank()},
                    {"row", hit.row()},
                    {"id", hit.id()},
                    {"score", ScoreJson(hit.score())},
                    {"payload", PayloadJson(hit.payload())}});
  }
  return list;
}

Json GroupsJson(const google::protobuf::RepeatedPtrField<v1::HitGroup>& groups) {
  Json list = Json::array();
  for (const v1::HitGroup& group : groups) {
    list.push_back(
        {{"rank", group.rank()}, {"keyword", group.keyword()}, {"hits", HitsJson(group.hits())}});
  }
  return list;
}

const char* QualityName(v1::LookupMatch::Quality quality) {
  switch (quality) {
    case v1::LookupMatch::WHOLE:
      return "whole";
    case v1::LookupMatch::PREFIX:
      return "prefix";
    default:
      return "part";
  }
}

}  // namespace

std::string AnswerJson(const Answer& answer) {
  Json results = Json::array();
  for (const AnsweredQuery& result : answer.results) {
    Json json = {{"query", QueryJson(result)}};
    if (result.rows_passing) json["rows_passing"] = *result.rows_passing;
    if (!result.cold_start_order.empty()) json["cold_start_order"] = result.cold_start_order;
    if (!result.groups.empty()) json["groups"] = GroupsJson(result.groups);
    json["hits"] = HitsJson(result.hits);
    results.push_back(std::move(json));
  }
  Json json = {{"collection", answer.collection},
               {"results", std::move(results)},
               {"receipt", ReceiptJson(answer.receipt)}};
  if (!answer.next_page_token.empty()) json["next_page_token"] = answer.next_page_token;
  return JsonLine(json);
}

std::string CandidatesJson(const std::string& collection, const std::string& title,
                           const v1::LookupResponse& found) {
  Json candidates = Json::array();
  for (const v1::LookupMatch& match : found.matches()) {
    candidates.push_back({{"row", match.item().row()},
                          {"id", match.item().id()},
                          {"match", QualityName(match.quality())},
                          {"payload", PayloadJson(match.item().payload())}});
  }
  const Json json = {{"collection", collection},
                     {"title", title},
                     {"match_count", found.match_count()},
                     {"candidates", std::move(candidates)}};
  return JsonLine(json);
}

}  // namespace simile::cli
