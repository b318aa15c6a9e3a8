#include "cli/explanation_text.h"

#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/message_text.h"
#include "cli/item_text.h"
#include "cli/output_text.h"
#include "cli/payload_text.h"
#include "cli/receipt_text.h"
#include "cli/table.h"
#include "cli/wire_names.h"

namespace simile::cli {
namespace {

using Json = nlohmann::ordered_json;

Json ClauseJson(const v1::FilterClause& clause) {
  return {{"text", clause.text()},
          {"passes", clause.passes()},
          {"values", PayloadJson(clause.values())}};
}

Json StepJson(const v1::DiversityStep& step) {
  Json json = {{"chosen", step.chosen()},
               {"step", step.step()},
               {"marginal_relevance", step.marginal_relevance()},
               {"chosen_marginal_relevance", step.chosen_marginal_relevance()}};
  if (step.nearest_id().empty()) return json;
  json["nearest_id"] = step.nearest_id();
  json["nearest_similarity"] = FloatJson(step.nearest_similarity());
  return json;
}

Json ExplainedItemJson(const v1::Explanation& item) {
  Json reasons = Json::array();
  for (const int reason : item.reasons()) {
    reasons.push_back(ReasonName(static_cast<v1::Explanation::Reason>(reason)));
  }
  Json json = {{"id", item.id()},
               {"returned", item.returned()},
               {"reasons", std::move(reasons)},
               {"text", item.text()}};
  if (item.has_rank()) json["rank"] = item.rank();
  if (item.has_score()) json["score"] = FloatJson(item.score());
  for (const v1::FilterClause& clause : item.clauses()) {
    json["clauses"].push_back(ClauseJson(clause));
  }
  if (item.has_diversity()) json["diversity"] = StepJson(item.diversity());
  for (const v1::GroupPlace& group : item.groups()) {
    json["groups"].push_back({{"keyword", group.keyword()},
                              {"group_rank", group.group_rank()},
                              {"rank_in_group", group.rank_in_group()}});
  }
  return json;
}

}  // namespace

std::string ExplanationTable(const ExplainedAnswer& answer, bool whole_receipt,
                             const Terminal& terminal) {
  Table table({{"item", Align::kLeft, true, true},
               {"rank", Align::kRight},
               {"score", Align::kRight},
               {"why", Align::kLeft, true, false, true}});
  for (const v1::Explanation& item : answer.response.explanations()) {
    table.AddRow({item.id(), item.has_rank() ? base::Grouped(item.rank()) : "",
                  item.has_score() ? fmt::format("{:.4f}", item.score()) : "", item.text()});
  }
  const v1::Receipt& receipt = answer.response.receipt();
  std::string text = Bold(Printable(answer.heading), terminal) + '\n' + table.Render(terminal, 2);
  text += NotesText(answer.response.notes(), "explain");
  text += Dim(Printable(ReceiptLine(receipt, answer.backend_reason)), terminal) + '\n';
  if (whole_receipt) text += ReceiptTable(receipt, terminal);
  return text;
}

std::string ExplanationJson(const ExplainedAnswer& answer) {
  Json explanations = Json::array();
  for (const v1::Explanation& item : answer.response.explanations()) {
    explanations.push_back(ExplainedItemJson(item));
  }
  Json json = {{"collection", answer.collection},
               {"explanations", std::move(explanations)},
               {"score_kind", ScoreKindName(answer.response.score_kind())}};
  if (answer.response.has_score_needed()) {
    json["score_needed"] = FloatJson(answer.response.score_needed());
  }
  json["receipt"] = ReceiptJson(answer.response.receipt());
  AddNotes(answer.response.notes(), json);
  return JsonLine(json);
}

}  // namespace simile::cli
