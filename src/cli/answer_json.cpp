#include "cli/answer_json.h"

#include <utility>

#include <absl/status/status.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/errors.h"
#include "cli/item_text.h"
#include "cli/output_text.h"
#include "cli/payload_text.h"
#include "cli/receipt_text.h"
#include "cli/wire_names.h"

namespace simile::cli {
namespace {

using Json = nlohmann::ordered_json;

Json QueryJson(const AnsweredQuery& query) {
  Json json = Json::object();
  if (query.id) json["id"] = *query.id;
  if (query.items_of) json["items_of"] = *query.items_of;
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

Json ColdStartJson(const v1::ColdStart& cold_start) {
  Json json = {{"order", ColdStartOrderName(cold_start.order())}, {"field", nullptr}};
  if (!cold_start.field().empty()) json["field"] = cold_start.field();
  return json;
}

Json HitsJson(const google::protobuf::RepeatedPtrField<v1::Hit>& hits) {
  Json list = Json::array();
  for (const v1::Hit& hit : hits) {
    Json json = {{"rank", hit.rank()}, {"id", hit.id()}, {"score", FloatJson(hit.score())}};
    if (hit.has_row()) json["row"] = hit.row();
    json["payload"] = PayloadJson(hit.payload());
    list.push_back(std::move(json));
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

}  // namespace

std::string AnswerJson(const Answer& answer) {
  Json results = Json::array();
  std::size_t failed = 0;
  for (const AnsweredQuery& result : answer.results) {
    Json json = {{"query", QueryJson(result)}};
    if (!result.error.ok()) {
      ++failed;
      json["error"] = ErrorObject(result.error);
      results.push_back(std::move(json));
      continue;
    }
    if (result.rows_passing) json["rows_passing"] = *result.rows_passing;
    if (result.cold_start) json["cold_start"] = ColdStartJson(*result.cold_start);
    json["score_kind"] = ScoreKindName(result.score_kind);
    if (!result.groups.empty()) json["groups"] = GroupsJson(result.groups);
    json["hits"] = HitsJson(result.hits);
    if (!result.notes.empty()) json["notes"] = result.notes;
    results.push_back(std::move(json));
  }
  Json json = {{"collection", answer.collection},
               {"results", std::move(results)},
               {"receipt", ReceiptJson(answer.receipt)}};
  if (failed > 0) json["failed_count"] = failed;
  if (!answer.notes.empty()) json["notes"] = answer.notes;
  if (!answer.next_page_token.empty()) json["next_page_token"] = answer.next_page_token;
  return JsonLine(json);
}

std::string CandidatesJson(const std::string& collection, const std::string& title,
                           const v1::LookupResponse& found) {
  Json candidates = Json::array();
  for (const v1::LookupMatch& match : found.matches()) {
    candidates.push_back({{"id", match.item().id()},
                          {"match", QualityName(match.quality())},
                          {"payload", PayloadJson(match.item().payload())}});
  }
  const absl::Status ambiguous = absl::InvalidArgumentError(fmt::format(
      "{} \"{}\"; name one with --id", MatchCountText(found.match_count(), collection), title));
  const Json json = {{"collection", collection},
                     {"title", title},
                     {"match_count", found.match_count()},
                     {"candidates", std::move(candidates)},
                     {"error", ErrorObject(ambiguous)}};
  return JsonLine(json);
}

}  // namespace simile::cli
