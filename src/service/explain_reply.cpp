#include "service/explain_reply.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/error_detail.h"
#include "base/message_text.h"
#include "simile/v1/search.pb.h"

namespace simile::service {
namespace {

static_assert(v1::Explanation::REASON_NOT_FOUND == static_cast<int>(query::Reason::kNotFound));
static_assert(v1::Explanation::REASON_RANK_IN_GROUP ==
              static_cast<int>(query::Reason::kRankInGroup));

// Passes the parts of a response to a sink.
template <class Sink>
class ExplanationEncoder {
 public:
  ExplanationEncoder(const ExplainReply::Parts& parts, Sink& out) : parts_(parts), out_(out) {}

  void Encode() {
    using Response = v1::ExplainResponse;
    for (const ItemExplanation& explanation : parts_.explanations) {
      out_.Message(Response::kExplanationsFieldNumber, [&] { EncodeItem(explanation); });
    }
    out_.Number(Response::kScoreKindFieldNumber, static_cast<std::uint64_t>(parts_.score_kind));
    if (parts_.score_needed) {
      out_.PresentFloat(Response::kScoreNeededFieldNumber, *parts_.score_needed);
    }
    out_.Message(Response::kReceiptFieldNumber, [&] { EncodeReceipt(out_, parts_.receipt); });
    for (const std::string& note : parts_.notes) out_.Element(Response::kNotesFieldNumber, note);
  }

 private:
  void EncodeItem(const ItemExplanation& explanation) {
    using Explanation = v1::Explanation;
    const query::CheckedItem& item = explanation.item;
    out_.Text(Explanation::kIdFieldNumber, item.id);
    out_.Number(Explanation::kReturnedFieldNumber, item.reasons.empty() ? 1 : 0);
    for (const query::Reason reason : item.reasons) {
      out_.Number(Explanation::kReasonsFieldNumber, static_cast<std::uint64_t>(reason));
    }
    out_.Text(Explanation::kTextFieldNumber, explanation.text);
    if (explanation.place != nullptr) EncodePlace(*explanation.place);
    for (const query::ClauseCheck& clause : item.clauses) {
      out_.Message(Explanation::kClausesFieldNumber, [&] { EncodeClause(clause); });
    }
  }

  void EncodePlace(const engine::RowPlace& place) {
    using Explanation = v1::Explanation;
    if (!parts_.criteria.is_cold_start)
      out_.PresentFloat(Explanation::kScoreFieldNumber, place.score);
    out_.PresentNumber(Explanation::kRankFieldNumber, place.rows_before + 1);
    if (place.diversity) {
      out_.Message(Explanation::kDiversityFieldNumber, [&] { EncodeStep(*place.diversity); });
    }
    for (const engine::RowPlace::GroupPlace& group : place.groups) {
      out_.Message(Explanation::kGroupsFieldNumber, [&] {
        out_.Text(v1::GroupPlace::kKeywordFieldNumber,
                  parts_.criteria.grouping->field.Text(group.number));
        out_.Number(v1::GroupPlace::kGroupRankFieldNumber, group.groups_before + 1);
        out_.Number(v1::GroupPlace::kRankInGroupFieldNumber, group.rows_before + 1);
      });
    }
  }

  void EncodeStep(const engine::DiversityStep& step) {
    using Step = v1::DiversityStep;
    out_.Number(Step::kChosenFieldNumber, step.chosen ? 1 : 0);
    out_.Number(Step::kStepFieldNumber, step.step);
    out_.Double(Step::kMarginalRelevanceFieldNumber, step.marginal_relevance);
    out_.Double(Step::kChosenMarginalRelevanceFieldNumber, step.chosen_marginal_relevance);
    if (!step.nearest) return;
    data::IdIndex::Digits digits;
    out_.Text(Step::kNearestIdFieldNumber,
              parts_.receipt.snapshot.dataset->ids.Id(*step.nearest, digits));
    out_.Float(Step::kNearestSimilarityFieldNumber, step.similarity);
  }

  void EncodeClause(const query::ClauseCheck& clause) {
    using Clause = v1::FilterClause;
    out_.Text(Clause::kTextFieldNumber, clause.text);
    out_.Number(Clause::kPassesFieldNumber, clause.passes ? 1 : 0);
    for (const auto& [name, value] : clause.values) {
      out_.Entry(Clause::kValuesFieldNumber, name, value);
    }
  }

  const ExplainReply::Parts& parts_;
  Sink& out_;
};

// Whether the hits or groups behind the offset have the row.
bool Returns(const engine::QueryResult& result, std::uint32_t offset, Row row) {
  const auto has = [row](std::span<const Hit> hits) {
    return std::ranges::find(hits, row, &Hit::row) != hits.end();
  };
  if (result.hits.size() > offset && has(result.hits.span().subspan(offset))) return true;
  if (result.groups.size() <= offset) return false;
  const auto groups = std::span(result.groups).subspan(offset);
  return std::ranges::any_of(groups, [&](const auto& group) { return has(group.hits); });
}

// The place of a row; null for one that was not compared.
const engine::RowPlace* PlaceOf(const engine::RowPlaces& places, std::optional<Row> row) {
  if (!row) return nullptr;
  const auto found = std::ranges::lower_bound(places.rows, *row, {}, &engine::RowPlace::row);
  return found != places.rows.end() && found->row == *row ? &*found : nullptr;
}

}  // namespace

absl::StatusOr<std::vector<ItemExplanation>> ExplainItems(const engine::Snapshot& snapshot,
                                                          const engine::QueryResult& result,
                                                          ExplainedQuery& query) {
  std::vector<ItemExplanation> explanations;
  explanations.reserve(query.items.size());
  for (query::CheckedItem& item : query.items) {
    const engine::RowPlace* const place = PlaceOf(result.places, item.row);
    if (place != nullptr) query::AddPlaceReasons(*place, query.criteria, item.reasons);
    const bool returned = item.row && Returns(result, query.criteria.offset, *item.row);
    if (returned != item.reasons.empty()) {
      return base::Error(
          base::ErrorReason::kInternal,
          fmt::format(
              "item {} is {} the answer, but the scores of all rows say otherwise; this is a "
              "bug in the server",
              base::Quoted(item.id), returned ? "in" : "not in"));
    }
    explanations.push_back({item, place,
                            query::ExplanationText(snapshot, item, place, query.criteria,
                                                   query.criteria.ScoreNeeded(result.places))});
  }
  return explanations;
}

ExplainReply::ExplainReply(const Parts& parts, std::uint64_t counted_max) : parts_(parts) {
  Count(counted_max);
}

void ExplainReply::Encode(ByteCounter& out) const { ExplanationEncoder(parts_, out).Encode(); }
void ExplainReply::Encode(WireWriter& out) const { ExplanationEncoder(parts_, out).Encode(); }

}  // namespace simile::service
