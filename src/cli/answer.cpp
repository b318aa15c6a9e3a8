#include "cli/answer.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <absl/status/status.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/message_text.h"
#include "cli/client_flags.h"
#include "cli/command_line.h"
#include "cli/errors.h"
#include "cli/flag_names.h"
#include "cli/item_text.h"
#include "cli/output_text.h"
#include "cli/payload_text.h"
#include "cli/receipt_text.h"
#include "cli/table.h"
#include "cli/wire_names.h"
#include "simile/limits.h"

namespace simile::cli {
namespace {

constexpr std::uint32_t kDefaultK = 10;

// The offset of the next hits. Nothing on the last page, or if a server would refuse that many
// hits.
std::optional<std::uint32_t> NextOffset(const QueryFlags& flags) {
  if (flags.paged || flags.page_token) return std::nullopt;
  if (flags.diversity) return std::nullopt;  // a diverse answer is chosen from its candidates alone
  const std::uint32_t k = flags.k.value_or(kDefaultK);
  const std::uint64_t next = std::uint64_t{flags.offset.value_or(0)} + k;
  if ((next + k) * flags.group_size.value_or(1) > kHitsMax) return std::nullopt;
  return static_cast<std::uint32_t>(next);
}

// Notes and errors name fields of requests; users know flags, so replaces the names.
void TellInFlags(std::string_view command, Answer& answer) {
  for (std::string& note : answer.notes) note = NoteInFlags(note, command);
  for (AnsweredQuery& query : answer.results) {
    for (std::string& note : query.notes) note = NoteInFlags(note, command);
    if (!query.error.ok()) query.error = InFlags(query.error, command);
  }
}

// Chooses the columns once for the whole answer, so that all its tables look alike.
ItemColumns ChooseAnswerColumns(const Answer& answer, const QueryFlags& flags) {
  std::vector<ItemView> items;
  for (const AnsweredQuery& result : answer.results) {
    for (const v1::Hit& hit : result.hits) items.push_back(MakeItemView(hit));
    for (const v1::HitGroup& group : result.groups) {
      for (const v1::Hit& hit : group.hits()) items.push_back(MakeItemView(hit));
    }
  }
  return ChooseItemColumns(items, flags.fields);
}

// A table of hits, or of groups of hits; a group's first row starts with its keyword.
class ResultTable {
 public:
  ResultTable(const AnsweredQuery& result, const ItemColumns& columns)
      : result_(result), columns_(columns), table_(Layout(result, columns)) {
    for (const v1::Hit& hit : result.hits) AddHit(std::to_string(hit.rank()), "", hit);
    for (const v1::HitGroup& group : result.groups) {
      for (const v1::Hit& hit : group.hits()) {
        const bool first = &hit == &group.hits(0);
        AddHit(first ? std::to_string(group.rank()) : "", first ? group.keyword() : "", hit);
      }
    }
  }

  bool empty() const { return table_.empty(); }
  std::string Text(const Terminal& terminal) const { return table_.Render(terminal, 2); }

 private:
  static std::vector<Table::Column> Layout(const AnsweredQuery& result,
                                           const ItemColumns& columns) {
    const auto heading = [&](const std::string& text) { return columns.with_headings ? text : ""; };
    std::vector<Table::Column> layout{{heading("rank"), Align::kRight}};
    if (!result.groups.empty()) layout.push_back({heading("group"), Align::kLeft, true});
    // Cold-start rows have no score.
    if (!result.cold_start) layout.push_back({heading("score"), Align::kRight});
    AddItemColumns(columns, layout);
    return layout;
  }

  void AddHit(const std::string& rank, const std::string& keyword, const v1::Hit& hit) {
    std::vector<std::string> cells{rank};
    if (!result_.groups.empty()) cells.push_back(keyword);
    if (!result_.cold_start) cells.push_back(fmt::format("{:.4f}", hit.score()));
    AddItemCells(columns_, MakeItemView(hit), cells);
    table_.AddRow(std::move(cells));
  }

  const AnsweredQuery& result_;
  const ItemColumns& columns_;
  Table table_;
};

// Why a query has no hits.
std::string NoHitsText(const AnsweredQuery& result, const QueryFlags& flags) {
  if (!result.notes.empty()) return "no hits";  // a note says why
  if (result.rows_passing == 0) return "no rows pass the filter";
  std::string text = "no hits";
  if (flags.offset.value_or(0) > 0) {
    text += fmt::format(" after the first {}", base::Grouped(*flags.offset));
  }
  // A cold start has no scores to compare.
  if (flags.score_threshold && !result.cold_start) {
    text += fmt::format(" score {} or more", *flags.score_threshold);
  }
  return text;
}

// Says how the scores were computed; empty if they are the metric's own.
std::string ScoresText(v1::ScoreKind kind) {
  switch (kind) {
    case v1::SCORE_KIND_BEST_SCORE:
      return " (scores are of best_score, -1 to 1)";
    case v1::SCORE_KIND_SUM_SCORES:
      return " (scores are sums over the examples)";
    default:
      return "";
  }
}

// How many rows pass the filter, if the number is the same for all queries.
std::optional<std::uint64_t> CommonRowsPassing(const Answer& answer) {
  if (answer.results.empty()) return std::nullopt;
  const auto first = answer.results.front().rows_passing;
  const bool common = std::ranges::all_of(
      answer.results, [&](const AnsweredQuery& result) { return result.rows_passing == first; });
  return common ? first : std::nullopt;
}

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

void MoveResult(v1::SearchResult& from, AnsweredQuery& query) {
  if (from.has_rows_passing()) query.rows_passing = from.rows_passing();
  query.hits.Swap(from.mutable_hits());
  query.groups.Swap(from.mutable_groups());
  query.score_kind = from.score_kind();
  if (from.has_cold_start()) query.cold_start = from.cold_start();
  query.notes = {from.notes().begin(), from.notes().end()};
  if (from.has_error()) query.error = ToCallStatus(from.error());
}

std::string SuggestionAfter(const Answer& answer, const QueryFlags& flags) {
  if (answer.results.empty()) return "";
  if (!answer.next_page_token.empty()) return "";  // the table prints the token
  const AnsweredQuery& first = answer.results.front();
  const auto next = [&](const std::string& words) {
    return NextCommand(words, flags.client, flags.collection);
  };
  if (first.hits.empty() && first.groups.empty()) {
    return first.rows_passing == 0 ? next("fields") : "";
  }
  const auto found = static_cast<std::uint32_t>(std::max(first.hits.size(), first.groups.size()));
  if (found >= flags.k.value_or(kDefaultK)) {
    if (const auto offset = NextOffset(flags)) {
      return fmt::format("--offset {} shows the next ones", *offset);
    }
  }
  const v1::Hit& best = first.hits.empty() ? first.groups[0].hits(0) : first.hits[0];
  return next(fmt::format("fetch {}", ListFlag("--id", best.id())));
}

int ShowAnswer(Answer answer, const QueryFlags& flags) {
  if (flags.client.command != nullptr) TellInFlags(flags.client.command->name, answer);
  const bool all_failed = std::ranges::none_of(
      answer.results, [](const AnsweredQuery& query) { return query.error.ok(); });
  const int code = all_failed ? kFailed : kSucceeded;
  if (flags.client.json) {
    fmt::print("{}", AnswerJson(answer));
    return code;
  }
  fmt::print("{}", AnswerTable(answer, flags, StandardOutput()));
  const std::string suggestion = SuggestionAfter(answer, flags);
  if (!suggestion.empty()) SuggestNext(suggestion);
  return code;
}

std::string AnswerTable(const Answer& answer, const QueryFlags& flags, const Terminal& terminal) {
  const ItemColumns columns = ChooseAnswerColumns(answer, flags);
  std::string text;
  for (const AnsweredQuery& result : answer.results) {
    text += Bold(Printable(result.heading), terminal) + ScoresText(result.score_kind) + '\n';
    if (!result.error.ok()) {
      text += fmt::format("  error: {}\n", Printable(ErrorText(result.error)));
      continue;
    }
    const ResultTable table(result, columns);
    text += table.empty() ? fmt::format("  {}\n", NoHitsText(result, flags)) : table.Text(terminal);
    for (const std::string& note : result.notes)
      text += fmt::format("  note: {}\n", Printable(note));
  }
  for (const std::string& note : answer.notes) text += fmt::format("note: {}\n", Printable(note));
  const std::string line =
      ReceiptLine(answer.receipt, answer.backend_reason, CommonRowsPassing(answer));
  text += Dim(Printable(line), terminal) + '\n';
  if (flags.whole_receipt) text += ReceiptTable(answer.receipt, terminal);
  if (!answer.next_page_token.empty()) text += "next page: " + answer.next_page_token + '\n';
  return text;
}

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
