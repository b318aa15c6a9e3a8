#include "service/replies/replies.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/error_detail.h"
#include "base/message_text.h"
#include "simile/v1/lookup.pb.h"
#include "simile/v1/search.pb.h"

namespace simile::service {
namespace {

// Search and Recommend share one encoding.
static_assert(int{v1::SearchResponse::kResultsFieldNumber} ==
              int{v1::RecommendResponse::kResultsFieldNumber});
static_assert(int{v1::SearchResponse::kReceiptFieldNumber} ==
              int{v1::RecommendResponse::kReceiptFieldNumber});
static_assert(int{v1::SearchResponse::kNextPageTokenFieldNumber} ==
              int{v1::RecommendResponse::kNextPageTokenFieldNumber});
static_assert(int{v1::SearchResponse::kNotesFieldNumber} ==
              int{v1::RecommendResponse::kNotesFieldNumber});
static_assert(int{v1::SearchResponse::kFailedCountFieldNumber} ==
              int{v1::RecommendResponse::kFailedCountFieldNumber});
static_assert(int{v1::SearchResponse::kColumnsFieldNumber} ==
              int{v1::RecommendResponse::kColumnsFieldNumber});

v1::ColdStart::Order ToOrder(engine::ColdStart::Order order) {
  switch (order) {
    case engine::ColdStart::Order::kNewest:
      return v1::ColdStart::ORDER_NEWEST;
    case engine::ColdStart::Order::kMostPopular:
      return v1::ColdStart::ORDER_MOST_POPULAR;
  }
  return v1::ColdStart::ORDER_UNSPECIFIED;
}

// Passes the parts of a response to a sink.
template <class Sink>
class ResponseEncoder {
 public:
  ResponseEncoder(const SearchReply::Parts& parts, Sink& out) : parts_(parts), out_(out) {}

  void Encode() {
    using Response = v1::SearchResponse;
    for (const ResultPage& page : parts_.pages) {
      if (out_.is_full()) return;
      out_.Message(Response::kResultsFieldNumber, [&] { EncodeResult(page); });
    }
    out_.Message(Response::kReceiptFieldNumber, [&] { EncodeReceipt(out_, parts_.receipt); });
    out_.Text(Response::kNextPageTokenFieldNumber, parts_.next_page_token);
    if (parts_.instead_of_notes) {
      out_.Text(Response::kNotesFieldNumber, *parts_.instead_of_notes);
    } else {
      EncodeNotes(Response::kNotesFieldNumber, parts_.notes);
    }
    out_.Number(Response::kFailedCountFieldNumber,
                static_cast<std::uint64_t>(std::ranges::count_if(
                    parts_.pages, [](const ResultPage& page) { return !page.error.empty(); })));
    if (parts_.columns == nullptr) return;
    out_.Message(Response::kColumnsFieldNumber, [&] { parts_.columns->Encode(out_); });
  }

 private:
  //   field   of hits, in the message around them
  //   offset  how many better hits are left out
  void EncodeHits(int field, std::span<const Hit> hits, std::uint32_t offset) {
    std::uint32_t rank = offset;
    for (const Hit& hit : hits) {
      if (out_.is_full()) return;
      out_.Message(field, [&] {
        out_.Number(v1::Hit::kRankFieldNumber, ++rank);
        out_.Float(v1::Hit::kScoreFieldNumber, hit.score);
        EncodeRow<v1::Hit>(out_, parts_.receipt.snapshot, parts_.shape, hit.row);
      });
    }
  }

  void EncodeResult(const ResultPage& page) {
    using Result = v1::SearchResult;
    if (page.error.empty()) EncodeAnswer(page);
    out_.Text(Result::kUserIdFieldNumber, page.user_id);
    out_.Text(Result::kErrorFieldNumber, page.error);
    if (page.index) out_.Number(Result::kIndexFieldNumber, *page.index);
  }

  void EncodeAnswer(const ResultPage& page) {
    using Result = v1::SearchResult;
    if (parts_.columns == nullptr) EncodeHits(Result::kHitsFieldNumber, page.hits, page.offset);
    out_.Number(Result::kScoreKindFieldNumber, static_cast<std::uint64_t>(page.score_kind));
    if (page.rows_passing) {
      out_.PresentNumber(Result::kRowsPassingFieldNumber, *page.rows_passing);
    }
    if (parts_.columns == nullptr) EncodeGroups(page);
    if (page.cold_start) {
      out_.Message(Result::kColdStartFieldNumber, [&] {
        out_.Number(v1::ColdStart::kOrderFieldNumber,
                    static_cast<std::uint64_t>(ToOrder(page.cold_start->order)));
        out_.Text(v1::ColdStart::kFieldFieldNumber, page.cold_start->field);
      });
    }
    out_.Number(Result::kSeenCountFieldNumber, page.seen_count);
    if (!parts_.instead_of_notes) EncodeNotes(Result::kNotesFieldNumber, page.notes);
  }

  void EncodeGroups(const ResultPage& page) {
    std::uint32_t rank = page.offset;
    for (const engine::HitGroup& group : page.groups) {
      if (out_.is_full()) return;
      out_.Message(v1::SearchResult::kGroupsFieldNumber, [&] {
        out_.Number(v1::HitGroup::kRankFieldNumber, ++rank);
        out_.Text(v1::HitGroup::kKeywordFieldNumber, group.keyword);
        EncodeHits(v1::HitGroup::kHitsFieldNumber, group.hits, 0);
      });
    }
  }

  void EncodeNotes(int field, std::span<const std::string> notes) {
    for (const std::string& note : notes) out_.Element(field, note);
  }

  const SearchReply::Parts& parts_;
  Sink& out_;
};

v1::LookupMatch::Quality ToQuality(filter::MatchQuality quality) {
  switch (quality) {
    case filter::MatchQuality::kWhole:
      return v1::LookupMatch::QUALITY_WHOLE;
    case filter::MatchQuality::kPrefix:
      return v1::LookupMatch::QUALITY_PREFIX;
    case filter::MatchQuality::kPart:
      return v1::LookupMatch::QUALITY_PART;
  }
  return v1::LookupMatch::QUALITY_UNSPECIFIED;
}

static_assert(v1::Explanation::REASON_NOT_FOUND == static_cast<int>(engine::Reason::kNotFound));
static_assert(v1::Explanation::REASON_RANK_IN_GROUP ==
              static_cast<int>(engine::Reason::kRankInGroup));

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
    const engine::CheckedItem& item = explanation.item;
    out_.Text(Explanation::kIdFieldNumber, item.id);
    out_.Number(Explanation::kReturnedFieldNumber, item.reasons.empty() ? 1 : 0);
    for (const engine::Reason reason : item.reasons) {
      out_.Number(Explanation::kReasonsFieldNumber, static_cast<std::uint64_t>(reason));
    }
    out_.Text(Explanation::kTextFieldNumber, explanation.text);
    if (explanation.place != nullptr) EncodePlace(*explanation.place);
    for (const engine::ClauseCheck& clause : item.clauses) {
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

  void EncodeClause(const engine::ClauseCheck& clause) {
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

// Whether the hits or groups after the offset have the row.
bool Returns(const engine::QueryResult& result, std::uint32_t offset, Row row) {
  const auto has = [row](std::span<const Hit> hits) {
    return std::ranges::find(hits, row, &Hit::row) != hits.end();
  };
  if (result.hits.size() > offset && has(result.hits.span().subspan(offset))) return true;
  if (result.groups.size() <= offset) return false;
  const auto groups = std::span(result.groups).subspan(offset);
  return std::ranges::any_of(groups, [&](const auto& group) { return has(group.hits); });
}

// The place of a row; null for a row that was not compared.
const engine::RowPlace* FindPlace(const engine::RowPlaces& places, std::optional<Row> row) {
  if (!row) return nullptr;
  const auto found = std::ranges::lower_bound(places.rows, *row, {}, &engine::RowPlace::row);
  return found != places.rows.end() && found->row == *row ? &*found : nullptr;
}

}  // namespace

SearchReply::SearchReply(const Parts& parts, std::uint64_t counted_max) : parts_(parts) {
  Count(counted_max);
}

void SearchReply::Encode(ByteCounter& out) const { ResponseEncoder(parts_, out).Encode(); }
void SearchReply::Encode(WireWriter& out) const { ResponseEncoder(parts_, out).Encode(); }

FetchReply::FetchReply(engine::SnapshotPtr snapshot, RowShape shape, std::vector<FetchedItem> items,
                       std::vector<std::string> notes, std::uint64_t bytes_max,
                       std::uint64_t counted_max)
    : snapshot_(std::move(snapshot)),
      shape_(std::move(shape)),
      items_(std::move(items)),
      notes_(std::move(notes)) {
  CountWithin(bytes_max, counted_max, notes_);
}

template <class Sink>
void FetchReply::EncodeTo(Sink& out) const {
  using Response = v1::FetchResponse;
  std::uint64_t failed = 0;
  for (const FetchedItem& item : items_) {
    if (out.is_full()) return;
    out.Message(Response::kItemsFieldNumber, [&] {
      if (item.error.empty()) return EncodeRow<v1::Item>(out, *snapshot_, shape_, item.row);
      ++failed;
      out.Text(v1::Item::kIdFieldNumber, item.id);
      out.Text(v1::Item::kErrorFieldNumber, item.error);
    });
  }
  out.Text(Response::kSnapshotIdFieldNumber, snapshot_->id);
  out.Number(Response::kSnapshotVersionFieldNumber, snapshot_->version);
  for (const std::string& note : notes_) out.Element(Response::kNotesFieldNumber, note);
  out.Number(Response::kFailedCountFieldNumber, failed);
}

void FetchReply::Encode(ByteCounter& out) const { EncodeTo(out); }
void FetchReply::Encode(WireWriter& out) const { EncodeTo(out); }

LookupReply::LookupReply(engine::SnapshotPtr snapshot, RowShape shape, filter::TextMatches found,
                         std::vector<std::string> notes, std::uint64_t bytes_max,
                         std::uint64_t counted_max, std::string nearest)
    : snapshot_(std::move(snapshot)),
      shape_(std::move(shape)),
      found_(std::move(found)),
      nearest_(std::move(nearest)),
      notes_(std::move(notes)) {
  CountWithin(bytes_max, counted_max, notes_);
}

template <class Sink>
void LookupReply::EncodeTo(Sink& out) const {
  using Response = v1::LookupResponse;
  for (const filter::TextMatch& match : found_.first) {
    if (out.is_full()) return;
    out.Message(Response::kMatchesFieldNumber, [&] {
      out.Number(v1::LookupMatch::kQualityFieldNumber,
                 static_cast<std::uint64_t>(ToQuality(match.quality)));
      out.Message(v1::LookupMatch::kItemFieldNumber,
                  [&] { EncodeRow<v1::Item>(out, *snapshot_, shape_, match.row); });
    });
  }
  out.Number(Response::kMatchCountFieldNumber, found_.match_count);
  out.Number(Response::kWholeMatchCountFieldNumber, found_.whole_match_count);
  out.Text(Response::kSnapshotIdFieldNumber, snapshot_->id);
  out.Number(Response::kSnapshotVersionFieldNumber, snapshot_->version);
  for (const std::string& note : notes_) out.Element(Response::kNotesFieldNumber, note);
  out.Text(Response::kNearestFieldNumber, nearest_);
}

void LookupReply::Encode(ByteCounter& out) const { EncodeTo(out); }
void LookupReply::Encode(WireWriter& out) const { EncodeTo(out); }

absl::StatusOr<std::vector<ItemExplanation>> ExplainItems(const engine::Snapshot& snapshot,
                                                          const engine::QueryResult& result,
                                                          ExplainedQuery& query) {
  std::vector<ItemExplanation> explanations;
  explanations.reserve(query.items.size());
  for (engine::CheckedItem& item : query.items) {
    const engine::RowPlace* const place = FindPlace(result.places, item.row);
    if (place != nullptr) engine::AddPlaceReasons(*place, query.criteria, item.reasons);
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
                            engine::ExplanationText(snapshot, item, place, query.criteria,
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
