#include "cli/answer_table.h"

#include <algorithm>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "base/message_text.h"
#include "cli/display_text.h"
#include "cli/payload_text.h"
#include "cli/receipt_text.h"
#include "cli/table.h"

namespace simile::cli {
namespace {

// The columns after rank and score.
struct Columns {
  bool with_id = false;
  bool with_row = false;
  bool with_headings = false;  // not needed for title, year and genres
  std::vector<std::string> fields;
};

Columns ChooseColumns(const Answer& answer) {
  Columns columns;
  std::set<std::string> present;
  for (const AnsweredQuery& result : answer.results) {
    const auto look = [&](const auto& hits) {
      for (const v1::Hit& hit : hits) {
        for (const auto& [field, value] : hit.payload()) present.insert(field);
        if (hit.has_row()) columns.with_row = true;
      }
    };
    look(result.hits);
    for (const v1::HitGroup& group : result.groups) look(group.hits());
  }
  columns.with_headings = columns.with_row;
  if (!answer.fields.empty()) {
    columns.with_id = true;
    columns.with_headings = true;
    columns.fields = answer.fields;
    return columns;
  }
  columns.fields = TableFields(present);
  if (present.contains("title")) return columns;
  columns.with_id = true;
  columns.with_headings = columns.with_row || !present.empty();
  return columns;
}

// A table of hits, or of groups of hits; a group's first row starts with its keyword.
class ResultTable {
 public:
  ResultTable(const AnsweredQuery& result, const Columns& columns)
      : result_(result), columns_(columns), table_(Layout(result, columns)) {
    for (const v1::Hit& hit : result.hits) AddHit(std::to_string(hit.rank()), "", hit);
    for (const v1::HitGroup& group : result.groups) {
      for (const v1::Hit& hit : group.hits()) {
        const bool first = &hit == &group.hits(0);
        AddHit(first ? std::to_string(group.rank()) : "", first ? group.keyword() : "", hit);
      }
    }
  }

  std::string Text(const Terminal& terminal) const {
    return table_.empty() ? "  no rows pass\n" : table_.Render(terminal, 2);
  }

 private:
  static std::vector<Table::Column> Layout(const AnsweredQuery& result, const Columns& columns) {
    const auto heading = [&](const std::string& text) { return columns.with_headings ? text : ""; };
    std::vector<Table::Column> layout{{heading("rank"), Align::kRight}};
    if (!result.groups.empty()) layout.push_back({heading("group"), Align::kLeft, true});
    // Cold-start rows have no score.
    if (!result.cold_start) layout.push_back({heading("score"), Align::kRight});
    if (columns.with_row) layout.push_back({heading("row"), Align::kRight});
    if (columns.with_id) layout.push_back({heading("id"), Align::kLeft, true});
    for (const std::string& field : columns.fields) {
      layout.push_back({heading(field), Align::kLeft, field != "year"});
    }
    return layout;
  }

  void AddHit(const std::string& rank, const std::string& keyword, const v1::Hit& hit) {
    std::vector<std::string> cells{rank};
    if (!result_.groups.empty()) cells.push_back(keyword);
    if (!result_.cold_start) cells.push_back(fmt::format("{:.4f}", hit.score()));
    if (columns_.with_row) cells.push_back(base::Grouped(hit.row()));
    if (columns_.with_id) cells.push_back(hit.id());
    for (const std::string& field : columns_.fields)
      cells.push_back(CellText(hit.payload(), field));
    table_.AddRow(std::move(cells));
  }

  const AnsweredQuery& result_;
  const Columns& columns_;
  Table table_;
};

// Says what the scores are where they are not the metric's; empty where they are.
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

// How many rows pass the filter, if that is the same for all queries.
std::optional<std::uint64_t> CommonRowsPassing(const Answer& answer) {
  if (answer.results.empty()) return std::nullopt;
  const auto first = answer.results.front().rows_passing;
  const bool common = std::ranges::all_of(
      answer.results, [&](const AnsweredQuery& result) { return result.rows_passing == first; });
  return common ? first : std::nullopt;
}

}  // namespace

std::string AnswerTable(const Answer& answer, const Terminal& terminal) {
  const Columns columns = ChooseColumns(answer);
  std::string text;
  for (const AnsweredQuery& result : answer.results) {
    text += Bold(Printable(result.heading), terminal) + ScoresText(result.score_kind) + '\n';
    text += ResultTable(result, columns).Text(terminal);
  }
  text += Dim(Printable(ReceiptLine(answer.receipt, CommonRowsPassing(answer))), terminal) + '\n';
  if (!answer.next_page_token.empty()) text += "next page: " + answer.next_page_token + '\n';
  return text;
}

}  // namespace simile::cli
